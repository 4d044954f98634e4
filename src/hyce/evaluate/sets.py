"""Question files: JSON Lines, of people's questions or of generated ones.

A line is one of

    {"id", "kind", "question", "answer", "evidence": [{"path", "quote"}]}    for passages
    {"id", "kind", "question", "site", "accept": [ids], "params": {...}}     for commands

or both in one. A file that `hyce evaluate generate` wrote has more: its first line is {"origin": {...}}, the
outputs of its commands stand in lines of their own, {"output": {...}, "description"}, and its questions say
what the filter thought of them.
"""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hyce.errors import UsageError
from hyce.evaluate.journal import write_whole
from hyce.evaluate.records import Evidence, Origin, Question, QuestionSet, Ratings, StoredOutput
from hyce.outputs import read_output
from hyce.questions import check

FILE = "questions.jsonl"
"""Name of the file in the folder that `hyce evaluate generate` makes."""


def read_set(path: Path) -> QuestionSet:
    """The questions of a file, or of the folder that holds one. Raises UsageError, with the line."""
    file = path / FILE if path.is_dir() else path
    try:
        data = file.read_bytes()
    except OSError as error:
        raise UsageError(
            f"{file}: can't be read ({error.strerror}); name a question file, or the folder that "
            "`hyce evaluate generate` made"
        ) from error
    questions: list[Question] = []
    outputs: list[StoredOutput] = []
    origin = None
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            if not isinstance(row, dict):
                raise ValueError("no JSON object")
            if "origin" in row:
                origin = _origin(row["origin"])
            elif "output" in row:
                outputs.append(StoredOutput(str(row.get("description", "")), read_output(row["output"])))
            else:
                questions.append(_question(row))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise UsageError(
                f"{file}: line {number} is no question ({_said(error)}); mend or remove it"
            ) from error
    kept = tuple(question for question in questions if not question.rejected)
    if len({question.id for question in questions}) < len(questions):
        raise UsageError(f"{file}: two questions have the same id; give each its own")
    if not kept:
        raise UsageError(
            f"{file}: holds no question that may be asked; make some with `hyce evaluate generate`"
        )
    rejected = tuple(question for question in questions if question.rejected)
    return QuestionSet(kept, hashlib.sha256(data).hexdigest(), rejected, tuple(outputs), origin)


def read_sets(paths: Sequence[Path]) -> tuple[QuestionSet, ...]:
    """Several files. Raises UsageError."""
    return tuple(map(read_set, paths))


def asked(sets: Sequence[QuestionSet]) -> tuple[Question, ...]:
    """The questions of several sets that may be asked, one set after the other."""
    return tuple(question for each in sets for question in each.questions)


def read_origin(file: Path) -> Origin | None:
    """How a file was generated; None where it is not one of `hyce evaluate generate`. Raises OSError."""
    try:
        with file.open("rb") as opened:
            return _origin(json.loads(opened.readline())["origin"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def write_set(file: Path, made: QuestionSet) -> Path | None:
    """Write a question file whole, or not at all. made: its digest is not used. Raises StoreError.

    A file that is there and holds something else, as one that a person has edited, is kept beside it; where,
    or None.
    """
    rows: list[dict[str, Any]] = [{"origin": asdict(made.origin)}] if made.origin else []
    rows += [asdict(stored) for stored in made.outputs]
    rows += [question_row(question) for question in (*made.questions, *made.rejected)]
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    data = text.encode("utf-8", "replace")
    before = file.read_bytes() if file.exists() else data
    earlier = file.with_name(f"{file.stem}.before{file.suffix}") if before != data else None
    if earlier:
        write_whole(earlier, before)
    write_whole(file, data)
    return earlier


def question_row(question: Question) -> dict[str, Any]:
    """A question as it stands in a file; what nobody has said is left out."""
    row = {name: value for name, value in asdict(question).items() if value not in (None, "", (), {})}
    row["evidence"] = [
        {name: value for name, value in asdict(each).items() if value} for each in question.evidence
    ]
    if question.accept is not None:
        row["accept"] = list(question.accept)
    return row


def _question(row: Mapping[str, Any]) -> Question:
    accept = row.get("accept")
    if not isinstance(accept, list | None):
        raise ValueError('"accept" is no list')
    ratings = row.get("ratings")
    return Question(
        id=_text(row, "id"),
        question=_asked(row),
        kind=_text(row, "kind"),
        answer="" if row.get("answer") is None else str(row["answer"]),
        evidence=tuple(
            Evidence(_text(each, "path"), _text(each, "quote"), str(each.get("source", "")))
            for each in row.get("evidence", ())
        ),
        accept=None if accept is None else tuple(str(each) for each in accept),
        params={str(name): str(value) for name, value in row.get("params", {}).items()},
        site=row["site"] if row.get("site") in ("slurm", "pbs") else None,
        rejected=str(row.get("rejected") or ""),
        ratings=Ratings(**ratings) if ratings else None,
    )


def _origin(row: Mapping[str, Any]) -> Origin:
    sampled = {kind: tuple(names) for kind, names in row["sampled"].items()}
    datetime.date.fromisoformat(row["created"][:10])
    return Origin(**{**row, "sampled": sampled})


def _text(row: Mapping[str, Any], name: str) -> str:
    if not isinstance(row[name], str) or not row[name].strip():
        raise ValueError(f'"{name}" is no text')
    row[name].encode()  # a lone surrogate can be neither sent nor stored
    return str(row[name])


def _asked(row: Mapping[str, Any]) -> str:
    """The question. Raises ValueError for one that nobody would be given an answer to."""
    question = _text(row, "question")
    try:
        check(question)
    except UsageError as error:
        raise ValueError(str(error)) from error
    return question


def _said(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"not valid JSON: {error.msg}"
    return f"{error} is missing" if isinstance(error, KeyError) else str(error)
