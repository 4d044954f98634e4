"""A question -> whether it is a good one, by three criteria (paper, section 4.1), each 1 or 0.

groundedness    the material answers it. Of an unanswerable question: neither its passage nor what the index
                finds for it does, not even in part. Of one that needs two sources: both together do, and
                neither alone.
relevance       users are likely to meet it
standalone      it is understood without the material
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from hyce.evaluate.calls import Calls
from hyce.evaluate.forms import SCORE, TEXT, closed, fields_of, score
from hyce.evaluate.generation.material import Asking, passage_source
from hyce.evaluate.generation.sample import Task
from hyce.evaluate.generation.writing import sources
from hyce.evaluate.records import MIXED, TWO_PASSAGES, UNANSWERABLE, Ratings
from hyce.llm import ChatClient
from hyce.privacy import neutral
from hyce.prompts import evaluation as prompts
from hyce.records import Hit, Message, Source

ROLE = "filter"
CRITERIA = ("groundedness", "relevance", "standalone")
NEEDS_BOTH = (TWO_PASSAGES, MIXED)

FOUND = 5
"""Passages found for an unanswerable question, none of which may answer it."""
_LONGEST_REASONS = 2000
"""Characters."""

_SCHEMA = closed(reasons=TEXT, groundedness=SCORE, relevance=SCORE, standalone=SCORE)


@dataclass(frozen=True, slots=True)
class Rated:
    """What the filter says of a question."""

    ratings: Ratings | None
    """None where its replies, also after a second try, hold none."""
    missed: Mapping[str, str]
    """Criteria that the question doesn't meet, by their names, as a reader is told of them."""
    model: str
    """As it named itself."""


class Filter:
    """Has questions rated by one endpoint. Threads may share it."""

    def __init__(
        self, client: ChatClient, calls: Calls, retrieve: Callable[[str, int], Sequence[Hit]]
    ) -> None:
        """retrieve: finds that many passages for a question."""
        self._asking = Asking(client, calls, ROLE)
        self._retrieve = retrieve

    def rate(self, question: str, task: Task) -> Rated:
        """The ratings, and what the question misses. Its answer is not shown. Raises EndpointError."""
        material = self.material(question, task)
        ratings, model = self._rate(question, material, in_part=task.kind == UNANSWERABLE)
        missed = missing(task.kind, ratings) if ratings else {}
        if ratings and ratings.groundedness and task.kind in NEEDS_BOTH:
            for one in material:
                alone, _ = self._rate(question, [one])
                if alone is None:
                    return Rated(None, {}, model)
                if alone.groundedness:
                    missed = {"groundedness": "groundedness (one source alone answers it)", **missed}
                    break
        return Rated(ratings, missed, model)

    def material(self, question: str, task: Task) -> list[Source]:
        """What the question is rated against."""
        material = sources(task)
        if task.kind == UNANSWERABLE:
            own = task.passages[0].text
            near = [hit.passage for hit in self._retrieve(question, FOUND) if hit.passage.text != own]
            material += [passage_source(passage) for passage in near]
        return material

    def tokens(self, question: str, material: Sequence[Source], *, in_part: bool = False) -> int:
        """Of the prompt."""
        return self._asking.tokens(self._messages(question, material, in_part))

    def _rate(
        self, question: str, material: Sequence[Source], *, in_part: bool = False
    ) -> tuple[Ratings | None, str]:
        messages = self._messages(question, material, in_part)
        return self._asking.ask(messages, prompts.rate_again, read_ratings, _SCHEMA)

    def _messages(self, question: str, material: Sequence[Source], in_part: bool) -> list[Message]:
        asked = self._asking.clean(question)
        return self._asking.about(material, lambda shown: prompts.rate(asked, shown, in_part=in_part))


def read_ratings(reply: str) -> Ratings | None:
    """The ratings in a reply; None unless each is there and is 1 or 0, true or false."""
    fields = fields_of(reply)
    groundedness, relevance, standalone = (score(fields.get(name)) for name in CRITERIA)
    if groundedness is None or relevance is None or standalone is None:
        return None
    said = fields.get("reasons", "")
    reasons = " ".join(neutral(said if isinstance(said, str) else str(said)).split())
    return Ratings(groundedness, relevance, standalone, reasons[:_LONGEST_REASONS])


def missing(kind: str, ratings: Ratings) -> dict[str, str]:
    """The criteria that a question of this kind misses, as a reader is told of them."""
    missed = {name: name for name in CRITERIA if not getattr(ratings, name)}
    if kind == UNANSWERABLE:
        grounded = missed.pop("groundedness", None) is None
        told = {"groundedness": "groundedness (the documentation answers it)"} if grounded else {}
        return told | missed
    return missed
