"""Questions with known evidence -> how well passages are found for them.

The figures, of one question each, then averaged (evidence.py and ranking.py hold the definitions):

    recall@500w, recall@2000w    how much of the evidence stands in the first 500 and 2000 words
    accuracy@k, precision@k, recall@k, f1@k    of the first k passages; one that holds evidence is relevant
    mrr@10, ndcg@10
    auc_passages      the chance that a relevant passage of the ranking has a higher score than another
    auc_answerable    the chance that the best cosine for a question with evidence is higher than for one that
                      the documentation doesn't answer: whether a threshold could tell them apart
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hyce.config import Config
from hyce.errors import HyceError
from hyce.evaluate.finding import evidence, ranking
from hyce.evaluate.finding.measured import Figure, Groups, Unasked, Values, defined, drawn, grouped, mean
from hyce.evaluate.records import UNANSWERABLE, Evidence, Question, QuestionSet
from hyce.evaluate.report.wording import number
from hyce.evaluate.sets import asked
from hyce.evaluate.work import Pace, Show
from hyce.questions import check
from hyce.records import Hit
from hyce.retrieve import open_retriever
from hyce.transform import Searching, open_search

K = 60
"""Passages asked for: with those of the default size, more than 2000 words."""
DEPTHS = (1, 5, 10)
_AT = {
    "accuracy": ranking.accuracy,
    "precision": ranking.precision,
    "recall": ranking.recall,
    "f1": ranking.f1,
}
_LONGEST = max(evidence.BUDGETS)

OF_BUDGETS = tuple(f"recall@{budget}w" for budget in evidence.BUDGETS)
OF_RANKS = tuple(f"{name}@{k}" for name in _AT for k in DEPTHS)
MRR, NDCG = f"mrr@{ranking.DEPTH}", f"ndcg@{ranking.DEPTH}"
AUC_PASSAGES, AUC_ANSWERABLE = "auc_passages", "auc_answerable"
FIGURES = (*OF_BUDGETS, *OF_RANKS, MRR, NDCG, AUC_PASSAGES, AUC_ANSWERABLE)
MAIN = (*OF_BUDGETS, MRR)
"""Those that tell most."""
BY_KIND = (*OF_BUDGETS, "accuracy@1", "accuracy@5", MRR)
"""Those that are worth a look by kind."""


@dataclass(frozen=True, slots=True)
class Found:
    """What was found for a question."""

    question: Question
    hits: tuple[Hit, ...]
    notices: tuple[str, ...] = ()

    @property
    def nearest(self) -> float:
        """The best cosine of a passage; -1 where none was found."""
        return max((hit.similarity for hit in self.hits), default=-1.0)

    @property
    def words(self) -> int:
        """Of all passages."""
        return sum(len(evidence.words(hit.passage.text)) for hit in self.hits)


@dataclass(frozen=True, slots=True)
class Measured:
    """A question with evidence, and its figures."""

    found: Found
    figures: Mapping[str, float | None]
    """By name; None for one that isn't defined for this question."""

    @property
    def question(self) -> Question:
        return self.found.question

    @property
    def missed(self) -> bool:
        """Whether something that the question needs isn't within the longest budget."""
        return (self.figures[OF_BUDGETS[-1]] or 0.0) < 1

    def lacking(self) -> list[tuple[Evidence, int | None]]:
        """The pieces of evidence that aren't within the longest budget, with the rank of the first passage
        that holds each; None where none does."""
        hits = self.found.hits
        alone = [replace(self.question, kind="", evidence=(piece,)) for piece in self.question.evidence]
        return [
            (each.evidence[0], evidence.first_support(each, hits))
            for each in alone
            if not evidence.recall_within(each, hits, [_LONGEST])[_LONGEST]
        ]


@dataclass(frozen=True, slots=True)
class Retrieval:
    """How well passages are found."""

    groups: Groups
    measured: tuple[Measured, ...]
    unanswerable: int
    """Questions that the documentation doesn't answer: only auc_answerable is made from them."""
    left_out: int
    """Questions of which it is said which commands answer them, and nothing of the documentation."""
    failed: tuple[Unasked, ...]
    short: int
    """Questions with too few hits to fill the longest budget although there may be more: ask for more."""


def measure_index(
    config: Config, sets: Sequence[QuestionSet], k: int, *, show: Show, report: Callable[[str], None]
) -> Retrieval:
    """The figures of the configured index, searched as `hyce search` does it. report: is told what to know.

    Raises what open_retriever and open_search do.
    """
    questions = asked(sets)
    with open_retriever(config) as retriever, open_search(config, retriever, report) as search:
        now = retriever.index.manifest.passages
        for before in cut_otherwise(sets, now):
            report(
                f"the questions come from whole passages of {before}, and this index has {now}: what is cut "
                "in two is found less often; compare with figures of the same cut alone"
            )
        for path, ids in unknown_pages(questions, retriever.index.paths()).items():
            named = ", ".join(ids[:3]) + (f" and {len(ids) - 3} more" if len(ids) > 3 else "")
            report(f"{path}: not in the index, so its evidence can't be found ({named})")
        measured = measure(questions, search, k, show)
    for each in measured.measured:
        for notice in each.found.notices:
            report(f"{each.question.id}: {notice}")
    if measured.short:
        what = f"{number(k, 'passage has', 'passages have')} fewer than {_LONGEST} words"
        report(f"{what} for {number(measured.short, 'question', 'questions')}; raise -k")
    return measured


def measure(questions: Sequence[Question], search: Searching, k: int, show: Show) -> Retrieval:
    """The figures of a search that is asked each question for k passages.

    A question whose search fails is in no figure.
    """
    wanted = [question for question in questions if has_evidence(question) or is_unanswerable(question)]
    pace = Pace(show, len(wanted))
    found: list[Found] = []
    failed: list[Unasked] = []
    for question in wanted:
        try:
            done = search(check(question.question), k)
            found.append(Found(question, done.hits, done.notices))
        except HyceError as error:
            failed.append(Unasked(question, str(error)))
        pace.step("questions")
    return summarised(found, failed, k, len(questions) - len(wanted))


def summarised(
    found: Sequence[Found], failed: Sequence[Unasked] = (), k: int = K, left_out: int = 0
) -> Retrieval:
    """The figures of what was found."""
    measured = tuple(_measured(each) for each in found if has_evidence(each.question))
    without = np.array([each.nearest for each in found if is_unanswerable(each.question)])
    return Retrieval(
        {group: _figures(rows, without) for group, rows in grouped(measured).items()},
        measured,
        len(without),
        left_out,
        tuple(failed),
        sum(len(each.found.hits) == k and each.found.words < _LONGEST for each in measured),
    )


def cut_otherwise(sets: Sequence[QuestionSet], passages: str) -> list[str]:
    """How the passages were cut that questions were generated from, where it wasn't done like this.

    passages: a manifest's.
    """
    cuts = [str(each.origin.index.get("passages", passages)) for each in sets if each.origin]
    return [cut for cut in dict.fromkeys(cuts) if cut != passages]


def has_evidence(question: Question) -> bool:
    """Whether the documentation answers it, and where is known."""
    return bool(question.evidence) and question.kind != UNANSWERABLE


def is_unanswerable(question: Question) -> bool:
    """Whether neither the documentation nor a command answers it. A question that is labelled for commands
    alone, () where none may run, says nothing of the documentation."""
    return question.kind == UNANSWERABLE or (not question.evidence and question.accept is None)


def unknown_pages(questions: Sequence[Question], known: Sequence[str]) -> dict[str, list[str]]:
    """The pages that evidence stands in, but no index; with the ids of their questions.

    known: paths of all pages of the index.
    """
    wanted: dict[str, list[str]] = {}
    for question in questions:
        for path in dict.fromkeys(piece.path for piece in question.evidence):
            wanted.setdefault(path, []).append(question.id)
    return {
        path: ids for path, ids in wanted.items() if not any(evidence.same_page(each, path) for each in known)
    }


def _measured(found: Found) -> Measured:
    question, hits = found.question, found.hits
    within = evidence.recall_within(question, hits)
    ranked = evidence.ranking(question, hits)
    relevant = [bool(met) for met in ranked.hits]
    figures: dict[str, float | None] = {f"recall@{budget}w": share for budget, share in within.items()}
    figures |= {f"{name}@{k}": function(ranked, k) for name, function in _AT.items() for k in DEPTHS}
    figures[MRR], figures[NDCG] = ranking.reciprocal_rank(ranked), ranking.ndcg(ranked)
    figures[AUC_PASSAGES] = ranking.auc(
        [hit.score for hit, is_relevant in zip(hits, relevant, strict=True) if is_relevant],
        [hit.score for hit, is_relevant in zip(hits, relevant, strict=True) if not is_relevant],
    )
    return Measured(found, figures)


def _figures(rows: Sequence[Measured], unanswerable: Values) -> dict[str, Figure]:
    """unanswerable: the best cosine for each question that has no answer."""
    figures = {name: mean(row.figures[name] for row in rows) for name in FIGURES if name != AUC_ANSWERABLE}
    with_evidence = np.array([row.found.nearest for row in rows])
    figures[AUC_ANSWERABLE] = drawn(_auc, with_evidence, unanswerable)
    return defined(figures)


def _auc(positive: Values, negative: Values) -> float:
    chance = ranking.auc(positive.tolist(), negative.tolist())
    return float("nan") if chance is None else chance
