"""An ONNX graph as exporters write it -> one with the inputs and outputs of graph.py.

Exports take batches with a mask: input_ids, attention_mask, perhaps token_type_ids. Here a text is alone, so
the mask is all ones.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, compose, helper, numpy_helper

from hyce.conversion import verify
from hyce.conversion.original import Original
from hyce.errors import ModelError

_TOKENS = ("last_hidden_state", "token_embeddings")
_VECTOR = "sentence_embedding"
_SCORE = "logits"
_INPUTS = {"input_ids", "attention_mask", "token_type_ids"}
_INSIDE = "export/"


def fitted(original: Original, target: Path) -> bool:
    """Write the folder's graph with our inputs and outputs to `target`; whether it gives token vectors.

    Raises ModelError where the export has other inputs or outputs than usual.
    """
    model = _load(original)
    inputs, outputs = _names(model.graph.input), _names(model.graph.output)
    model = compose.add_prefix(model, _INSIDE)
    graph = model.graph
    del graph.input[:], graph.output[:]
    before = _inputs(graph, inputs, pairs=original.kind == "cross-encoder")
    if original.kind == "cross-encoder":
        after, tokens = _score(graph), False
    else:
        after, tokens = _vectors(graph, outputs, original, _opset(model))
    nodes = [*before, *graph.node, *after]
    del graph.node[:]
    graph.node.extend(nodes)
    onnx.save(model, target, save_as_external_data=True, location=f"{target.name}.weights")
    return tokens


def _load(original: Original) -> Any:
    """The export, its inputs and outputs checked."""
    try:
        model = onnx.load(original.export)
    except Exception as error:  # protobuf's own exceptions, by its implementation
        reason = " ".join(str(error).split())[:200]
        raise ModelError(f"{original.export}: not a readable ONNX file ({reason}); fetch it again") from error
    inputs, outputs = _names(model.graph.input), _names(model.graph.output)
    if unknown := [name for name in inputs if name not in _INPUTS]:
        raise ModelError(f"{original.export}: its graph wants {unknown[0][:60]!r}; use `hyce models convert`")
    if original.kind == "cross-encoder":
        wanted: tuple[str, ...] = (_SCORE,)
    else:
        wanted = (_VECTOR,) if original.pooling == "other" else (_VECTOR, *_TOKENS)
    if "input_ids" not in inputs or not set(wanted) & set(outputs):
        raise ModelError(
            f"{original.export}: its graph gives {', '.join(outputs)[:100]} and not {' or '.join(wanted)}; "
            "use `hyce models convert`"
        )
    return model


def _names(values: Any) -> list[str]:
    return [str(value.name) for value in values]


def _opset(model: Any) -> int:
    return max(int(each.version) for each in model.opset_import if each.domain in ("", "ai.onnx"))


def _constant(graph: Any, name: str, array: NDArray[Any]) -> str:
    graph.initializer.append(numpy_helper.from_array(array, name))
    return name


def _inputs(graph: Any, names: list[str], *, pairs: bool) -> list[Any]:
    """Nodes that make what the export takes of `ids` and `types`; declares these two."""
    form: list[int | str] = [1, "length"]
    graph.input.append(helper.make_tensor_value_info("ids", TensorProto.INT32, form))
    nodes = [helper.make_node("Cast", ["ids"], [f"{_INSIDE}input_ids"], to=TensorProto.INT64)]
    nodes.append(helper.make_node("Shape", ["ids"], ["ids.shape"]))

    def filled(name: str, value: int) -> Any:
        tensor = numpy_helper.from_array(np.array([value], np.int64))
        return helper.make_node("ConstantOfShape", ["ids.shape"], [_INSIDE + name], value=tensor)

    if "attention_mask" in names:
        nodes.append(filled("attention_mask", 1))
    if "token_type_ids" in names and pairs:
        graph.input.append(helper.make_tensor_value_info("types", TensorProto.INT32, form))
        nodes.append(helper.make_node("Cast", ["types"], [f"{_INSIDE}token_type_ids"], to=TensorProto.INT64))
    elif "token_type_ids" in names:
        nodes.append(filled("token_type_ids", 0))
    return nodes


def _score(graph: Any) -> list[Any]:
    graph.output.append(helper.make_tensor_value_info("score", TensorProto.FLOAT, [1]))
    one = _constant(graph, "one", np.array([1], np.int64))
    return [helper.make_node("Reshape", [_INSIDE + _SCORE, one], ["score"])]


def _vectors(graph: Any, outputs: list[str], original: Original, opset: int) -> tuple[list[Any], bool]:
    """Nodes that pool and normalise, and whether token vectors are among the outputs."""
    rows = next((name for name in _TOKENS if name in outputs), "")
    nodes: list[Any] = []
    pooled = _INSIDE + _VECTOR
    if _VECTOR not in outputs:
        pooled = "pooled"
        if original.pooling == "cls":
            first = _constant(graph, "first", np.array(0, np.int64))
            nodes.append(helper.make_node("Gather", [_INSIDE + rows, first], [pooled], axis=1))
        elif opset < 18:
            nodes.append(helper.make_node("ReduceMean", [_INSIDE + rows], [pooled], axes=[1], keepdims=0))
        else:
            axes = _constant(graph, "axes", np.array([1], np.int64))
            nodes.append(helper.make_node("ReduceMean", [_INSIDE + rows, axes], [pooled], keepdims=0))
    nodes.append(helper.make_node("LpNormalization", [pooled], ["vector"], axis=-1, p=2))
    graph.output.append(helper.make_tensor_value_info("vector", TensorProto.FLOAT, [1, "dimensions"]))
    # Where the graph does more than pooling, a token's row is no vector of the same kind.
    tokens = bool(rows) and original.pooling != "other"
    if tokens:
        nodes.append(helper.make_node("LpNormalization", [_INSIDE + rows], ["tokens"], axis=-1, p=2))
        nodes.append(helper.make_node("Identity", [_INSIDE + rows], ["hidden"]))
        form: list[int | str] = [1, "length", "dimensions"]
        for name in ("tokens", "hidden"):
            graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, form))
    return nodes, tokens


def reference(original: Original) -> verify.Reference:
    """What the export itself gives for the texts of verify.py."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 4
    try:
        session = ort.InferenceSession(str(original.export), options, providers=["CPUExecutionProvider"])
        outputs = [output.name for output in session.get_outputs()]
        inputs = [given.name for given in session.get_inputs()]
        encodings = verify.encoded(original)
        values = []
        for each in encodings:
            arrays = {"input_ids": each.ids, "attention_mask": [1] * len(each.ids)}
            arrays["token_type_ids"] = each.type_ids
            given = {name: np.array([arrays[name]], np.int64) for name in inputs}
            values.append(_value(dict(zip(outputs, session.run(None, given), strict=True)), original))
    except ModelError:
        raise
    except Exception as error:  # ONNX Runtime's own exceptions share no base but Exception
        reason = " ".join(str(error).split())[:200]
        raise ModelError(f"{original.export}: can't be run ({reason}); use `hyce models convert`") from error
    return verify.Reference([each.ids for each in encodings], np.array(values, np.float64))


def _value(made: dict[str, NDArray[Any]], original: Original) -> Any:
    """The score, or the vector of length 1."""
    if original.kind == "cross-encoder":
        return made[_SCORE].ravel()[0]
    pooled = made.get(_VECTOR)
    if pooled is None:
        rows = next(made[name] for name in _TOKENS if name in made)[0].astype(np.float64)
        pooled = rows[:1] if original.pooling == "cls" else rows.mean(axis=0, keepdims=True)
    return pooled[0] / np.linalg.norm(pooled[0])
