"""A sentence-transformers folder -> the files of models/<name>/."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from hyce import graph
from hyce.errors import ModelError
from hyce.fetch import Known
from hyce.models import PRECISIONS, sha256


def convert(source: Path, target: Path, expected: Known | None = None) -> dict[str, Any]:
    """Write both graphs and the tokenizer into `target`; what model.json says of them.

    expected: the checksums that the files must have. Raises ModelError.
    """
    weights, tokenizer = source / "model.safetensors", source / "tokenizer.json"
    exported = source / "onnx" / "model.onnx"
    if not weights.is_file() and exported.is_file():
        weights, expected = exported, None
    for path in (weights, tokenizer, source / "config.json"):
        if not path.is_file():
            raise ModelError(f"{path}: missing; the folder must be one that sentence-transformers saved")
    digest = sha256(weights)
    if expected is not None and (digest, sha256(tokenizer)) != (expected.weights, expected.tokenizer):
        raise ModelError(
            f"{source}: its files are not those of {expected.repository} (another sha256); "
            "fetch them again, or give a model of your own another name"
        )
    config = graph.read_config(source / "config.json")
    tensors = _exported_weights(weights) if weights == exported else graph.read_weights(weights)
    pooling = _pooling(source)
    for precision in PRECISIONS:
        _save(graph.build(config, tensors, precision, pooling), target / f"{precision}.onnx")
    shutil.copyfile(tokenizer, target / "tokenizer.json")
    return {
        "dimensions": graph.architecture(config).hidden,
        "max_tokens": _max_tokens(source, config),
        "pooling": pooling,
        "format": graph.FORMAT,
        "weights": digest,
        "licence": expected.licence if expected else "",
    }


def _exported_weights(path: Path) -> dict[str, NDArray[np.float32]]:
    """The weights of an exported graph, by their original names.

    An export keeps the names of biases, norms and tables, and renames a transposed matrix; which one that
    is tells the bias that is added to its product. Optimised and quantised exports have lost that.
    """
    try:
        exported = onnx.load(path).graph
    except Exception as error:  # protobuf's own exceptions, by its implementation
        raise ModelError(f"{path}: not a readable ONNX file ({error}); fetch it again") from error
    tensors = {tensor.name: numpy_helper.to_array(tensor) for tensor in exported.initializer}
    products = {node.output[0]: node.input[1] for node in exported.node if node.op_type == "MatMul"}
    for node in exported.node:
        biases = [name for name in node.input if name.endswith(".bias") and name in tensors]
        made = [products[name] for name in node.input if products.get(name) in tensors]
        if node.op_type == "Add" and biases and made:
            tensors[biases[0].removesuffix("bias") + "weight"] = tensors[made[0]].T
    return {
        name.removeprefix("bert."): tensor for name, tensor in tensors.items() if tensor.dtype == np.float32
    }


def _save(model: onnx.ModelProto, path: Path) -> None:
    """Write the graph, and its large tensors into a file beside it.

    The word table, half of all weights, is then mapped instead of read: loading takes half the time
    (a third for fp32), and 12 MB (50 MB) less memory.
    """
    data = path.with_suffix(".data")
    onnx.save(model, path, save_as_external_data=True, location=data.name)
    data.chmod(path.stat().st_mode)  # onnx makes it readable for its owner only; a site shares its models


def _pooling(source: Path) -> graph.Pooling:
    path = source / "1_Pooling" / "config.json"
    if not path.is_file():
        return "mean"
    modes = {
        key for key, on in graph.read_config(path).items() if key.startswith("pooling_mode") and on is True
    }
    if modes == {"pooling_mode_mean_tokens"}:
        return "mean"
    if modes == {"pooling_mode_cls_token"}:
        return "cls"
    raise ModelError(f"{path}: pooling is {', '.join(sorted(modes)) or 'none'}; mean and cls are supported")


def _max_tokens(source: Path, config: dict[str, Any]) -> int:
    """What sentence-transformers cuts texts to, and never more than there are positions."""
    positions = int(config.get("max_position_embeddings", 512))
    path = source / "sentence_bert_config.json"
    given = graph.read_config(path).get("max_seq_length") if path.is_file() else None
    return min(int(given), positions) if given else positions
