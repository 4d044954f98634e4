"""Vectors: against sentence-transformers, and whatever a text and its company are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hyce import models
from hyce.embed import OnnxEmbedder
from hyce.errors import ModelError

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parent / "golden" / "minilm.json").read_text("utf-8"))
NAME = "all-MiniLM-L6-v2"
TEXTS = ["How long may a job run?", "disk", "The queue is full. " * 40, "", "Files are kept for 60 days."]


@pytest.fixture(scope="module", params=models.PRECISIONS)
def embedder(request: pytest.FixtureRequest, model_folder: Path) -> OnnxEmbedder:
    return OnnxEmbedder(models.find(NAME, request.param, model_folder), threads=2)


@pytest.fixture(scope="module")
def exact(model_folder: Path) -> OnnxEmbedder:
    return OnnxEmbedder(models.find(NAME, "fp32", model_folder), threads=2)


def vectors(embedder: OnnxEmbedder, texts: list[str]) -> np.ndarray[Any, Any]:
    return np.array([found.vector for found in embedder.embed(texts)])


def test_fp32_equals_sentence_transformers(exact: OnnxEmbedder) -> None:
    found = vectors(exact, GOLDEN["texts"])
    np.testing.assert_allclose(found[:, :8], GOLDEN["first"], atol=1e-5)
    np.testing.assert_allclose(found @ found.T, GOLDEN["cosines"], atol=1e-5)


def test_int8_keeps_the_cosines(model_folder: Path, exact: OnnxEmbedder) -> None:
    quick = OnnxEmbedder(models.find(NAME, "int8", model_folder))
    found, true = vectors(quick, GOLDEN["texts"]), vectors(exact, GOLDEN["texts"])
    same = (found * true).sum(1)
    assert same.mean() > 0.99
    assert same.min() > 0.98
    np.testing.assert_allclose(found @ found.T, GOLDEN["cosines"], atol=0.04)


def test_a_vector_does_not_depend_on_its_company(embedder: OnnxEmbedder) -> None:
    together = embedder.embed(TEXTS, tokens=True)
    for text, found in zip(TEXTS, together, strict=True):
        (alone,) = embedder.embed([text], tokens=True)
        assert np.array_equal(alone.vector, found.vector)
        assert np.array_equal(alone.tokens, found.tokens)
    single = OnnxEmbedder(embedder.files, threads=1)
    assert np.array_equal(vectors(single, TEXTS[::-1]), vectors(embedder, TEXTS)[::-1])


def test_vectors_have_length_one(embedder: OnnxEmbedder) -> None:
    for found in embedder.embed(TEXTS, tokens=True):
        assert found.vector.shape == (embedder.dimensions,)
        assert found.vector.dtype == np.float32
        assert np.linalg.norm(found.vector) == pytest.approx(1, abs=1e-5)
        np.testing.assert_allclose(np.linalg.norm(found.tokens, axis=1), 1, atol=1e-5)


def test_token_vectors_have_an_id_each_and_no_special_tokens(embedder: OnnxEmbedder) -> None:
    (found,) = embedder.embed(["The queue"], tokens=True)
    assert found.token_ids == (1996, 24240)
    assert found.tokens.shape == (2, embedder.dimensions)
    (without,) = embedder.embed(["The queue"])
    assert without.tokens.shape == (0, embedder.dimensions)
    assert without.token_ids == ()
    assert np.array_equal(without.vector, found.vector)


def test_nothing_gives_nothing(model_folder: Path) -> None:
    assert OnnxEmbedder(models.find(NAME, "int8", model_folder)).embed([]) == []


def test_a_long_text_is_cut(embedder: OnnxEmbedder) -> None:
    most = embedder.files.max_tokens - 2
    (whole,) = embedder.embed(["queue " * most], tokens=True)
    (long,) = embedder.embed(["queue " * most + "of the other cluster " * 5000], tokens=True)
    assert len(long.tokens) == len(long.token_ids) == most
    assert np.array_equal(long.vector, whole.vector)


def test_length_counts_all_tokens(embedder: OnnxEmbedder) -> None:
    assert embedder.length("") == 0
    assert embedder.length("The queue") == 2
    assert embedder.length("queue " * 1000) == 1000


@pytest.mark.parametrize(
    "text",
    ["", " \n\t ", "\x00\x01\x02", "\ud800 half a character \udfff", "ÿþ" * 500, "x" * 100_000, "😀" * 3000],
    ids=["empty", "blank", "control", "surrogates", "binary", "one word", "emoji"],
)
def test_odd_texts_have_vectors(embedder: OnnxEmbedder, text: str) -> None:
    (found,) = embedder.embed([text], tokens=True)
    assert np.isfinite(found.vector).all()
    assert (
        len(found.tokens) == len(found.token_ids) == min(embedder.length(text), embedder.files.max_tokens - 2)
    )


def test_threads_are_at_most_what_the_process_may_use(model_folder: Path) -> None:
    import os

    files = models.find(NAME, "int8", model_folder)
    assert 1 <= OnnxEmbedder(files).threads <= min(4, len(os.sched_getaffinity(0)))
    assert OnnxEmbedder(files, threads=3).threads == 3


@pytest.mark.parametrize("broken", ["int8.onnx", "tokenizer.json"])
def test_a_broken_file_is_an_error_with_a_remedy(tmp_path: Path, model_folder: Path, broken: str) -> None:
    import shutil

    shutil.copytree(model_folder / NAME, tmp_path / NAME)
    files = models.find(NAME, "int8", tmp_path)
    path = tmp_path / NAME / broken
    path.write_bytes(b"\xff" * path.stat().st_size)
    with pytest.raises(ModelError, match=f"{broken}: broken .*hyce models pull"):
        OnnxEmbedder(files).embed(["disk"])
