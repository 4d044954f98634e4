"""injections.toml -> cases: an order of a stranger, and the pages, outputs and answers that it stands in."""

from __future__ import annotations

import functools
import hashlib
import html
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from hyce import tokens
from hyce.catalogue import BUILTIN
from hyce.catalogue.loader import load_folders
from hyce.chunk import chunk
from hyce.errors import UsageError
from hyce.parameters import fill
from hyce.parse import parse
from hyce.records import Command, CommandOutput, Document, Hit, Match, Passage
from hyce.views import VIEWS, Viewer

JUDGE = 13
"""Number of the case that is aimed at the judge; the others are aimed at the model that answers."""

_PASSAGE = 512
"""Tokens of a passage, at most: more than any section of these pages has."""
_MEDIA = {".md": "text/markdown", ".html": "text/html"}
_SOUNDS = ("bdfgklmnprstvz", "aeiou")


@dataclass(frozen=True, slots=True)
class Place:
    """Where an order stands. `{order}` in a text stands for it."""

    name: str
    title: str
    case: int
    question: str = ""
    command: str = ""
    """Id of the catalogue entry whose programs print `outputs`."""
    params: Mapping[str, str] = field(default_factory=dict)
    line: tuple[str, ...] = ()
    """Or the command line of an entry that a site may add, with its description."""
    description: str = ""
    outputs: tuple[str, ...] = ()
    """Of the entry's `command`, then of each of its `also`."""
    file: str = ""
    """Or the page's name, which tells its markup."""
    page: str = ""
    answer: str = ""
    """Or the answer that a judge gets; `{wrong}` stands for the wrong part of it."""


@dataclass(frozen=True, slots=True)
class Wording:
    """What is ordered, in some words."""

    name: str
    order: str
    """For the model that answers: `{first}` and `{second}` stand for the halves of a word to write."""
    judge: str
    """For the judge."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What is judged, with an order and without."""

    question: str
    reference: str
    source: str
    wrong: str


@dataclass(frozen=True, slots=True)
class Case:
    """An order in a place; `repeat` counts from 1."""

    place: Place
    wording: Wording
    repeat: int

    @property
    def halves(self) -> tuple[str, str]:
        """The halves of the word that obeying shows: other ones for each place and wording."""
        sounds = hashlib.sha256(f"{self.place.name} {self.wording.name}".encode()).digest()
        word = "".join(_SOUNDS[at % 2][sounds[at] % len(_SOUNDS[at % 2])] for at in range(11))
        return word[:5], word[5:]

    @property
    def order(self) -> str:
        """The order as its writer wrote it."""
        if self.place.case == JUDGE:
            return self.wording.judge
        first, second = self.halves
        return self.wording.order.replace("{first}", first).replace("{second}", second)


@functools.cache
def _data() -> Mapping[str, Mapping[str, Mapping[str, object]]]:
    return tomllib.loads(Path(__file__).with_name("injections.toml").read_text(encoding="utf-8"))


def places() -> tuple[Place, ...]:
    """All places, in the file's order."""
    lists = ("outputs", "line")
    return tuple(
        Place(name=name, **{key: tuple(value) if key in lists else value for key, value in row.items()})  # type: ignore[arg-type]
        for name, row in _data()["places"].items()
    )


def named(names: Sequence[str]) -> tuple[Place, ...]:
    """The places of these names, or of cases with these numbers; all where there are none.

    Raises UsageError for what names no place.
    """
    known = places()
    found = [place for place in known if not names or {place.name, str(place.case)} & set(names)]
    for name in names:
        if not any(name in (place.name, str(place.case)) for place in found):
            listed = ", ".join(place.name for place in known)
            raise UsageError(f"{name}: no place for an order; name one of 10, 11, 12, 13, {listed}")
    return tuple(found)


def wordings() -> tuple[Wording, ...]:
    """All wordings, in the file's order."""
    return tuple(Wording(name=name, **row) for name, row in _data()["wordings"].items())  # type: ignore[arg-type]


def judged() -> Judged:
    """What the judge is given."""
    return Judged(**_data()["judge"])  # type: ignore[arg-type]


def cases(among: Sequence[Place], repeats: int) -> tuple[Case, ...]:
    """Every wording in every one of the places, so often."""
    numbers = range(1, repeats + 1)
    return tuple(Case(place, wording, n) for place in among for wording in wordings() for n in numbers)


# -- the material ----------------------------------------------------------------------------------------


def hits(case: Case) -> tuple[Hit, ...]:
    """The case's page as passages: read and cut like any page; () for other places."""
    place = case.place
    if not place.page:
        return ()
    media = _MEDIA[PurePath(place.file).suffix]
    order = html.escape(case.order) if media == "text/html" else case.order
    text = place.page.replace("{order}", order)
    page = parse(Document("/docs", place.file, media, text, digest=place.name))
    found = chunk(page, size=_PASSAGE, length=tokens.estimate)
    passages = (
        Passage(n, "/docs", place.file, None, page.title, each.heading, each.body, None, n - 1)
        for n, each in enumerate(found, 1)
    )
    return tuple(Hit(passage.id, 1.0, passage, 1.0) for passage in passages)


def match(case: Case) -> Match | None:
    """The entry that runs for the case; None for other places."""
    place = case.place
    if place.line:
        return Match(Command("site.lookup", place.description, (), (place.line,)), place.params, 1.0)
    return Match(_catalogue()[place.command], place.params, 1.0) if place.command else None


def printed(case: Case, wanted: Match) -> CommandOutput:
    """What its programs would have printed, as the entry's view has it."""
    command = wanted.command
    texts = [text.replace("{order}", case.order) for text in case.place.outputs]
    shown = VIEWS[command.view](texts, Viewer("mia")) if command.view else "".join(texts)
    argv, *also = fill(command, wanted.params)
    return CommandOutput(
        id=command.id,
        argv=argv,
        status="ok",
        exit_code=0,
        stdout=shown,
        stderr="",
        truncated=False,
        seconds=0.1,
        layers=(),
        started="2026-03-02T09:30:00+00:00",
        also=tuple(also),
    )


def ordered_answer(case: Case) -> str:
    """The wrong answer with the order in it."""
    return case.place.answer.replace("{wrong}", judged().wrong).replace("{order}", case.order).strip()


@functools.cache
def _catalogue() -> Mapping[str, Command]:
    return load_folders((), builtin=BUILTIN)
