"""The graph against a forward pass in numpy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
import tiny_model
from numpy.typing import NDArray

from hyce.conversion import graph
from hyce.conversion import weights as files
from hyce.errors import ModelError

IDS = np.array([[2, 4, 8, 5, 6, 1, 11, 3]], np.int32)
erf = np.vectorize(math.erf)


def reference(weights: dict[str, NDArray[np.float32]], ids: NDArray[np.int32]) -> NDArray[np.float64]:
    """The last hidden state, (length, hidden), in double precision, written out from the BERT paper."""
    w = {name: tensor.astype(np.float64) for name, tensor in weights.items()}

    def norm(x: NDArray[np.float64], name: str) -> NDArray[np.float64]:
        scaled = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-12)
        return np.asarray(scaled * w[name + ".weight"] + w[name + ".bias"])

    def dense(x: NDArray[np.float64], name: str) -> NDArray[np.float64]:
        return x @ w[name + ".weight"].T + w[name + ".bias"]

    words = w["embeddings.word_embeddings.weight"][ids]
    x = words + w["embeddings.position_embeddings.weight"][: len(ids)]
    x = norm(x + w["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
    width = tiny_model.HIDDEN // tiny_model.HEADS
    for layer in range(tiny_model.LAYERS):
        prefix = f"encoder.layer.{layer}."
        q, k, v = (dense(x, f"{prefix}attention.self.{part}") for part in ("query", "key", "value"))
        mixed = np.empty_like(x)
        for head in range(tiny_model.HEADS):
            part = slice(head * width, (head + 1) * width)
            scores = np.exp(q[:, part] @ k[:, part].T / math.sqrt(width))
            mixed[:, part] = scores / scores.sum(-1, keepdims=True) @ v[:, part]
        x = norm(x + dense(mixed, prefix + "attention.output.dense"), prefix + "attention.output.LayerNorm")
        wide = dense(x, prefix + "intermediate.dense")
        wide = wide * (1 + erf(wide / math.sqrt(2))) / 2
        x = norm(x + dense(wide, prefix + "output.dense"), prefix + "output.LayerNorm")
    return x


def unit(x: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(x / np.linalg.norm(x, axis=-1, keepdims=True))


def run(model: onnx.ModelProto, ids: NDArray[np.int32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    vector, tokens = session.run(["vector", "tokens"], {"ids": ids})
    return vector[0], tokens[0]


def test_fp32_is_the_forward_pass() -> None:
    weights = tiny_model.weights()
    vector, tokens = run(graph.build(tiny_model.CONFIG, weights, "fp32"), IDS)
    hidden = reference(weights, IDS[0])
    np.testing.assert_allclose(tokens, unit(hidden), atol=2e-6)
    np.testing.assert_allclose(vector, unit(hidden.mean(0)), atol=2e-6)


def test_int8_is_close_to_it() -> None:
    weights = tiny_model.weights()
    vector, tokens = run(graph.build(tiny_model.CONFIG, weights, "int8"), IDS)
    hidden = reference(weights, IDS[0])
    assert vector @ unit(hidden.mean(0)) > 0.99
    assert (tokens * unit(hidden)).sum(-1).min() > 0.98


def test_int8_weights_fit_sixteen_bit_sums() -> None:
    model = graph.build(tiny_model.CONFIG, tiny_model.weights(), "int8")
    matrices = {
        tensor.name: onnx.numpy_helper.to_array(tensor)
        for tensor in model.graph.initializer
        if tensor.data_type == onnx.TensorProto.INT8 and tensor.name.endswith(".weight")
    }
    assert len(matrices) == 4 * tiny_model.LAYERS
    assert max(int(np.abs(matrix).max()) for matrix in matrices.values()) == graph.LARGEST_WEIGHT
    assert 255 * graph.LARGEST_WEIGHT * 2 < 2**15


def test_one_outlying_token_does_not_spoil_the_others() -> None:
    weights = tiny_model.weights()
    weights["embeddings.position_embeddings.weight"][0] *= 40
    _, tokens = run(graph.build(tiny_model.CONFIG, weights, "int8"), IDS)
    assert (tokens * unit(reference(weights, IDS[0]))).sum(-1).min() > 0.98


def test_cls_pooling_takes_the_first_token() -> None:
    vector, tokens = run(graph.build(tiny_model.CONFIG, tiny_model.weights(), "fp32", "cls"), IDS)
    np.testing.assert_allclose(vector, tokens[0], atol=1e-7)


def test_zeros_stay_zero() -> None:
    weights = tiny_model.weights()
    for name in weights:
        if "dense.weight" in name or name.endswith("LayerNorm.bias"):
            weights[name] = np.zeros_like(weights[name])
    vector, tokens = run(graph.build(tiny_model.CONFIG, weights, "int8"), IDS)
    assert np.isfinite(vector).all() and np.isfinite(tokens).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "roberta"}, "model_type is 'roberta'"),
        ({"hidden_act": "relu"}, "hidden_act is 'relu'"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type"),
        ({"num_hidden_layers": "many"}, "many"),
        ({"num_hidden_layers": 3}, "the weights lack encoder.layer.2."),
    ],
)
def test_another_model_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        graph.build(tiny_model.CONFIG | change, tiny_model.weights(), "fp32")


def test_a_prefix_before_the_names_is_taken_off(tmp_path: Any) -> None:
    from safetensors.numpy import save_file

    weights = tiny_model.weights()
    save_file({"bert." + name: tensor for name, tensor in weights.items()}, tmp_path / "w")
    assert files.read_weights(tmp_path / "w").keys() == weights.keys()
