# mypy: disable-error-code="import-not-found, misc"
"""Run by a Python with torch, never imported: a model's folder -> an ONNX graph, and the model's own results.

    python -I torch_export.py ORIGINAL TARGET < request.json

The request: kind, and the texts or pairs to be compared on. Writes into TARGET: graph.onnx with the inputs
and outputs of graph.py, tokenizer.json, reference.npz (values) and facts.json (ids and sizes).
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

LOADING: dict[str, Any] = {"device": "cpu", "local_files_only": True, "trust_remote_code": False}
MODEL = {"use_safetensors": True, "dtype": torch.float32}


class Vectors(torch.nn.Module):
    """A sentence-transformers model for one text: ids -> vector, tokens, hidden."""

    def __init__(self, model: Any, tokens: bool) -> None:
        super().__init__()
        self.model = model
        self.tokens = tokens

    def forward(self, ids: Any) -> Any:
        long = ids.long()
        made = self.model({"input_ids": long, "attention_mask": torch.ones_like(long)})
        vector = torch.nn.functional.normalize(made["sentence_embedding"], dim=-1)
        if not self.tokens:
            return vector
        rows = made["token_embeddings"]
        return vector, torch.nn.functional.normalize(rows, dim=-1), rows * 1.0


class Score(torch.nn.Module):
    """A classifier with one output for one pair: ids, types -> score."""

    def __init__(self, model: Any, with_types: bool) -> None:
        super().__init__()
        self.model = model
        self.with_types = with_types

    def forward(self, ids: Any, types: Any = None) -> Any:
        long = ids.long()
        given = {"input_ids": long, "attention_mask": torch.ones_like(long)}
        if self.with_types:
            given["token_type_ids"] = types.long()
        return self.model(**given).logits[:, 0]


def export(module: Any, target: Path, inputs: list[str], outputs: list[str], ids: list[int]) -> None:
    """Write the module's graph, for texts of any length."""
    length = {name: {1: "length"} for name in [*inputs, "tokens", "hidden"] if name in [*inputs, *outputs]}
    example = torch.tensor([ids], dtype=torch.int32)
    given = tuple(example if name == "ids" else torch.zeros_like(example) for name in inputs)
    torch.onnx.export(
        module.eval(),
        given,
        str(target),
        input_names=inputs,
        output_names=outputs,
        dynamic_axes=length,
        opset_version=17,
        dynamo=False,  # needs no further package; what it may get wrong is found by comparing afterwards
    )


def bi_encoder(folder: str, target: Path, texts: list[str]) -> tuple[Any, Any, dict[str, Any]]:
    """Export; (tokenizer, values, facts)."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(folder, model_kwargs=dict(MODEL), **LOADING).float().eval()
    tokenizer = model.tokenizer
    most = int(min(model.max_seq_length or 512, 1 << 20))
    values = model.encode(texts, prompt="", normalize_embeddings=True, show_progress_bar=False)
    ids = tokenizer(texts, truncation=True, max_length=most)["input_ids"]
    example = max(ids, key=len)[:16]
    with torch.no_grad():
        rows = model(
            {"input_ids": torch.tensor([example]), "attention_mask": torch.ones(1, len(example)).long()}
        )["token_embeddings"]
    kinds = {type(module).__name__ for module in model}
    tokens = rows.shape[-1] == values.shape[1] and kinds <= {"Transformer", "Pooling", "Normalize"}
    outputs = ["vector", "tokens", "hidden"] if tokens else ["vector"]
    export(Vectors(model, tokens), target / "graph.onnx", ["ids"], outputs, example)
    facts = {"ids": ids, "max_tokens": most, "dimensions": int(values.shape[1]), "token_vectors": tokens}
    return tokenizer, values, facts


def cross_encoder(folder: str, target: Path, pairs: list[list[str]]) -> tuple[Any, Any, dict[str, Any]]:
    """Export; (tokenizer, values, facts). The scores are raw: no activation."""
    from sentence_transformers import CrossEncoder

    model = CrossEncoder(folder, model_kwargs=dict(MODEL), **LOADING)
    tokenizer = model.tokenizer
    most = getattr(model, "max_seq_length", None) or model.max_length or tokenizer.model_max_length
    most = int(min(most, 1 << 20))
    values = model.predict(
        [tuple(pair) for pair in pairs], activation_fn=torch.nn.Identity(), show_progress_bar=False
    )
    questions, texts = ([pair[number] for pair in pairs] for number in (0, 1))
    ids = tokenizer(questions, texts, truncation=True, max_length=most)["input_ids"]
    with_types = "token_type_ids" in tokenizer.model_input_names
    inputs = ["ids", "types"] if with_types else ["ids"]
    inner = model.model.float()
    export(Score(inner, with_types), target / "graph.onnx", inputs, ["score"], max(ids, key=len)[:16])
    return tokenizer, values, {"ids": ids, "max_tokens": most, "dimensions": 0, "token_vectors": False}


def main() -> None:
    """The whole of it."""
    folder, target = sys.argv[1], Path(sys.argv[2])
    request = json.load(sys.stdin)
    convert = bi_encoder if request["kind"] == "bi-encoder" else cross_encoder
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tokenizer, values, facts = convert(folder, target, request["texts"])
    tokenizer.backend_tokenizer.save(str(target / "tokenizer.json"))
    np.savez(target / "reference.npz", values=np.asarray(values, np.float64))
    (target / "facts.json").write_text(json.dumps(facts), encoding="utf-8")


if __name__ == "__main__":
    main()
