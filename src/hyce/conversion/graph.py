"""The ONNX graph of a BERT encoder, built from its weights. No torch, no export.

One graph takes one text: `ids`, int32 (1, length), special tokens included. A bi-encoder's gives
  vector  float32 (1, dimensions): pooled over all ids, of length 1
  tokens  float32 (1, length, dimensions): the last hidden state, each row of length 1
  hidden  float32 (1, length, dimensions): the same as it is; its rows' mean is what `vector` is made of
A cross-encoder's takes also `types`, int32 (1, length): which of the two texts a token is of. It gives
  score   float32 (1,): the classifier's raw output, no activation put on it
There is no attention mask, because there is no padding: a text's vector then depends on that text alone,
which a mask does not give when activations are quantised with one scale for the whole input.

The fused operators of ONNX Runtime's com.microsoft domain are emitted directly, so a session loads the file
with its optimiser switched off. SkipLayerNormalization is avoided: Add and LayerNormalization take a fifth
of its time on the CPU.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from hyce.errors import ModelError

FORMAT = 1
"""Raised when the same weights give another graph with other numbers: part of a model's fingerprint."""

Precision = Literal["int8", "fp32"]
Pooling = Literal["mean", "cls"]
Weights = Mapping[str, NDArray[np.float32]]

MICROSOFT = "com.microsoft"

LARGEST_WEIGHT = 63
"""Seven bits of eight. Processors without VNNI instructions add two products in 16 bits and cut what is
beyond (255 * 63 * 2 fits, 255 * 127 * 2 does not): this way an index made on one machine and a question
asked on another have the same vectors."""

SMOOTHING = 0.8
"""Share of the difficulty that smoothing moves from activations to weights. Mean cosine of tokens to fp32:
0.993 without, 0.996 with 0.5, 0.997 with 0.8 (8 bits)."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """What a config.json says about a BERT encoder."""

    hidden: int
    layers: int
    heads: int
    epsilon: float


def architecture(config: Mapping[str, Any]) -> Architecture:
    """Sizes of the encoder that a transformers config.json describes.

    Raises ModelError where this module would build something else than that model.
    """
    wanted = {"model_type": "bert", "hidden_act": "gelu", "position_embedding_type": "absolute"}
    for key, value in wanted.items():
        given = config.get(key, value if key == "position_embedding_type" else None)
        if given != value:
            raise ModelError(f"config.json: {key} is {given!r}; graphs are built for {value!r} only")
    try:
        return Architecture(
            hidden=int(config["hidden_size"]),
            layers=int(config["num_hidden_layers"]),
            heads=int(config["num_attention_heads"]),
            epsilon=float(config["layer_norm_eps"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(
            f"config.json: {error} is missing or no number; take the model's own file"
        ) from error


def build(
    config: Mapping[str, Any], weights: Weights, precision: Precision, pooling: Pooling = "mean"
) -> onnx.ModelProto:
    """The encoder with pooling and normalisation, see the module's text for inputs and outputs.

    Raises ModelError for another architecture than BERT, and for a weight that is missing.
    """
    shape = architecture(config)
    graph = _Graph(weights, shape, precision)
    hidden = graph.embeddings()
    for layer in range(shape.layers):
        hidden = graph.layer(hidden, f"encoder.layer.{layer}.")
    graph.outputs(hidden, pooling)
    return graph.model(
        {"ids": [1, "length"]},
        {
            "vector": [1, shape.hidden],
            "tokens": [1, "length", shape.hidden],
            "hidden": [1, "length", shape.hidden],
        },
    )


def build_cross_encoder(config: Mapping[str, Any], weights: Weights, precision: Precision) -> onnx.ModelProto:
    """The encoder with BERT's pooler and a classifier of one score, which stay fp32: they are small.

    Raises ModelError as `build`.
    """
    shape = architecture(config)
    graph = _Graph(weights, shape, precision)
    hidden = graph.embeddings(pairs=True)
    for layer in range(shape.layers):
        hidden = graph.layer(hidden, f"encoder.layer.{layer}.")
    graph.score(hidden)
    return graph.model({"ids": [1, "length"], "types": [1, "length"]}, {"score": [1]})


@dataclass(slots=True)
class _Graph:
    """Nodes and constants while they are collected. Each method returns the name of its result."""

    weights: Weights
    shape: Architecture
    precision: Precision
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)
    norm: str = ""
    """The normalisation that was added last; what enters a layer's first products comes from it."""

    def weight(self, name: str) -> NDArray[np.float32]:
        try:
            return self.weights[name]
        except KeyError:
            raise ModelError(f"the weights lack {name}; they are not those of this config.json") from None

    def constant(self, name: str, array: NDArray[Any]) -> str:
        self.constants.append(numpy_helper.from_array(np.asarray(array, order="C"), name))
        return name

    def node(
        self,
        operator: str,
        inputs: Sequence[str],
        outputs: str | list[str],
        domain: str = "",
        **attributes: Any,
    ) -> str:
        names = [outputs] if isinstance(outputs, str) else outputs
        self.nodes.append(
            helper.make_node(operator, inputs, names, name=names[0], domain=domain, **attributes)
        )
        return names[0]

    def embeddings(self, *, pairs: bool = False) -> str:
        """Word and position embeddings, added and normalised: (1, length, hidden).

        One text is one segment, whose embedding is added to the positions here; pairs: `types` tells the
        segment. With int8 the word table, half of all weights, is stored with one scale for each word.
        """
        words = self.weight("embeddings.word_embeddings.weight")
        positions = self.weight("embeddings.position_embeddings.weight")
        segments = self.weight("embeddings.token_type_embeddings.weight")
        if self.precision == "int8":
            scales = _scales(words, 1, 127)
            quantised = np.rint(words / scales[:, None]).astype(np.int8)
            self.node("Gather", [self.constant("words", quantised), "ids"], "words.int8")
            self.node("Cast", ["words.int8"], "words.float", to=TensorProto.FLOAT)
            self.node("Gather", [self.constant("words.scales", scales[:, None]), "ids"], "words.scale")
            self.node("Mul", ["words.float", "words.scale"], "words.taken")
        else:
            self.node("Gather", [self.constant("words", words), "ids"], "words.taken")
        self.node("Shape", ["ids"], "length", start=1, end=2)
        start = self.constant("start", np.zeros(1, np.int64))
        places = positions if pairs else positions + segments[0]
        self.node("Slice", [self.constant("positions", places), start, "length"], "places")
        self.node("Add", ["words.taken", "places"], "embedded")
        if pairs:
            self.node("Gather", [self.constant("segments", segments), "types"], "segments.taken")
            self.node("Add", ["embedded", "segments.taken"], "embedded.pair")
            return self.normalised("embedded.pair", "embeddings.LayerNorm")
        return self.normalised("embedded", "embeddings.LayerNorm")

    def normalised(self, value: str, name: str) -> str:
        gain, shift = (
            self.constant(f"{name}.{part}", self.weight(f"{name}.{part}")) for part in ("weight", "bias")
        )
        self.norm = name
        return self.node("LayerNormalization", [value, gain, shift], name, epsilon=self.shape.epsilon)

    def layer(self, hidden: str, prefix: str) -> str:
        """One encoder layer: attention and feed-forward, each added to its input and normalised."""
        attended = self.attention(hidden, prefix)
        name = prefix + "attention.output.dense"
        mixed = self.biased(self.product(attended, self.weight(name + ".weight").T, name), name)
        self.node("Add", [mixed, hidden], prefix + "attention.sum")
        middle = self.normalised(prefix + "attention.sum", prefix + "attention.output.LayerNorm")
        narrow = self.narrowed(self.widened(middle, prefix), prefix)
        self.node("Add", [narrow, middle], prefix + "sum")
        return self.normalised(prefix + "sum", prefix + "output.LayerNorm")

    def attention(self, hidden: str, prefix: str) -> str:
        """Self-attention over all heads, before its output projection."""
        parts = [f"{prefix}attention.self.{part}" for part in ("query", "key", "value")]
        matrix = np.concatenate([self.weight(part + ".weight") for part in parts]).T
        name = prefix + "attention.self"
        bias = self.constant(name + ".bias", np.concatenate([self.weight(part + ".bias") for part in parts]))
        heads = self.shape.heads
        if self.precision == "fp32":
            inputs = [hidden, self.constant(name + ".weight", matrix), bias]
            return self.node("Attention", inputs, name, MICROSOFT, num_heads=heads)
        hidden, matrix = self.smoothed(hidden, matrix, name)
        weight, scale, zero = self.quantised(matrix, name)
        own = [name + ".input", name + ".input.scale", name + ".input.zero"]
        self.node("DynamicQuantizeLinear", [hidden], own)
        inputs = [own[0], weight, bias, own[1], scale, "", own[2], zero]
        return self.node("QAttention", inputs, name, MICROSOFT, num_heads=heads)

    def widened(self, middle: str, prefix: str) -> str:
        """The first half of the feed-forward network, with its activation."""
        name = prefix + "intermediate.dense"
        matrix = self.weight(name + ".weight").T
        if self.precision == "int8":
            middle, matrix = self.smoothed(middle, matrix, name)
        product = self.product(middle, matrix, name)
        bias = self.constant(name + ".bias", self.weight(name + ".bias"))
        return self.node("BiasGelu", [product, bias], prefix + "gelu", MICROSOFT)

    def narrowed(self, wide: str, prefix: str) -> str:
        """The second half of the feed-forward network.

        A few tokens (the special ones above all) have values here many times those of the others, and
        under one scale for the whole text the others would keep few steps. So with int8 each token is
        divided by its own largest value first. After GELU nothing is below -0.17: no need to look at the
        absolute values, and 0.2 as the least divisor keeps the rest within -1 and 1.
        """
        name = prefix + "output.dense"
        matrix = self.weight(name + ".weight").T
        if self.precision == "int8":
            axes = self.constant(name + ".axes", np.array([-1], np.int64))
            self.node("ReduceMax", [wide, axes], name + ".largest", keepdims=1)
            least = self.constant(name + ".least", np.array(0.2, np.float32))
            size = self.node("Max", [name + ".largest", least], name + ".size")
            self.node("Div", [wide, size], name + ".unit")
            product = self.product(name + ".unit", matrix, name)
            product = self.node("Mul", [product, size], name + ".scaled")
        else:
            product = self.product(wide, matrix, name)
        return self.biased(product, name)

    def biased(self, product: str, name: str) -> str:
        return self.node("Add", [product, self.constant(name + ".bias", self.weight(name + ".bias"))], name)

    def product(self, value: str, matrix: NDArray[np.float32], name: str) -> str:
        """value @ matrix."""
        if self.precision == "fp32":
            return self.node("MatMul", [value, self.constant(name + ".weight", matrix)], name + ".product")
        inputs = [value, *self.quantised(matrix, name)]
        return self.node("DynamicQuantizeMatMul", inputs, name + ".product", MICROSOFT)

    def smoothed(self, value: str, matrix: NDArray[np.float32], name: str) -> tuple[str, NDArray[np.float32]]:
        """`value` with its channels brought to like sizes, and the matrix that makes up for it.

        A normalised value has the size that its gain and shift give it, so no calibration texts are needed.
        SmoothQuant (Xiao et al. 2023, arXiv:2211.10438), equation 4.
        """
        gain, shift = (np.abs(self.weight(f"{self.norm}.{part}")) for part in ("weight", "bias"))
        reach = np.maximum(shift + 3 * gain, 1e-5)
        factor = reach**SMOOTHING / np.maximum(np.abs(matrix).max(axis=1), 1e-5) ** (1 - SMOOTHING)
        factor = (factor / np.exp(np.log(factor).mean())).astype(np.float32)
        inverse = self.constant(name + ".smoothing", 1 / factor)
        return self.node("Mul", [value, inverse], name + ".smoothed"), matrix * factor[:, None]

    def quantised(self, matrix: NDArray[np.float32], name: str) -> tuple[str, str, str]:
        """Names of the int8 matrix, its scales and zero points, one for each column."""
        scales = _scales(matrix, 0, LARGEST_WEIGHT)
        values = np.rint(matrix / scales).astype(np.int8)
        return (
            self.constant(name + ".weight", values),
            self.constant(name + ".scale", scales),
            self.constant(name + ".zero", np.zeros(len(scales), np.int8)),
        )

    def outputs(self, hidden: str, pooling: Pooling) -> None:
        if pooling == "mean":
            axes = self.constant("axes", np.array([1], np.int64))
            self.node("ReduceMean", [hidden, axes], "pooled", keepdims=0)
        else:
            first = self.constant("first", np.array(0, np.int64))
            self.node("Gather", [hidden, first], "pooled", axis=1)
        self.node("LpNormalization", ["pooled"], "vector", axis=-1, p=2)
        self.node("LpNormalization", [hidden], "tokens", axis=-1, p=2)
        self.node("Identity", [hidden], "hidden")

    def score(self, hidden: str) -> None:
        first = self.constant("first", np.array(0, np.int64))
        self.node("Gather", [hidden, first], "pooler.first", axis=1)
        self.affine("pooler.first", "pooler.dense")
        self.affine(self.node("Tanh", ["pooler.dense"], "pooler"), "classifier")
        self.node("Squeeze", ["classifier", self.constant("axes", np.array([1], np.int64))], "score")

    def affine(self, value: str, name: str) -> str:
        """value @ weight.T + bias, in fp32: (1, outputs)."""
        parts = [
            self.constant(f"{name}.{part}", self.weight(f"{name}.{part}")) for part in ("weight", "bias")
        ]
        return self.node("Gemm", [value, *parts], name, transB=1)

    def model(
        self, inputs: Mapping[str, list[int | str]], outputs: Mapping[str, list[int | str]]
    ) -> onnx.ModelProto:
        given = [
            helper.make_tensor_value_info(name, TensorProto.INT32, form) for name, form in inputs.items()
        ]
        made = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, form) for name, form in outputs.items()
        ]
        graph = helper.make_graph(self.nodes, "encoder", given, made, self.constants)
        # The oldest versions that have these operators: any supported ONNX Runtime reads the file.
        imports = [helper.make_opsetid("", 18), helper.make_opsetid(MICROSOFT, 1)]
        return helper.make_model(graph, opset_imports=imports, ir_version=8)


def _scales(matrix: NDArray[np.float32], axis: int, steps: int) -> NDArray[np.float32]:
    """Scales along one axis that map the largest value to `steps`; zeros stay zero under a scale of 1."""
    largest = np.abs(matrix).max(axis=axis)
    return np.where(largest > 0, largest / steps, 1).astype(np.float32)
