"""Scores of pairs: against a forward pass in numpy, whatever their company, and what is no cross-encoder."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import tiny_model

from hyce import config, models
from hyce.conversion import verify
from hyce.conversion.original import read
from hyce.conversion.weights import read_weights
from hyce.cross_encoder import OnnxCrossEncoder
from hyce.embed import open_embedder
from hyce.errors import ModelError
from hyce.rerank import open_reranker

QUESTION = "queue full wait"
TEXTS = ["job", "", "disk full", "the queue is full of jobs that wait for a node", "node " * 50]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model.write_cross_encoder(tmp_path_factory.mktemp("source"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, source: Path) -> Path:
    made = tmp_path_factory.mktemp("models")
    models.pull("tiny-cross", made, source=source)
    models.pull("tiny", made, source=tiny_model.write(made / "original"))
    return made


def model(folder: Path, precision: str = "fp32", threads: int = 2) -> OnnxCrossEncoder:
    return OnnxCrossEncoder(models.find("tiny-cross", precision, folder), threads)


def test_scores_are_those_of_the_forward_pass(folder: Path, source: Path) -> None:
    bert = verify.Bert(read(source, "tiny-cross").config, read_weights(source / "model.safetensors"))
    ours = model(folder)
    given = [ours.given(QUESTION, text) for text in TEXTS]
    true = bert.scores([ids for ids, _ in given], [types for _, types in given])
    scores = ours.score(QUESTION, TEXTS)
    assert scores.dtype == np.float32 and scores.shape == (len(TEXTS),)
    np.testing.assert_allclose(scores, true, atol=1e-4)
    assert np.ptp(true) > 0.1
    rough = model(folder, "int8").score(QUESTION, TEXTS)
    assert np.corrcoef(rough, true)[0, 1] > 0.98


def test_a_pair_is_put_together_as_the_tokenizer_says(folder: Path) -> None:
    ids, types = model(folder).given("queue full", "disk")
    assert ids == [2, 5, 9, 3, 7, 3]
    assert types == [0, 0, 0, 0, 1, 1]


def test_of_a_pair_that_is_too_long_the_longer_text_is_cut(folder: Path) -> None:
    ours = model(folder)
    ids, types = ours.given("queue full", "node " * 50)
    assert len(ids) == ours.files.max_tokens == 12
    assert ids[:4] == [2, 5, 9, 3] and types.count(0) == 4
    long, short = ours.given("queue " * 50, "node")
    assert long[-2:] == [6, 3] and len(long) == 12 and short.count(1) == 2


def test_the_type_of_a_token_counts(folder: Path, source: Path) -> None:
    bert = verify.Bert(read(source, "tiny-cross").config, read_weights(source / "model.safetensors"))
    ids, types = model(folder).given(QUESTION, "job")
    right, wrong = bert.scores([ids, ids], [types, [0] * len(ids)])
    assert abs(right - wrong) > 1e-2
    assert model(folder).score(QUESTION, ["job"])[0] == pytest.approx(right, abs=1e-4)


def test_a_score_does_not_depend_on_its_company(folder: Path) -> None:
    together = model(folder).score(QUESTION, TEXTS)
    alone = [model(folder).score(QUESTION, [text])[0] for text in TEXTS]
    assert together.tolist() == [float(score) for score in alone]
    assert model(folder, threads=1).score(QUESTION, TEXTS).tolist() == together.tolist()


def test_nothing_gives_nothing(folder: Path) -> None:
    assert model(folder).score(QUESTION, []).shape == (0,)


@pytest.mark.parametrize("text", ["\x00\x01", "\ud800 half \udfff", "😀" * 3000, " \n"])
def test_odd_texts_have_scores(folder: Path, text: str) -> None:
    assert np.isfinite(model(folder).score(text, [text, "job"])).all()


def test_the_settings_name_a_cross_encoder(folder: Path) -> None:
    settings = config.Config(
        model=config.Model(name="tiny", folder=str(folder)),
        reranker=config.Reranker(name="tiny-cross"),
        retrieval=config.Retrieval(rerank="cross-encoder"),
    )
    reranker = open_reranker(settings)
    assert reranker is not None
    assert reranker.score(QUESTION, TEXTS).shape == (len(TEXTS),)
    assert open_embedder(settings).embed(["job"])[0].vector.shape == (tiny_model.HIDDEN,)


def test_a_model_of_the_other_kind_is_refused(folder: Path) -> None:
    swapped = config.Config(
        model=config.Model(name="tiny-cross", folder=str(folder)),
        reranker=config.Reranker(name="tiny"),
        retrieval=config.Retrieval(rerank="cross-encoder"),
    )
    with pytest.raises(ModelError, match=r"tiny is a bi-encoder, not a cross-encoder; name it as model.name"):
        open_reranker(swapped)
    with pytest.raises(
        ModelError, match="tiny-cross is a cross-encoder, not a bi-encoder; name it as reranker"
    ):
        open_embedder(swapped)


def test_a_classifier_of_several_classes_is_refused(tmp_path: Path) -> None:
    source = tiny_model.write_cross_encoder(tmp_path / "source")
    said = json.loads((source / "config.json").read_text(encoding="utf-8"))
    said["id2label"] = {"0": "no", "1": "yes"}
    (source / "config.json").write_text(json.dumps(said), encoding="utf-8")
    with pytest.raises(ModelError, match="tells 2 classes apart; a reranker gives one score"):
        models.pull("tiny-cross", tmp_path / "models", source=source)


def test_an_encoder_without_a_classifier_is_no_cross_encoder(tmp_path: Path) -> None:
    source = tiny_model.write_cross_encoder(tmp_path / "source")
    bare = tiny_model.write(tmp_path / "bare")
    (bare / "config.json").write_bytes((source / "config.json").read_bytes())
    with pytest.raises(ModelError, match=r"the weights lack pooler\.dense\.weight"):
        models.pull("tiny-cross", tmp_path / "models", source=bare)
    assert not (tmp_path / "models" / "tiny-cross").exists()
