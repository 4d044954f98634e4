"""What was converted against the original: tokens, vectors, scores.

For a BERT encoder the original is computed here, from the same weights but by none of the same code: a
forward pass in numpy and double precision, written out from the paper (Devlin et al. 2018).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hyce.conversion.original import Original
from hyce.errors import ModelError
from hyce.models import ModelFiles

if TYPE_CHECKING:
    import tokenizers

Array = NDArray[np.float64]

QUESTIONS = (
    "How long may a job run?",
    "disk full",
    "Why does my job wait in the queue, and when will it start?",
    "Wie viel Platz habe ich?",
)
TEXTS = (
    "",
    "node",
    "A job may run for two days; in the queue named long it may run for a week.",
    "Files in scratch are removed after 60 days. When the disk is full, jobs fail.",
    "A job waits in the queue until enough nodes are free. Its start time is an estimate.",
    "sbatch --nodes=2 --time=01:00:00 job.sh  # wait time depends on the node",
    "Jeder hat 20 GB im eigenen Verzeichnis, größere Dateien gehören auf die Projektplatte.",
    "Le temps d'attente dépend de la file; 队列已满时请稍候。",
    "The queue is full of jobs that wait for a node with a free disk. " * 60,
)
"""Of nothing at all, of one word, of several languages, and of more than any model takes."""

FP32_COSINE, INT8_COSINE = 0.9999, 0.98
FP32_SCORES, INT8_CORRELATION = 1e-3, 0.98
"""Least cosine to the original at fp32, least mean one at int8; largest difference of a score at fp32, as a
share of how far scores lie apart, and least correlation of scores at int8."""


@dataclass(frozen=True, slots=True)
class Reference:
    """What the original gives for `texts` or `pairs`, in their order."""

    ids: list[list[int]]
    """Token ids, special ones included."""
    values: Array
    """(n, dimensions) vectors of length 1, or (n,) scores."""


@dataclass(frozen=True, slots=True)
class Measured:
    """How far a model is from its original."""

    good: bool
    text: str


def texts(original: Original) -> list[str]:
    """What a bi-encoder is compared on, prompts included: passages, then questions."""
    passages = [original.passage_prompt + text for text in TEXTS]
    return passages + [original.query_prompt + question for question in QUESTIONS]


def pairs() -> list[tuple[str, str]]:
    """What a cross-encoder is compared on."""
    return [(question, text) for question in QUESTIONS for text in TEXTS]


def encoded(original: Original) -> list[tokenizers.Encoding]:
    """Those texts or pairs as tokens, with special ones and cut by the tokenizer's own rules."""
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(original.tokenizer))
    except Exception as error:  # the library raises plain Exception
        reason = " ".join(str(error).split())[:200]
        raise ModelError(f"{original.tokenizer}: broken ({reason}); fetch it again") from error
    tokenizer.no_padding()
    tokenizer.enable_truncation(original.max_tokens)
    if original.kind == "cross-encoder":
        return [tokenizer.encode(*pair) for pair in pairs()]
    return [tokenizer.encode(text) for text in texts(original)]


def compare(files: ModelFiles, reference: Reference) -> Measured:
    """The model against its original. Raises ModelError where the files can't be loaded or used."""
    if files.kind == "cross-encoder":
        ids, values = _scores(files)
    else:
        ids, values = _vectors(files)
    if ids != reference.ids:
        wrong = sum(one != other for one, other in zip(ids, reference.ids, strict=True))
        return Measured(False, f"{wrong} of {len(ids)} texts have other tokens")
    if values.shape != reference.values.shape or not np.isfinite(values).all():
        return Measured(False, f"results of shape {values.shape} in place of {reference.values.shape}")
    exact = files.precision == "fp32"
    if files.kind == "cross-encoder":
        return _compare_scores(values, reference.values, exact)
    # The cosine of vectors of length 1, in a form that knows two zeros to be equal.
    cosines = 1 - ((values - reference.values) ** 2).sum(axis=1) / 2
    good = cosines.min() >= FP32_COSINE if exact else cosines.mean() >= INT8_COSINE
    text = f"cosine to the original {cosines.mean():.7f} on average, {cosines.min():.7f} at least"
    return Measured(bool(good), f"{text}; tokens equal on {len(ids)} texts")


def _compare_scores(scores: Array, true: Array, exact: bool) -> Measured:
    largest = float(np.abs(scores - true).max())
    spread = float(np.ptp(true))
    correlation = float(np.corrcoef(scores, true)[0, 1]) if spread else 1.0
    good = largest <= FP32_SCORES * max(0.1, spread) if exact else correlation >= INT8_CORRELATION
    text = f"scores {true.min():.3g} to {true.max():.3g} differ from the original's by {largest:.2g} at most"
    return Measured(good, f"{text}, correlation {correlation:.6f}; tokens equal on {len(true)} pairs")


def _vectors(files: ModelFiles) -> tuple[list[list[int]], Array]:
    from hyce.embed import OnnxEmbedder

    embedder = OnnxEmbedder(files)
    made = embedder.embed(TEXTS) + embedder.embed(QUESTIONS, query=True)
    ids = [embedder.given(text)[0] for text in TEXTS]
    ids += [embedder.given(question, query=True)[0] for question in QUESTIONS]
    return ids, np.array([each.vector for each in made], np.float64)


def _scores(files: ModelFiles) -> tuple[list[list[int]], Array]:
    from hyce.cross_encoder import OnnxCrossEncoder

    model = OnnxCrossEncoder(files)
    scores = [model.score(question, TEXTS) for question in QUESTIONS]
    return [model.given(*pair)[0] for pair in pairs()], np.concatenate(scores).astype(np.float64)


# -- BERT in double precision ----------------------------------------------------------------------------


def of_weights(original: Original, weights: Mapping[str, NDArray[np.float32]]) -> Reference:
    """What a BERT encoder of these weights gives."""
    bert = Bert(original.config, weights)
    encodings = encoded(original)
    ids = [each.ids for each in encodings]
    if original.kind == "cross-encoder":
        return Reference(ids, bert.scores(ids, [each.type_ids for each in encodings]))
    return Reference(ids, bert.vectors(ids, original.pooling))


class Bert:
    """The forward pass of a BERT encoder. Weights are widened one at a time: word tables are large."""

    def __init__(self, config: Mapping[str, Any], weights: Mapping[str, NDArray[np.float32]]) -> None:
        self.weights = weights
        self.layers = int(config["num_hidden_layers"])
        self.heads = int(config["num_attention_heads"])
        self.epsilon = float(config["layer_norm_eps"])

    def vectors(self, ids: Sequence[list[int]], pooling: str) -> Array:
        """(texts, dimensions), each of length 1. pooling: mean or cls."""
        rows = self.hidden(ids, [[0] * len(each) for each in ids])
        pooled = np.array([each[0] if pooling == "cls" else each.mean(axis=0) for each in rows])
        return np.asarray(pooled / np.maximum(np.linalg.norm(pooled, axis=1, keepdims=True), 1e-12))

    def scores(self, ids: Sequence[list[int]], types: Sequence[list[int]]) -> Array:
        """(texts,): the classifier's one output."""
        first = np.array([each[0] for each in self.hidden(ids, types)])
        return self.dense(np.tanh(self.dense(first, "pooler.dense")), "classifier")[:, 0]

    def hidden(self, ids: Sequence[list[int]], types: Sequence[list[int]]) -> list[Array]:
        """The last hidden state of each text: (length, dimensions). All go through a layer together."""
        words, places, segments = (
            self.weights[f"embeddings.{name}_embeddings.weight"]
            for name in ("word", "position", "token_type")
        )
        ends = np.cumsum([len(each) for each in ids])[:-1]
        x = words[np.concatenate(ids)].astype(np.float64) + segments[np.concatenate(types)]
        x = x + np.concatenate([places[: len(each)] for each in ids])
        x = self.norm(x, "embeddings.LayerNorm")
        for layer in range(self.layers):
            name = f"encoder.layer.{layer}"
            mixed = self.attention(x, ends, f"{name}.attention.self")
            mixed = self.dense(mixed, f"{name}.attention.output.dense")
            x = self.norm(x + mixed, f"{name}.attention.output.LayerNorm")
            wide = self.dense(x, f"{name}.intermediate.dense")
            wide = wide * (1 + _erf(wide / math.sqrt(2))) / 2
            x = self.norm(x + self.dense(wide, f"{name}.output.dense"), f"{name}.output.LayerNorm")
        return np.split(x, ends)

    def attention(self, x: Array, ends: NDArray[np.int64], name: str) -> Array:
        """Each text's tokens attend to those of the same text."""
        parts = (np.split(self.dense(x, f"{name}.{part}"), ends) for part in ("query", "key", "value"))
        return np.concatenate([self.attended(*each) for each in zip(*parts, strict=True)])

    def attended(self, q: Array, k: Array, v: Array) -> Array:
        width = q.shape[1] // self.heads
        mixed = np.empty_like(q)
        for head in range(self.heads):
            part = slice(head * width, (head + 1) * width)
            scores = q[:, part] @ k[:, part].T / math.sqrt(width)
            scores = np.exp(scores - scores.max(axis=1, keepdims=True))
            mixed[:, part] = scores / scores.sum(axis=1, keepdims=True) @ v[:, part]
        return mixed

    def norm(self, x: Array, name: str) -> Array:
        scaled = (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + self.epsilon)
        return np.asarray(scaled * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"])

    def dense(self, x: Array, name: str) -> Array:
        return np.asarray(
            x @ self.weights[f"{name}.weight"].T.astype(np.float64) + self.weights[f"{name}.bias"]
        )


def _erf(x: Array) -> Array:
    """The error function to 1.5e-7, which is what fp32 tells apart: Abramowitz and Stegun, 7.1.26."""
    t = 1 / (1 + 0.3275911 * np.abs(x))
    factors = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)
    polynomial = np.zeros_like(x)
    for factor in factors:
        polynomial = (polynomial + factor) * t
    return np.asarray(np.sign(x) * (1 - polynomial * np.exp(-x * x)))
