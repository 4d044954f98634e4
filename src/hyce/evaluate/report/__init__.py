"""The report of a run: report.md, report.json and report.html, from the same figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from hyce.evaluate.records import Run
from hyce.evaluate.report.compare import Comparison
from hyce.evaluate.report.outcomes import outcomes, status
from hyce.evaluate.report.scores import Summary

MARKDOWN, JSON, HTML = "report.md", "report.json", "report.html"
FORMAT = 1
"""Version of report.json."""


def report_json(run: Run, summary: Summary, comparison: Comparison | None = None) -> dict[str, Any]:
    """The content of report.json: every figure, and what came of every question."""
    return {
        "format": FORMAT,
        **asdict(summary),
        "questions": _questions(run),
        "comparison": asdict(comparison) if comparison else None,
    }


def _questions(run: Run) -> list[Mapping[str, Any]]:
    """Of each question and variant, what came of each pass. The answers are in results.jsonl."""
    found = [own for own in outcomes(run).values() if not own.row.unavailable]
    return [
        {
            "id": question.id,
            "kind": question.kind,
            "question": question.question,
            "variants": {
                own.row.name: [
                    {
                        "status": status(question, own.results[question.id].get(attempt)),
                        **own.scores[question.id].get(attempt, {}),
                    }
                    for attempt in range(1, run.passes + 1)
                ]
                for own in found
            },
        }
        for question in run.set.questions
    ]
