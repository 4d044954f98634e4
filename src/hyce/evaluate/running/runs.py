"""The folder of a run: what was asked of which variants, and every result as soon as it is there.

FOLDER/
  run.json         the plan as it was last run: variants with their keys, passes, judge
  questions.jsonl  the question file, copied
  calls.jsonl      every call to a language model (calls.py)
  outputs.jsonl    what commands printed that the question file has no output of (replay.py)
  results.jsonl    one line a result; of several for the same question, pass and variant the last counts
  indexes/         indexes of variants that can't use the configured one
  lock             held by the process that writes
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from hyce.errors import StoreError, UsageError
from hyce.evaluate.journal import parsed, read_rows, write_whole
from hyce.evaluate.records import UNANSWERABLE, Given, Question, QuestionSet, Result, Row, Run, Verdict
from hyce.evaluate.sets import FILE, read_set

RUN, CALLS, OUTPUTS, RESULTS = "run.json", "calls.jsonl", "outputs.jsonl", "results.jsonl"
FORMAT = 1
"""Version of run.json and results.jsonl."""

Place = tuple[str, str, int]
"""(variant, question, pass): one result."""


def asked(questions: Sequence[Question], limit: int | None = None) -> tuple[Question, ...]:
    """Those that an answer to can be judged, the first `limit`: with a reference answer, or unanswerable."""
    judged = [each for each in questions if each.answer or each.kind == UNANSWERABLE]
    return tuple(judged[:limit])


def result_key(row: str, question: str) -> str:
    """The key of a result by its row's key, which stands for all settings, and the question's id."""
    return digest([row, question])


def digest(value: object) -> str:
    """sha256 (hex) of a value as JSON."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


# -- the plan --------------------------------------------------------------------------------------------


def check_questions(folder: Path, source: Path, found: QuestionSet) -> None:
    """Raises UsageError where the folder holds answers to other questions, or is where they were made.

    source: the question file or its folder.
    """
    copy = folder / FILE
    if copy.exists() and copy.samefile(_file(source)) and not (folder / RUN).exists():
        # `hyce evaluate generate` may have to write it again.
        raise UsageError(f"{folder}: is the folder of the questions; choose another one for the run")
    if copy.exists() and hashlib.sha256(copy.read_bytes()).hexdigest() != found.digest:
        raise UsageError(f"{folder}: holds answers to other questions; choose another folder")


def keep_questions(folder: Path, source: Path, found: QuestionSet) -> None:
    """Copy the question file into the folder. Raises UsageError where the folder has other questions."""
    check_questions(folder, source, found)
    copy = folder / FILE
    if not copy.exists():
        data = _file(source).read_bytes()
        if hashlib.sha256(data).hexdigest() != found.digest:
            # Also where it can be read but once, such as a pipe.
            raise UsageError(f"{source}: not what it was a moment ago; write the questions to a file")
        write_whole(copy, data)


def _file(source: Path) -> Path:
    return source / FILE if source.is_dir() else source


def write_run(folder: Path, run: Run) -> None:
    """Write run.json, whole or not at all; the results have their own file."""
    kept = {name: value for name, value in asdict(run).items() if name not in ("set", "results")}
    kept |= {"format": FORMAT, "questions": [question.id for question in run.set.questions]}
    write_whole(folder / RUN, json.dumps(kept, indent=1) + "\n")


def read_plan(folder: Path) -> Run | None:
    """The run of this folder without its results; None where none was begun. Raises StoreError."""
    file = folder / RUN
    try:
        plan = json.loads(file.read_bytes())
        if plan["format"] != FORMAT:
            raise StoreError(f"{file}: made by another version of hyce; run the same again in another folder")
        names = set(plan["questions"])
        found = read_set(folder / FILE)
        questions = tuple(question for question in found.questions if question.id in names)
        return Run(
            title=plan["title"],
            created=plan["created"],
            mode=plan["mode"],
            passes=plan["passes"],
            judge=plan["judge"],
            second_judge=plan["second_judge"],
            judge_prompts=plan["judge_prompts"],
            live=plan["live"],
            set=replace(found, questions=questions),
            rows=tuple(Row(**row) for row in plan["rows"]),
            results=(),
        )
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise StoreError(f"{file}: can't be read: {error.strerror}; check its permissions") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise StoreError(f"{file}: damaged ({error}); remove it and run the same again") from error


# -- results ---------------------------------------------------------------------------------------------


def result_row(result: Result) -> dict[str, Any]:
    """A result as it stands in results.jsonl."""
    return asdict(result)


def results_of(rows: Sequence[Mapping[str, Any]], file: Path) -> dict[Place, Result]:
    """The last result of each place. Raises StoreError for a row that is none."""
    found = parsed(file, rows, _result, "result")
    return {(result.variant, result.question, result.attempt): result for result in found}


def read_run(folder: Path) -> Run:
    """A run with the last result of each variant, question and pass, as far as they are there.

    What was answered under other settings than those of run.json is left out. Raises StoreError.
    """
    plan = read_plan(folder)
    if plan is None:
        raise StoreError(
            f"{folder}: no run here; `hyce evaluate run QUESTIONS --variants local --out {folder}` makes one"
        )
    file = folder / RESULTS
    found = results_of(read_rows(file)[0], file) if file.exists() else {}
    wanted = {
        (row.name, question.id, attempt): result_key(row.key, question.id)
        for row in plan.rows
        if not row.unavailable
        for question in plan.set.questions
        for attempt in range(1, plan.passes + 1)
    }
    results = (found[place] for place, key in wanted.items() if place in found and found[place].key == key)
    return replace(plan, results=tuple(results))


def _result(row: Mapping[str, Any]) -> Result:
    fields = {
        **row,
        "given": tuple(Given(**given) for given in row["given"]),
        "commands": tuple(row["commands"]),
        "notices": tuple(row["notices"]),
        "verdicts": tuple(Verdict(**verdict) for verdict in row["verdicts"]),
    }
    return Result(**fields)
