"""A model's original folder, as sentence-transformers saves it -> what its settings say about the model."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from hyce.conversion.weights import read_json
from hyce.errors import ModelError
from hyce.models import Kind

Pooling = Literal["mean", "cls", "other"]

_POSITIONS_TAKEN = {"roberta": 2, "xlm-roberta": 2, "camembert": 2, "mpnet": 2}
"""These models count positions from behind the padding's, so as many of the table's rows are never used."""

_PROMPTS = {
    re.compile(r"(multilingual-)?e5-(small|base|large)(-v2|-unsupervised)?"): ("query: ", "passage: "),
    re.compile(r"bge-(small|base|large)-en(-v1\.5)?"): (
        "Represent this sentence for searching relevant passages: ",
        "",
    ),
}
"""What models of these names want before a question and before a passage; their folders don't say it."""


@dataclass(frozen=True, slots=True)
class Original:
    """What is needed to make another form of the same model."""

    folder: Path
    config: Mapping[str, Any]
    """Of config.json."""
    kind: Kind
    pooling: Pooling
    max_tokens: int
    query_prompt: str
    passage_prompt: str
    obstacle: str
    """Why no graph can be built from the weights alone; empty where it can."""
    notes: tuple[str, ...]

    @property
    def tokenizer(self) -> Path:
        return self.folder / "tokenizer.json"

    @property
    def weights(self) -> Path:
        return self.folder / "model.safetensors"

    @property
    def export(self) -> Path:
        return self.folder / "onnx" / "model.onnx"


def read(folder: Path, name: str) -> Original:
    """What the folder says. name: the model's, by which a few are known to want prompts.

    Raises ModelError where it is no such folder, or the model scores more than one thing.
    """
    if not (folder / "config.json").is_file():
        raise ModelError(
            f"{folder / 'config.json'}: missing; the folder must be one that sentence-transformers saved"
        )
    config = read_json(folder / "config.json")
    said = _optional(folder / "config_sentence_transformers.json")
    kind = _kind(config, said)
    if kind == "cross-encoder":
        labels = config.get("id2label")
        count = len(labels) if isinstance(labels, dict) else config.get("num_labels", 2)
        if count != 1:
            raise ModelError(f"{folder}: its model tells {count} classes apart; a reranker gives one score")
    pooling = _pooling(folder) if kind == "bi-encoder" else "cls"
    query, passage = _prompts(said, name) if kind == "bi-encoder" else ("", "")
    pooling_said = _optional(folder / "1_Pooling" / "config.json")
    if (query or passage) and pooling_said.get("include_prompt") is False:
        raise ModelError(f"{folder}: its pooling leaves prompts out; take another model")
    notes = []
    if said.get("similarity_fn_name") in ("dot", "dot_product"):
        notes.append("made for dot products; its vectors are compared by their angle here")
    return Original(
        folder=folder,
        config=config,
        kind=kind,
        pooling=pooling,
        max_tokens=_max_tokens(folder, config),
        query_prompt=query,
        passage_prompt=passage,
        obstacle=_obstacle(folder, config, pooling),
        notes=tuple(notes),
    )


def _kind(config: Mapping[str, Any], said: Mapping[str, Any]) -> Kind:
    architectures = config.get("architectures")
    first = str(architectures[0]) if isinstance(architectures, list) and architectures else ""
    if first.endswith("ForSequenceClassification"):
        return "cross-encoder"
    if said.get("model_type") in ("CrossEncoder", "SparseEncoder", "MultiVectorEncoder"):
        raise ModelError(f"config.json: a {said['model_type']} of {first or 'no class'} is not supported")
    return "bi-encoder"


def _obstacle(folder: Path, config: Mapping[str, Any], pooling: Pooling) -> str:
    if config.get("model_type") != "bert":
        return f"model_type is {str(config.get('model_type'))[:40]!r}"
    further = [kind for kind in _modules(folder) if kind not in ("Transformer", "Pooling", "Normalize")]
    if further:
        return f"it has a module {further[0][:40]}"
    if pooling == "other":
        return "its pooling is neither mean nor cls"
    return "its weights are in several files" if (folder / "model.safetensors.index.json").is_file() else ""


def _modules(folder: Path) -> list[str]:
    """The classes of the model's modules, in their order; empty where the folder doesn't say."""
    path = folder / "modules.json"
    if not path.is_file():
        return []
    try:
        return [str(module["type"]).rpartition(".")[2] for module in json.loads(path.read_text("utf-8"))]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise ModelError(f"{path}: no list of modules ({error}); fetch it again") from error


def _pooling(folder: Path) -> Pooling:
    path = folder / "1_Pooling" / "config.json"
    if not path.is_file():
        return "mean"
    said = read_json(path)
    modes = {key for key, on in said.items() if key.startswith("pooling_mode_") and on is True}
    mode = said.get("pooling_mode")
    modes |= {f"pooling_mode_{mode}"} if isinstance(mode, str) else set()
    if modes in ({"pooling_mode_mean_tokens"}, {"pooling_mode_mean"}):
        return "mean"
    return "cls" if modes in ({"pooling_mode_cls_token"}, {"pooling_mode_cls"}) else "other"


def _max_tokens(folder: Path, config: Mapping[str, Any]) -> int:
    """What sentence-transformers cuts texts to, and never more than there are positions."""
    try:
        positions = int(config.get("max_position_embeddings", 512))
        positions -= _POSITIONS_TAKEN.get(str(config.get("model_type")), 0)
        given = _optional(folder / "sentence_bert_config.json").get("max_seq_length")
        given = given or _optional(folder / "tokenizer_config.json").get("model_max_length")
        most = min(int(given), positions) if given else positions
    except (TypeError, ValueError, OverflowError) as error:
        raise ModelError(f"{folder}: its longest text is no number ({error}); fetch it again") from error
    if most < 8:
        raise ModelError(f"{folder}: takes texts of {most} tokens only; take another model")
    return most


def _prompts(said: Mapping[str, Any], name: str) -> tuple[str, str]:
    """What stands before a question and before a passage."""
    given = said.get("prompts")
    given = given if isinstance(given, dict) else {}
    prompts = {key: text for key, text in given.items() if isinstance(text, str)}
    query = prompts.get("query", "")
    passage = next((prompts[key] for key in ("document", "passage", "corpus") if prompts.get(key)), "")
    if query or passage:
        return query, passage
    return next((found for pattern, found in _PROMPTS.items() if pattern.fullmatch(name)), ("", ""))


def _optional(path: Path) -> dict[str, Any]:
    """A JSON object from a file; an empty one where the file is missing."""
    return read_json(path) if path.is_file() else {}
