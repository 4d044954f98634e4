"""A graph as an exporter writes it -> both precisions in the form in which they are loaded."""

from __future__ import annotations

import logging
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from hyce.errors import ModelError

_TABLE = 1000
"""Rows from which on a table that rows are taken out of is stored as int8."""


def both(graph: Path, target: Path) -> None:
    """Write fp32.onnx and int8.onnx into `target`, each with its weights beside it. Raises ModelError.

    Sessions load graphs as they are (embed.py), so what can be fused is fused here.
    """
    with tempfile.TemporaryDirectory(prefix="graphs-", dir=target.parent) as work:
        fused, narrow, done = (Path(work) / f"{name}.onnx" for name in ("fused", "narrow", "done"))
        try:
            _optimised(graph, fused)
            save(onnx.load(fused), target / "fp32.onnx")
            _quantised(fused, narrow)
            _optimised(narrow, done)
            save(onnx.load(done), target / "int8.onnx")
        except (OSError, ModelError):
            raise
        except Exception as error:  # ONNX Runtime's and protobuf's own exceptions share no base
            reason = " ".join(str(error).split())[:200]
            raise ModelError(f"{graph.name}: ONNX Runtime can't take the graph ({reason})") from error


def save(model: onnx.ModelProto, path: Path) -> None:
    """Write the graph, and its large tensors into a file beside it.

    The word table, half of all weights, is then mapped instead of read: loading takes half the time
    (a third for fp32), and 12 MB (50 MB) less memory.
    """
    data = path.with_suffix(".data")
    onnx.save(model, path, save_as_external_data=True, location=data.name)
    data.chmod(path.stat().st_mode)  # onnx makes it readable for its owner only; a site shares its models


def _optimised(graph: Path, target: Path) -> None:
    """Fuse what ONNX Runtime can fuse without regard to this machine's processor."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(target)
    # A file of its own for the weights: a graph with them in it ends at 2 GB.
    options.add_session_config_entry(
        "session.optimized_model_external_initializers_file_name", f"{target.stem}.weights"
    )
    options.log_severity_level = 4
    ort.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])


def _quantised(graph: Path, target: Path) -> None:
    """Matrices as int8, a scale for each column, seven bits as in graph.LARGEST_WEIGHT; tables too."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    model = onnx.load(graph)
    _narrow_tables(model.graph)
    onnx.save(model, graph, save_as_external_data=True, location=f"{graph.stem}.weights")
    logger = logging.getLogger()
    level = logger.level
    logger.setLevel(logging.ERROR)  # it recommends what was done already
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            quantize_dynamic(
                graph,
                target,
                op_types_to_quantize=["MatMul", "Attention"],
                per_channel=True,
                reduce_range=True,
                weight_type=QuantType.QInt8,
                use_external_data_format=True,
                # Fused operators hide their results' type from it.
                extra_options={"MatMulConstBOnly": True, "DefaultTensorType": TensorProto.FLOAT},
            )
    finally:
        logger.setLevel(level)


def _narrow_tables(graph: Any) -> None:
    """Store large tables of rows as int8 with a scale for each row; the word table may be most of a model."""
    constants = {tensor.name: tensor for tensor in graph.initializer}
    uses: dict[str, int] = {}
    for node in graph.node:
        for name in node.input:
            uses[name] = uses.get(name, 0) + 1
    for number, node in reversed(list(enumerate(graph.node))):
        table = constants.get(node.input[0]) if node.op_type == "Gather" else None
        if table is None or table.data_type != TensorProto.FLOAT or uses[table.name] != 1:
            continue
        if len(table.dims) != 2 or table.dims[0] < _TABLE or any(a.i for a in node.attribute):
            continue
        rows = numpy_helper.to_array(table)
        largest = np.abs(rows).max(axis=1, keepdims=True)
        scales = np.where(largest > 0, largest / 127, 1).astype(np.float32)
        name, ids, result = table.name, node.input[1], node.output[0]
        graph.initializer.remove(table)
        graph.initializer.append(numpy_helper.from_array(np.rint(rows / scales).astype(np.int8), name))
        graph.initializer.append(numpy_helper.from_array(scales, f"{name}.scales"))
        graph.node.remove(node)
        added = [
            helper.make_node("Gather", [name, ids], [f"{name}.int8"]),
            helper.make_node("Cast", [f"{name}.int8"], [f"{name}.float"], to=TensorProto.FLOAT),
            helper.make_node("Gather", [f"{name}.scales", ids], [f"{name}.scale"]),
            helper.make_node("Mul", [f"{name}.float", f"{name}.scale"], [result]),
        ]
        for offset, each in enumerate(added):
            graph.node.insert(number + offset, each)
