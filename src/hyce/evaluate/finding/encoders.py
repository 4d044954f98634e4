"""The name of a model -> what scores texts against a question, or why it can't be had on this machine.

Cross-encoders give the classifier's raw output, wherever they run: what their makers put on it doesn't change
an order. `output` says what becomes of it where scores themselves are shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hyce.config import Config, models_folder
from hyce.embed import Embedder
from hyce.endpoint import location
from hyce.errors import HyceError, ModelError
from hyce.models import Kind, ModelFiles, find
from hyce.rerank import Reranker

Output = Literal["raw", "sigmoid", "cosine", "as served"]
Backend = Literal["onnx", "sentence-transformers"]
Vector = NDArray[np.float32]
Embed = Callable[[Sequence[str], bool], Sequence[Vector]]
"""Texts, and whether they are questions -> a vector of length 1 for each."""

LABELS: Mapping[Kind, str] = {
    "cross-encoder": "cross-encoder",
    "bi-encoder": "bi-encoder (extension)",
}
"""The paper's first table has cross-encoders only."""

SERVED = "nvidia/llama-3.2-nv-rerankqa-1b-v1"
PAPER: Mapping[str, Output] = {
    SERVED: "raw",
    "cross-encoder/ms-marco-MiniLM-L-12-v2": "raw",
    "cross-encoder/stsb-roberta-large": "sigmoid",
    "dangvantuan/CrossEncoder-camembert-large": "sigmoid",
    "yunyu/cross-encoder-stsb-deberta-v3-large": "sigmoid",
}
"""The cross-encoders of the paper's first table, and what their published scores are: those that learnt to
rate likeness from 0 to 1 put a sigmoid on the classifier's output."""


@dataclass(frozen=True, slots=True)
class Encoder:
    """A model by its name, ready to score or not."""

    name: str
    kind: Kind
    model: Reranker | None
    """None where it can't be had."""
    output: Output = "raw"
    where: str = ""
    """What runs it."""
    unavailable: str = ""
    """Why it can't be had, and what to do."""


class Cosine:
    """A Reranker made of a bi-encoder: the cosine of question and text. Texts are embedded once."""

    def __init__(self, embed: Embed) -> None:
        self._embed = embed
        self._known: dict[str, Vector] = {}

    def score(self, question: str, texts: Sequence[str]) -> Vector:
        """Shape (len(texts),): -1 to 1."""
        if not texts:
            return np.empty(0, np.float32)
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            self._known |= dict(zip(new, self._embed(new, False), strict=True))
        (asked,) = self._embed([question], True)
        scores: Vector = np.stack([self._known[text] for text in texts]) @ asked
        return scores


def cosine(embedder: Embedder) -> Cosine:
    """What compares by the embedder's vectors."""
    return Cosine(lambda texts, query: [each.vector for each in embedder.embed(texts, query=query)])


def wanted(config: Config, models: Sequence[str] = (), bi_encoders: Sequence[str] = ()) -> dict[str, Kind]:
    """The models to compare by name: those given, else the paper's and the configured bi-encoder."""
    if not models and not bi_encoders:
        models, bi_encoders = list(PAPER), [config.model.name]
    named: dict[str, Kind] = {}
    named.update(dict.fromkeys(models, "cross-encoder"))
    named.update(dict.fromkeys(bi_encoders, "bi-encoder"))
    return named


def open_encoder(name: str, kind: Kind, config: Config, backend: Backend = "onnx") -> Encoder:
    """The model of this name. One that can't be had says why.

    A name of the settings that is served is asked for at its endpoint; everything else runs on this machine.
    backend: what runs it there. A model that is here at fp32 alone is taken as it is.
    """
    output: Output = PAPER.get(name, "raw") if kind == "cross-encoder" else "cosine"
    try:
        served = _served(name, kind, config)
        if served:
            # What form a gateway of Cohere's kind gives its scores is not known; the others give raw ones.
            unknown = kind == "cross-encoder" and config.reranker.form == "cohere"
            return Encoder(name, kind, served, "as served" if unknown else output, "endpoint")
        if backend == "sentence-transformers" and name != SERVED:
            return Encoder(name, kind, _with_torch(name, kind), output, backend)
        files = _files(name, kind, config)
        model = _on_this_machine(files, config.model.threads)
        return Encoder(name, kind, model, output, f"this machine, {files.precision}")
    except HyceError as error:
        return Encoder(name, kind, None, output, unavailable=str(error))


def sends_outside(models: Mapping[str, Kind], config: Config) -> bool:
    """Whether questions leave the site for one of these models. One that may not be used is sent none."""
    served = (kind for name, kind in models.items() if _is_served(name, kind, config))
    return any(_is_outside("reranker" if kind == "cross-encoder" else "model", config) for kind in served)


def _is_outside(section: Literal["model", "reranker"], config: Config) -> bool:
    try:
        return location(config, section) == "outside"
    except HyceError:
        return False


def _is_served(name: str, kind: Kind, config: Config) -> bool:
    if kind == "cross-encoder":
        return name == config.reranker.name and bool(config.reranker.base_url)
    return name == config.model.name and config.model.kind != "onnx"


def _served(name: str, kind: Kind, config: Config) -> Reranker | None:
    """The model at an endpoint, where the settings name it there. Raises PolicyError or ConfigError."""
    if not _is_served(name, kind, config):
        return None
    if kind == "cross-encoder":
        from hyce.served_reranker import ServedReranker

        return ServedReranker(config)
    from hyce.served_embedder import ServedEmbedder

    return cosine(ServedEmbedder(config))


def _on_this_machine(files: ModelFiles, threads: int) -> Reranker:
    if files.kind == "cross-encoder":
        from hyce.cross_encoder import OnnxCrossEncoder

        return OnnxCrossEncoder(files, threads)
    from hyce.embed import OnnxEmbedder

    return cosine(OnnxEmbedder(files, threads))


def _files(name: str, kind: Kind, config: Config) -> ModelFiles:
    """The model's files, by its name here or at the model hub. Raises ModelError."""
    from hyce.conversion.fetch import HUB, KNOWN, at_hub

    short, _ = at_hub(name)
    folder = models_folder(config, short)
    if not (folder / short / "model.json").is_file():
        if name == SERVED:
            raise ModelError(
                "NVIDIA serves it (NIM), no file of it can be had; set reranker.base_url, "
                f'reranker.form = "nim" and reranker.name = "{SERVED}"'
            )
        get = f"pull {short}" if short in HUB or short in KNOWN else f"convert {name}"
        known = "/" in name or get.startswith("pull")
        remedy = f"get it with `hyce models {get}`" if known else "`hyce models list` shows those that are"
        raise ModelError(f"not on this machine; {remedy}")
    precision = config.reranker.precision if kind == "cross-encoder" else config.model.precision
    if not (folder / short / f"{precision}.onnx").is_file():
        precision = "fp32"
    return find(short, precision, folder, kind)


# -- sentence-transformers -------------------------------------------------------------------------------


def require_sentence_transformers() -> None:
    """Nothing, where the package is there. Raises ModelError, with the remedy."""
    from importlib.util import find_spec

    if find_spec("sentence_transformers") is None:
        raise ModelError(
            "sentence-transformers is not installed; run `pip install 'hyce[similarity]'`, or leave out "
            "--backend"
        )


def _with_torch(name: str, kind: Kind) -> Reranker:
    """The model as the package loads it: from a folder, its cache, or the hub. Raises ModelError."""
    require_sentence_transformers()
    from sentence_transformers import CrossEncoder, SentenceTransformer
    from transformers.utils import logging

    logging.disable_progress_bar()  # it would be in the way of our own
    local = Path(name).is_dir() or not _at_hub(name)
    remedy = "name the model's folder, or try where there is internet"
    if kind == "cross-encoder":
        return _TorchPairs(_said("load it", lambda: CrossEncoder(name, local_files_only=local), remedy))
    model = _said("load it", lambda: SentenceTransformer(name, local_files_only=local), remedy)

    def embed(texts: Sequence[str], query: bool) -> Sequence[Vector]:
        encode = model.encode_query if query else model.encode_document
        options = {"normalize_embeddings": True, "show_progress_bar": False}
        vectors: Sequence[Vector] = _said("embed a text", lambda: encode(list(texts), **options))
        return vectors

    return Cosine(embed)


def _at_hub(name: str) -> bool:
    """Whether the hub is there and has it: where it isn't, the package would try for a minute."""
    import huggingface_hub

    try:
        address = huggingface_hub.hf_hub_url(name, "config.json")
        huggingface_hub.get_hf_file_metadata(address, timeout=5)
    except Exception:  # its errors and those of the HTTP library below share no base
        return False
    return True


class _TorchPairs:
    """A Reranker: a cross-encoder without the activation that the package would put on."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def score(self, question: str, texts: Sequence[str]) -> Vector:
        pairs = [(question, text) for text in texts]
        options = {"activation_fn": lambda logits: logits, "show_progress_bar": False}
        scores = _said("score a pair", lambda: self._model.predict(pairs, **options))
        if scores.shape != (len(texts),):
            raise ModelError(f"it tells {scores.shape[-1]} classes apart; take a model that gives one score")
        return np.asarray(scores, np.float32)


def _said(what: str, do: Callable[[], Any], remedy: str = "take another model") -> Any:
    """What `do` returns. The package's errors share no base: each becomes a ModelError."""
    try:
        return do()
    except Exception as error:
        reason = " ".join(str(error).split()).partition(". ")[0][:200] or type(error).__name__
        raise ModelError(f"sentence-transformers can't {what} ({reason}); {remedy}") from error
