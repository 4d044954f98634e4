"""Question files: read as people and hyce write them, and refused with the line where they are broken."""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hyce.errors import StoreError, UsageError
from hyce.evaluate.records import (
    Evidence,
    Origin,
    Question,
    QuestionSet,
    Ratings,
    StoredOutput,
)
from hyce.evaluate.sets import FILE, read_set, write_set
from hyce.records import CommandOutput

QUOTA = {
    "id": "site-001",
    "kind": "factoid",
    "question": "How big is home?",
    "answer": "50 GB.",
    "evidence": [{"path": "storage.md", "quote": "50 GB"}, {"path": "faq.md", "quote": "fifty"}],
}
JOB = {
    "id": "dev-001",
    "site": "slurm",
    "question": "Why does job 42 wait?",
    "accept": ["slurm.job", "slurm.my_jobs"],
    "params": {"job": "42"},
    "kind": "diagnosis",
}
REFUSED = {"id": "dev-002", "site": "pbs", "question": "Cancel it.", "accept": [], "kind": "action"}


def file_of(folder: Path, *rows: Any) -> Path:
    path = folder / "q.jsonl"
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("\n".join(lines) + "\n", "utf-8", "surrogatepass")
    return path


def test_questions_about_documentation(tmp_path: Path) -> None:
    path = file_of(tmp_path, QUOTA)
    found = read_set(path)
    evidence = (Evidence("storage.md", "50 GB"), Evidence("faq.md", "fifty"))
    assert found.questions == (Question("site-001", "How big is home?", "factoid", "50 GB.", evidence),)
    assert found.questions[0].accept is None
    assert found.digest == hashlib.sha256(path.read_bytes()).hexdigest()
    assert (found.origin, found.outputs, found.rejected) == (None, (), ())


def test_questions_about_commands(tmp_path: Path) -> None:
    job, refused = read_set(file_of(tmp_path, JOB, "", "  ", REFUSED)).questions
    assert job.accept == ("slurm.job", "slurm.my_jobs")
    assert (job.params, job.site, job.evidence, job.answer) == ({"job": "42"}, "slurm", (), "")
    assert refused.accept == ()  # somebody has said that none may run


def test_a_question_may_be_of_both_forms_and_hold_more(tmp_path: Path) -> None:
    (found,) = read_set(file_of(tmp_path, {**QUOTA, **JOB, "author": "somebody", "site": "lsf"})).questions
    assert found.evidence
    assert found.accept
    assert found.site is None


def test_a_folder_stands_for_the_file_in_it(tmp_path: Path) -> None:
    file_of(tmp_path, QUOTA).rename(tmp_path / FILE)
    assert read_set(tmp_path) == read_set(tmp_path / FILE)


def test_only_what_may_be_asked_is_a_question(tmp_path: Path) -> None:
    ratings = {"groundedness": 1, "relevance": 1, "standalone": 0, "reasons": "it says 'this page'"}
    bad = {**QUOTA, "id": "x", "rejected": "standalone", "ratings": ratings}
    found = read_set(file_of(tmp_path, bad, QUOTA))
    assert [question.id for question in found.questions] == ["site-001"]
    assert [question.rejected for question in found.rejected] == ["standalone"]
    assert found.rejected[0].ratings == Ratings(1, 1, 0, "it says 'this page'")


# -- what is broken ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{not json", "Expecting property name"),
        ('"a text"', ""),
        ("[1, 2]", ""),
        ("17", ""),
        ("null", ""),
        ("[" * 100_000, ""),
        ({**QUOTA, "id": ""}, '"id" is no text'),
        ({**QUOTA, "id": 7}, '"id" is no text'),
        ({**QUOTA, "question": " \n"}, '"question" is no text'),
        ({"id": "x", "kind": "y"}, "'question' is missing"),
        ({"id": "x", "question": "y"}, "'kind' is missing"),
        ({**QUOTA, "evidence": [{"path": "a.md"}]}, "'quote' is missing"),
        ({**QUOTA, "evidence": ["a.md"]}, ""),
        ({**QUOTA, "evidence": None}, ""),
        ({**JOB, "accept": "slurm.job"}, '"accept" is no list'),
        ({**JOB, "params": ["42"]}, ""),
        ({**QUOTA, "ratings": {"groundedness": 1}}, ""),
        ({"origin": {"seed": 1}}, "'sampled' is missing"),
        ({"origin": {"sampled": {}, "created": "2026-01-05", "more": 1}}, "more"),
        ({"origin": {"sampled": {}, "created": "last week"}}, "isoformat"),
        ({"origin": {"sampled": {}, "created": 2026}}, ""),
        ({**QUOTA, "question": "is it \x07?"}, "binary data"),
        ({**QUOTA, "question": "why? " * 5000}, "the limit is"),
        ({**QUOTA, "id": "a\ud800"}, "surrogates"),
        ({"output": {"id": "x"}}, "is missing"),
    ],
)
def test_a_broken_line_is_refused_with_its_number(tmp_path: Path, line: Any, said: str) -> None:
    path = file_of(tmp_path, JOB, "", line)
    with pytest.raises(UsageError) as caught:
        read_set(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: line 3 is no question (")
    assert said in text
    assert "\n" not in text


def test_what_is_null_is_not_said(tmp_path: Path) -> None:
    path = file_of(tmp_path, {**QUOTA, "answer": None, "rejected": None, "accept": None})
    (question,) = read_set(path).questions
    assert (question.answer, question.rejected, question.accept) == ("", "", None)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    path.write_bytes(b'{"id": "\xff"}\n')
    with pytest.raises(UsageError, match="line 1 is no question"):
        read_set(path)


def test_two_questions_of_one_id_are_refused(tmp_path: Path) -> None:
    for second in (QUOTA, {**QUOTA, "rejected": "relevance"}):
        with pytest.raises(UsageError, match="two questions have the same id"):
            read_set(file_of(tmp_path, QUOTA, second))


@pytest.mark.parametrize("rows", [(), ("", " "), ({**QUOTA, "rejected": "relevance"},)])
def test_a_file_without_a_question_is_refused(tmp_path: Path, rows: tuple[Any, ...]) -> None:
    with pytest.raises(UsageError, match="holds no question that may be asked"):
        read_set(file_of(tmp_path, *rows))


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none.jsonl", tmp_path):
        with pytest.raises(UsageError, match=r"can't be read \(No such file"):
            read_set(path)


# -- written and read ----------------------------------------------------------------------------------

WORDS = st.text(st.characters(codec="utf-8"), max_size=30)
TEXTS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=30).filter(str.strip)
ASKED = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1).filter(str.strip)
BITS = st.integers(0, 1)
QUESTIONS = st.builds(
    Question,
    id=TEXTS,
    question=ASKED,
    kind=TEXTS,
    answer=WORDS,
    evidence=st.lists(st.builds(Evidence, TEXTS, TEXTS, WORDS), max_size=3).map(tuple),
    accept=st.none() | st.lists(WORDS, max_size=3).map(tuple),
    params=st.dictionaries(WORDS, WORDS, max_size=2),
    site=st.sampled_from([None, "slurm", "pbs"]),
    rejected=st.just(""),
    ratings=st.none() | st.builds(Ratings, BITS, BITS, BITS, WORDS),
)
PIPELINES = st.lists(st.lists(WORDS, max_size=2).map(tuple), max_size=2).map(tuple)
OUTPUTS = st.builds(
    StoredOutput,
    WORDS,
    st.builds(
        CommandOutput,
        id=TEXTS,
        argv=PIPELINES,
        status=st.sampled_from(["ok", "failed", "timeout"]),
        exit_code=st.none() | st.integers(0, 255),
        stdout=WORDS,
        stderr=WORDS,
        truncated=st.booleans(),
        seconds=st.floats(0, 100),
        layers=st.lists(WORDS, max_size=2).map(tuple),
        started=WORDS,
        reason=WORDS,
        also=st.lists(PIPELINES, max_size=2).map(tuple),
        reused=st.booleans(),
    ),
)
ORIGINS = st.builds(
    Origin,
    created=st.dates().map(datetime.date.isoformat),
    seed=st.integers(),
    model=WORDS,
    filter_model=WORDS,
    prompts=WORDS,
    index=st.dictionaries(WORDS, WORDS | st.integers(), max_size=2),
    sampled=st.dictionaries(WORDS, st.lists(WORDS, max_size=3).map(tuple), max_size=2),
    left_out=st.dictionaries(WORDS, WORDS, max_size=2),
)
SETS = st.builds(
    QuestionSet,
    questions=st.lists(QUESTIONS, min_size=1, max_size=4).map(tuple),
    digest=st.just(""),
    rejected=st.lists(
        st.builds(Question, id=TEXTS, question=ASKED, kind=TEXTS, rejected=TEXTS), max_size=2
    ).map(tuple),
    outputs=st.lists(OUTPUTS, max_size=2).map(tuple),
    origin=st.none() | ORIGINS,
).filter(lambda made: len({q.id for q in (*made.questions, *made.rejected)}) == _count(made))


def _count(made: QuestionSet) -> int:
    return len(made.questions) + len(made.rejected)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(SETS)
def test_what_is_written_is_read_the_same(tmp_path: Path, made: QuestionSet) -> None:
    path = tmp_path / "q.jsonl"
    write_set(path, made)
    found = read_set(path)
    assert (found.questions, found.rejected) == (made.questions, made.rejected)
    assert (found.outputs, found.origin) == (made.outputs, made.origin)
    first = path.read_bytes()
    write_set(path, found)
    assert path.read_bytes() == first


def test_a_file_is_written_whole_for_this_user_alone(tmp_path: Path) -> None:
    path = tmp_path / FILE
    made = read_set(file_of(tmp_path, QUOTA))
    left = tmp_path / f".{FILE}.new"
    left.write_text("half a line, left by a killed process", "utf-8")
    left.chmod(0o644)
    before = os.umask(0)
    try:
        write_set(path, made)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert sorted(each.name for each in tmp_path.iterdir()) == ["q.jsonl", FILE]
    assert [json.loads(line) for line in path.read_text("utf-8").splitlines()] == [QUOTA]


def test_the_replaced_file_stays_where_the_new_one_cannot_be_written(tmp_path: Path) -> None:
    path = tmp_path / FILE
    made = read_set(file_of(tmp_path, QUOTA))
    write_set(path, made)
    before = path.read_bytes()
    (tmp_path / f".{FILE}.new").mkdir()
    with pytest.raises(StoreError, match="can't be written"):
        write_set(path, made)
    assert path.read_bytes() == before


def test_lone_surrogates_of_a_model_do_not_break_the_file(tmp_path: Path) -> None:
    path = tmp_path / FILE
    write_set(path, QuestionSet((Question("a", "Who is \ud800?", "document"),), ""))
    assert read_set(path).questions[0].question == "Who is ??"


def test_a_file_that_somebody_has_edited_is_kept(tmp_path: Path) -> None:
    file, before = tmp_path / "questions.jsonl", tmp_path / "questions.before.jsonl"
    made = QuestionSet(tuple(Question(name, "Who?", "document") for name in "ab"), "")
    assert write_set(file, made) is None
    assert write_set(file, made) is None  # the same again
    assert not before.exists()
    edited = file.read_text("utf-8").splitlines(keepends=True)[0]
    file.write_text(edited, "utf-8")
    assert write_set(file, made) == before
    assert before.read_text("utf-8") == edited
    assert stat.S_IMODE(before.stat().st_mode) == 0o600
    assert read_set(file).questions == made.questions
