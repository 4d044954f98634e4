"""The values that pass between the parts of an evaluation. All frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from hyce.records import CommandOutput

# -- questions -------------------------------------------------------------------------------------------

DOCUMENT, COMMAND = "document", "command"
UNANSWERABLE, TWO_PASSAGES, MIXED = "unanswerable", "two_passages", "passage_and_command"
SCORED = (DOCUMENT, COMMAND)
"""The kinds of generated questions that the Eval Score is made of, as in the paper."""
APART = (UNANSWERABLE, TWO_PASSAGES, MIXED)
"""Further kinds, which are reported apart from it."""
NEEDS_ALL = ("multihop", TWO_PASSAGES)
"""Kinds whose questions need every piece of evidence; for any other kind, one of them is enough."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A place in the documentation that answers a question, or a part of it."""

    path: str
    """Of the page, relative to its source."""
    quote: str
    """Its words, with or without markup; of a generated question the whole passage, heading path included."""
    source: str = ""
    """As the index named it when the question was made; for people to read."""


@dataclass(frozen=True, slots=True)
class Ratings:
    """What the filter says of a question (paper, section 4.1): 1 it meets the criterion, 0 it doesn't."""

    groundedness: int
    relevance: int
    standalone: int
    reasons: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """A question with what is known about its answer: labelled by people, or generated."""

    id: str
    question: str
    kind: str
    """Of generated ones: of SCORED or APART. Of labelled ones: whatever the file says."""
    answer: str = ""
    """The reference answer."""
    evidence: tuple[Evidence, ...] = ()
    """Empty where the documentation doesn't answer it."""
    accept: tuple[str, ...] | None = None
    """Ids of the catalogue entries that answer it, the best first; () where none may run; None where nobody
    has said."""
    params: Mapping[str, str] = field(default_factory=dict)
    """Values that the best entry takes from the question."""
    site: str | None = None
    """The batch system that it is about: slurm or pbs."""
    rejected: str = ""
    """Why the filter left it out: the criteria that it misses. Such a question is kept, and not asked."""
    ratings: Ratings | None = None

    @property
    def needs_all(self) -> bool:
        """Whether every piece of evidence is needed."""
        return self.kind in NEEDS_ALL


@dataclass(frozen=True, slots=True)
class StoredOutput:
    """What a command printed when the questions were made."""

    description: str
    output: CommandOutput


@dataclass(frozen=True, slots=True)
class Origin:
    """How a question file was generated, so that it can be made again."""

    created: str
    """Date, ISO 8601."""
    seed: int
    model: str
    """Of the endpoint that wrote the questions, as it named itself."""
    filter_model: str
    prompts: str
    """Digest of the prompts."""
    index: Mapping[str, str | int]
    """The embedder, the passages' settings, and how many there were."""
    sampled: Mapping[str, tuple[str, ...]]
    """By kind, what was asked about: "source path#position" of passages, ids of commands."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Commands that made no question, and why; passages for which the model gave none."""
    options: Mapping[str, str | int] = field(default_factory=dict)
    """What was asked for, and of which models: a set is only gone on with by the same."""


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """A question file, read."""

    questions: tuple[Question, ...]
    """Those that may be asked, in the file's order."""
    digest: str
    """sha256 (hex) of the file."""
    rejected: tuple[Question, ...] = ()
    outputs: tuple[StoredOutput, ...] = ()
    origin: Origin | None = None
    """None for a file that people made."""


# -- answers and verdicts --------------------------------------------------------------------------------

Mode = Literal["grounded", "paper"]
"""What the judge sees: grounded: question, answer, reference and what the answerer was given; paper: the
first three, as in the published code."""


@dataclass(frozen=True, slots=True)
class Given:
    """A source as the model that answered was given it."""

    number: int
    kind: Literal["passage", "command"]
    label: str
    text: str
    private: bool = False
    """Whether it is the output of a command that may not leave the site."""


VerdictStatus = Literal["judged", "unparseable", "failed", "withheld"]
"""unparseable: the judge's replies, also after a second try, hold no verdict; failed: it could not be asked;
withheld: the judge is outside the site, and may not see what the answer was written from; or the question
was made from what may not leave the site, and answering it would have sent it there."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a judge says of one answer."""

    judge: str
    """Role: judge or second_judge."""
    model: str
    repeat: int
    """1 for the verdict that counts; further ones show how far the judge agrees with itself."""
    status: VerdictStatus
    scores: Mapping[str, int] = field(default_factory=dict)
    """1 or 0 by criterion: correctness and faithfulness, or abstained for an unanswerable question. Empty
    unless judged."""
    reasons: str = ""
    error: str = ""


ResultStatus = Literal["answered", "failed"]


@dataclass(frozen=True, slots=True)
class Result:
    """One question answered once by one variant, and judged."""

    variant: str
    key: str
    """Digest of all that the answer depends on."""
    question: str
    """Its id."""
    attempt: int
    """Which of the passes over the questions, counted from 1."""
    status: ResultStatus
    answer: str = ""
    error: str = ""
    """Why it failed."""
    model: str = ""
    reasons: str = ""
    """The model's chain of thought, which no judge sees."""
    given: tuple[Given, ...] = ()
    commands: tuple[str, ...] = ()
    """Ids of what ran for it, or was replayed."""
    rank: int | None = None
    """Of the first hit that supports the evidence, from 1; None where none does, or there is no evidence."""
    notices: tuple[str, ...] = ()
    timings_ms: Mapping[str, float] = field(default_factory=dict)
    """Of the stages; `model` is the time that the endpoint took when it was really asked."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    verdicts: tuple[Verdict, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """A variant as a run saw it."""

    name: str
    description: str
    key: str
    model: str
    settings: Mapping[str, object]
    """What it sets, by "section.key"."""
    unavailable: str = ""
    """Why it could not be run; empty where it was."""


@dataclass(frozen=True, slots=True)
class Run:
    """A run's folder, read: what was asked of which variants, and what came of it."""

    title: str
    created: str
    mode: Mode
    passes: int
    judge: str
    """Model."""
    second_judge: str
    """Model; empty for none."""
    judge_prompts: str
    """Digest of the judge's prompts."""
    live: bool
    """Whether commands ran anew instead of being replayed."""
    set: QuestionSet
    rows: tuple[Row, ...]
    results: tuple[Result, ...]
    """The last of each variant, question and pass."""
