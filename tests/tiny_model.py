"""A BERT model with random weights, small enough to be made in a test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "job", "queue", "node", "disk", "##s", "full", "wait", "time"]
HIDDEN, INNER, LAYERS, HEADS, POSITIONS = 32, 64, 2, 4, 24

CONFIG: dict[str, Any] = {
    "model_type": "bert",
    "hidden_act": "gelu",
    "hidden_size": HIDDEN,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "layer_norm_eps": 1e-12,
    "max_position_embeddings": POSITIONS,
}

HEAD = {
    "bert.pooler.dense.weight": (HIDDEN, HIDDEN),
    "bert.pooler.dense.bias": (HIDDEN,),
    "classifier.weight": (1, HIDDEN),
    "classifier.bias": (1,),
}
"""What a cross-encoder has beside the encoder."""


def weights(seed: int = 0) -> dict[str, NDArray[np.float32]]:
    """Random tensors under the names that transformers gives them."""
    random = np.random.default_rng(seed)
    tensors: dict[str, NDArray[np.float32]] = {}

    def add(name: str, *shape: int, mean: float = 0.0) -> None:
        tensors[name] = (random.normal(size=shape) * 0.3 + mean).astype(np.float32)

    def norm(name: str) -> None:
        add(name + ".weight", HIDDEN, mean=1.0)
        add(name + ".bias", HIDDEN)

    def dense(name: str, given: int, wanted: int) -> None:
        add(name + ".weight", wanted, given)
        add(name + ".bias", wanted)

    add("embeddings.word_embeddings.weight", len(WORDS), HIDDEN)
    add("embeddings.position_embeddings.weight", POSITIONS, HIDDEN)
    add("embeddings.token_type_embeddings.weight", 2, HIDDEN)
    norm("embeddings.LayerNorm")
    for layer in range(LAYERS):
        prefix = f"encoder.layer.{layer}."
        for part in ("query", "key", "value"):
            dense(f"{prefix}attention.self.{part}", HIDDEN, HIDDEN)
        dense(prefix + "attention.output.dense", HIDDEN, HIDDEN)
        norm(prefix + "attention.output.LayerNorm")
        dense(prefix + "intermediate.dense", HIDDEN, INNER)
        dense(prefix + "output.dense", INNER, HIDDEN)
        norm(prefix + "output.LayerNorm")
    return tensors


def write_cross_encoder(folder: Path, seed: int = 0) -> Path:
    """A folder with a cross-encoder: the encoder, BERT's pooler and a classifier of one score."""
    write(folder, seed)
    random = np.random.default_rng(seed + 1000)
    tensors = {f"bert.{name}": tensor for name, tensor in weights(seed).items()}
    for name, shape in HEAD.items():
        tensors[name] = (random.normal(size=shape) * 0.5).astype(np.float32)
    save_file(tensors, folder / "model.safetensors")
    classifier = {"architectures": ["BertForSequenceClassification"], "id2label": {"0": "LABEL_0"}}
    (folder / "config.json").write_text(json.dumps(CONFIG | classifier), encoding="utf-8")
    (folder / "1_Pooling" / "config.json").unlink()
    return folder


def write(folder: Path, seed: int = 0) -> Path:
    """A folder such as sentence-transformers saves."""
    folder.mkdir(parents=True, exist_ok=True)
    save_file(weights(seed), folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 12}', encoding="utf-8")
    (folder / "1_Pooling").mkdir(exist_ok=True)
    modes = {"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(modes), encoding="utf-8")
    special = [{"id": number, "content": word, "special": True} for number, word in enumerate(WORDS[:4])]
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    ends = [{"SpecialToken": {"id": word, "type_id": 0}} for word in ("[CLS]", "[SEP]")]
    second = [{"Sequence": {"id": "B", "type_id": 1}}, {"SpecialToken": {"id": "[SEP]", "type_id": 1}}]
    tokenizer = {
        "version": "1.0",
        "truncation": {"max_length": 5, "strategy": "LongestFirst", "stride": 0, "direction": "Right"},
        "padding": None,
        "added_tokens": [entry | plain for entry in special],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": True,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [ends[0], {"Sequence": {"id": "A", "type_id": 0}}, ends[1]],
            "pair": [ends[0], {"Sequence": {"id": "A", "type_id": 0}}, ends[1], *second],
            "special_tokens": {
                word: {"id": word, "ids": [number], "tokens": [word]}
                for number, word in ((2, "[CLS]"), (3, "[SEP]"))
            },
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {word: number for number, word in enumerate(WORDS)},
        },
    }
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    return folder
