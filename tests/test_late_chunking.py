"""Late chunking against the model's raw rows; windows that miss no passage."""

from __future__ import annotations

import dataclasses
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tiny_model
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from test_graph import reference, unit

from hyce import models
from hyce.config import Config, Index, Model
from hyce.embed import OnnxEmbedder, open_embedder
from hyce.errors import ConfigError, ModelError, StoreError
from hyce.index.embedded import open_index, open_writer
from hyce.indexing import index_sources, passage_settings
from hyce.late_chunking import LateEmbedder, windows
from hyce.models import ModelFiles

ROOM = 10
"""Tokens that the tiny model reads, special ones not counted."""
PASSAGES = ["job queue", "node", "disk full wait", "time", "queue disk node full", "jobs", "wait wait job"]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    models.pull("tiny", folder, source=tiny_model.write(folder / "original"))
    return folder


def files(folder: Path, precision: str = "fp32") -> ModelFiles:
    return models.find("tiny", precision, folder)


@pytest.fixture(scope="module")
def late(tiny: Path) -> LateEmbedder:
    return LateEmbedder(files(tiny), threads=2)


def rows(texts: list[str]) -> tuple[NDArray[Any], list[int]]:
    """The raw rows of texts side by side, special tokens at either end, and how many tokens each text has."""
    known = [[tiny_model.WORDS.index(w) for w in tokens(text)] for text in texts]
    ids = [2, *(number for text in known for number in text), 3]
    return reference(tiny_model.weights(), np.array(ids, np.int32)), [len(text) for text in known]


def tokens(text: str) -> list[str]:
    return [piece for word in text.split() for piece in (["job", "##s"] if word == "jobs" else [word])]


# -- vectors ------------------------------------------------------------------------------------------------


def test_a_vector_is_the_mean_of_the_passages_own_rows_in_the_page(late: LateEmbedder) -> None:
    texts = PASSAGES[:4]
    raw, lengths = rows(texts)
    assert lengths == [2, 1, 3, 1]
    found = list(late.embed_pages([texts], tokens=True))
    for embedding, (begin, end) in zip(found, [(1, 3), (3, 4), (4, 7), (7, 8)], strict=True):
        np.testing.assert_allclose(embedding.vector, unit(raw[begin:end].mean(axis=0)), atol=2e-6)
        np.testing.assert_allclose(embedding.tokens, unit(raw[begin:end]), atol=2e-6)
        assert embedding.vector.dtype == embedding.tokens.dtype == np.float32
    alone = late.embed(texts)
    assert max(float(one.vector @ other.vector) for one, other in zip(found, alone, strict=True)) < 0.999


def test_a_long_page_is_pooled_from_its_windows(late: LateEmbedder) -> None:
    lengths = [len(tokens(text)) for text in PASSAGES]
    found = list(late.embed_pages([PASSAGES]))
    made = windows(lengths, ROOM)
    assert len(made) > 1
    for window in made:
        raw, own = rows([PASSAGES[n] for n in window.shown])
        begin = 1
        for number, length in zip(window.shown, own, strict=True):
            if number in window.taken:
                expected = unit(raw[begin : begin + length].mean(axis=0))
                np.testing.assert_allclose(found[number].vector, expected, atol=2e-6)
            begin += length


@pytest.mark.parametrize("precision", models.PRECISIONS)
def test_a_page_of_one_passage_has_nearly_the_vector_that_it_has_alone(
    model_folder: Path, precision: str
) -> None:
    plain = models.find("all-MiniLM-L6-v2", precision, model_folder)
    text = "Storage > Quotas\nEach home holds 50 GB and is backed up every night, as long as it isn't full."
    embedder = LateEmbedder(plain)
    (found,) = embedder.embed_pages([[text]], tokens=True)
    (alone,) = embedder.embed([text], tokens=True)
    assert found.vector @ alone.vector > 0.99
    np.testing.assert_allclose(found.tokens, alone.tokens, atol=1e-5)
    assert found.token_ids == alone.token_ids


def test_pages_know_nothing_of_each_other_and_keep_their_order(late: LateEmbedder) -> None:
    pages = [PASSAGES[:2], [], ["node"], PASSAGES, ["full"]] * 30
    together = list(late.embed_pages(pages, tokens=True))
    alone = [found for page in pages for found in late.embed_pages([page], tokens=True)]
    assert len(together) == sum(map(len, pages))
    for one, other in zip(together, alone, strict=True):
        assert np.array_equal(one.vector, other.vector)
        assert np.array_equal(one.tokens, other.tokens)
        assert one.token_ids == other.token_ids


def test_questions_and_single_texts_are_embedded_as_ever(tiny: Path, late: LateEmbedder) -> None:
    plain = OnnxEmbedder(files(tiny))
    for one, other in zip(plain.embed(PASSAGES), late.embed(PASSAGES, query=True), strict=True):
        assert np.array_equal(one.vector, other.vector)


odd = st.text(st.sampled_from("jobs node\n\u00e9\u4e2d\U0001f600\u0301\x00\ud800 "), max_size=30) | st.text(
    max_size=30
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(odd, max_size=6), max_size=4))
def test_tokens_and_ids_line_up_whatever_the_text(late: LateEmbedder, pages: list[list[str]]) -> None:
    texts = [text for page in pages for text in page]
    found = list(late.embed_pages(pages, tokens=True))
    alone = late.embed(texts, tokens=True)
    assert len(found) == len(texts)
    for one, other in zip(found, alone, strict=True):
        assert one.token_ids == other.token_ids
        assert one.tokens.shape == other.tokens.shape
        assert np.isfinite(one.vector).all()
        assert np.linalg.norm(one.vector) == pytest.approx(1, abs=1e-5)
        np.testing.assert_allclose(np.linalg.norm(one.tokens, axis=1), 1, atol=1e-5)
    without = list(late.embed_pages(pages))
    assert all(w.tokens.shape == (0, late.dimensions) and w.token_ids == () for w in without)
    assert all(np.array_equal(w.vector, f.vector) for w, f in zip(without, found, strict=True))


# -- windows ------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 254), max_size=60))
def test_every_passage_is_whole_in_a_window_and_taken_from_one(lengths: list[int]) -> None:
    made = windows(lengths, 254)
    assert [number for window in made for number in window.taken] == list(range(len(lengths)))
    for window in made:
        assert set(window.taken) <= set(window.shown)
        assert sum(lengths[number] for number in window.shown) <= 254
    assert len(made) <= len(lengths)
    for one, other in pairwise(made):
        assert one.shown.start < other.shown.start
        assert one.shown.stop < other.shown.stop


def test_a_page_that_fits_is_one_window() -> None:
    (window,) = windows([100, 100, 54], 254)
    assert window.shown == window.taken == range(3)
    assert windows([], 254) == []


def test_windows_overlap_and_the_border_lies_in_the_middle_of_what_they_share() -> None:
    made = windows([25] * 16, 250)
    assert [window.shown for window in made] == [range(10), range(5, 15), range(10, 16)]
    assert [window.taken for window in made] == [range(7), range(7, 12), range(12, 16)]


# -- settings -----------------------------------------------------------------------------------------------


def wanted(folder: Path, **more: Any) -> Config:
    own = Model(name="tiny", folder=str(folder), precision="fp32", late_chunking=True)
    return Config(model=dataclasses.replace(own, **more))


def test_the_setting_gives_another_fingerprint(tiny: Path) -> None:
    embedder = open_embedder(wanted(tiny))
    assert isinstance(embedder, LateEmbedder)
    assert embedder.fingerprint == open_embedder(wanted(tiny, late_chunking=False)).fingerprint + "/late"


def test_models_that_can_not_are_refused(tiny: Path) -> None:
    with pytest.raises(ConfigError, match="late_chunking: tiny takes its vectors from one token"):
        LateEmbedder(dataclasses.replace(files(tiny), pooling="cls"))
    with pytest.raises(ConfigError, match="late_chunking needs a model on this machine"):
        open_embedder(wanted(tiny, kind="tei", base_url="http://127.0.0.1:1"))


def test_model_files_of_an_older_hyce_are_named_with_the_remedy(tiny: Path, tmp_path: Path) -> None:
    made = files(tiny)
    older = onnx.load(made.graph)
    del older.graph.output[2]
    onnx.save(older, tmp_path / "older.onnx")
    late = LateEmbedder(dataclasses.replace(made, graph=tmp_path / "older.onnx"))
    with pytest.raises(ModelError, match=r"older hyce.*hyce models pull"):
        list(late.embed_pages([["job"]]))
    assert len(late.embed(["job"])) == 1


def test_an_index_is_made_with_it_and_refused_without(tiny: Path, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "jobs.md").write_text("# Jobs\n\nqueue full\n\n## Time\n\nnode\n")
    config = dataclasses.replace(wanted(tiny), index=Index(languages=("en",)))
    embedder = open_embedder(config)
    assert isinstance(embedder, LateEmbedder)
    with open_writer(
        tmp_path / "index",
        embedder=embedder.fingerprint,
        dimensions=embedder.dimensions,
        passages=passage_settings(config),
        token_vectors=True,
    ) as writer:
        index_sources([str(docs)], writer, embedder, config, lambda *_: None)
    with open_index(tmp_path / "index") as reader:
        reader.check(embedder.fingerprint)
        with pytest.raises(StoreError, match=r"/late.*hyce index"):
            reader.check(OnnxEmbedder(files(tiny)).fingerprint)
        passages = sorted(reader.passages([1, 2]), key=lambda passage: passage.position)
        (first, second) = embedder.embed_pages([[passage.text for passage in passages]])
        for passage, expected in zip(passages, (first, second), strict=True):
            assert reader.similarity(expected.vector, [passage.id])[0] == pytest.approx(1, abs=1e-5)
        assert first.vector @ embedder.embed([passages[0].text])[0].vector < 0.999
