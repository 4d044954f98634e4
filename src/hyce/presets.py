"""Named sets of settings: `preset = "paper"` at the top of hyce.toml, or `--preset paper`.

A preset's values stand right below the settings of the place that names it: what is written beside it wins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Preset:
    """Settings that belong together."""

    description: str
    settings: Mapping[str, Any]
    """Values by "section.key"."""


_PAPER: dict[str, Any] = {
    "passages.kind": "llm",
    "index.token_vectors": False,
    "retrieval.dense": True,
    "retrieval.lexical": False,
    "retrieval.vocabulary": False,
    "retrieval.join": False,
    "retrieval.clusters": False,
    "retrieval.candidates": 20,
    "retrieval.passages": 5,
    "retrieval.transform": "none",
    "retrieval.decide": False,
    "commands.matching": "joint",
    "llm.prompt": "plain",
    "llm.temperature": 0.0,
    "llm.max_output_tokens": 4096,
    "llm.context_tokens": 128000,
}

PRESETS: dict[str, Preset] = {
    "paper": Preset(
        "The published HyCE, its appendix A, with the models that run on this machine.",
        {
            **_PAPER,
            "model.kind": "onnx",
            "model.name": "multi-qa-MiniLM-L6-cos-v1",
            "model.precision": "fp32",
            "model.late_chunking": False,
            "retrieval.rerank": "cross-encoder",
            "reranker.name": "ms-marco-MiniLM-L-12-v2",
            "reranker.precision": "fp32",
        },
    ),
    "paper-nvidia": Preset(
        "The same with the served models that its appendix A lists first; set model.base_url and "
        "reranker.base_url.",
        {
            **_PAPER,
            "model.kind": "openai",
            "model.late_chunking": False,
            "model.name": "nvidia/llama-3.2-nv-embedqa-1b-v1",
            "model.input_type": True,
            "model.max_tokens": 8192,
            "retrieval.rerank": "endpoint",
            "reranker.name": "nvidia/llama-3.2-nv-rerankqa-1b-v1",
            "reranker.form": "nim",
        },
    ),
    "multilingual": Preset(
        "For documentation in other languages than English: a model for about 100 languages.",
        {"model.kind": "onnx", "model.name": "multilingual-e5-small"},
    ),
}
