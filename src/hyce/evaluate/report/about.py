"""What was measured, and with what, for the head of a report."""

from __future__ import annotations

from collections.abc import Mapping

from hyce.evaluate.report.scores import Facts
from hyce.evaluate.report.wording import words

_MODES = {
    "grounded": "grounded: it sees question, answer, reference, and what the answer was written from",
    "paper": "paper: it sees question, answer and reference",
}
_LIVE = "ran anew for each answer (--live)"
_REPLAYED = "replayed: every variant got the same output"


def facts(found: Facts) -> tuple[tuple[str, str], ...]:
    """What the figures are of: names and values, in the order to show them."""
    rows = [
        ("Run", found.created),
        ("Questions", f"{found.questions}: {_listed(found.kinds)}"),
        (
            "Counted in the Eval Score",
            f"{sum(found.sources.values())}, answered from: {_listed(found.sources)}",
        ),
        ("Question file", f"sha256 {found.digest[:16]}"),
        ("Left out by the filter", str(found.rejected)),
    ]
    if found.made:
        rows += [
            ("Questions written", f"{found.made} by {found.generator}, seed {found.seed}"),
            ("Questions filtered", f"by {found.filter}"),
            ("Prompts of the writer", found.writing_prompts),
        ]
    rows += [
        ("Passes", str(found.passes)),
        ("Judge", f"{found.judge or 'not named'}, {_MODES[found.mode]}"),
        ("Prompts of the judge", found.judge_prompts),
        ("Second judge", found.second_judge or "none"),
        ("Commands", _LIVE if found.live else _REPLAYED),
    ]
    return tuple(rows)


def _listed(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {words(name)}" for name, count in counts.items())
