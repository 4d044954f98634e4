"""An index and a catalogue -> what questions are made from: passages, pairs of them, outputs of commands.

Everything is taken in an order that the seed and its own name give, the same for the same index: asking for
more adds to a sample, and pages that are added or removed don't move the others.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from hyce.evaluate.records import COMMAND, DOCUMENT, MIXED, TWO_PASSAGES, UNANSWERABLE, StoredOutput
from hyce.index.embedded import IndexReader
from hyce.privacy import neutral
from hyce.records import Command, CommandOutput, Passage
from hyce.retrieve import Retriever

KINDS = (DOCUMENT, COMMAND, UNANSWERABLE, TWO_PASSAGES, MIXED)

SHORTEST = 20
"""Words. Of 5,679 passages of three centres, 1 in 10 is shorter: mostly a pointer to another page, a line
that announces an example, half of one, or a row of figures. Few hold a fact that can be asked for."""

_WORD = re.compile(
    # Scripts without blanks between words: a pair of characters counts as one.
    r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2}|[^\W\d_]{2,}"
)
_AT_ONCE = 1000
"""Passages held in memory at a time."""
_NEIGHBOURS = 200
"""Passages among which one of another page is looked for."""
_TRIES = 5
"""Passages that are tried for each pair: where the index is one page, there are none."""

K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class Wanted:
    """How many questions of each kind are to be made, before the filter."""

    passages: int = 90
    commands: int | None = 10
    """None: one for each entry that can run."""
    unanswerable: int = 10
    two_passages: int = 10
    mixed: int = 10
    seed: int = 0

    @property
    def by_kind(self) -> Mapping[str, int | None]:
        numbers = (self.passages, self.commands, self.unanswerable, self.two_passages, self.mixed)
        return dict(zip(KINDS, numbers, strict=True))


@dataclass(frozen=True, slots=True)
class Task:
    """What one question is made from."""

    id: str
    """Of the question: its kind and which of them it is."""
    kind: str
    passages: tuple[Passage, ...] = ()
    command: Command | None = None
    output: StoredOutput | None = None

    @property
    def name(self) -> str:
        """What is asked about, as Origin.sampled has it."""
        names = [self.command.id] if self.command else []
        return " + ".join([*names, *map(place, self.passages)])


@dataclass(frozen=True, slots=True)
class Sample:
    """All that is asked about, in the order of the questions."""

    tasks: tuple[Task, ...]
    outputs: tuple[StoredOutput, ...]
    """Of the commands that ran, each once."""
    left_out: Mapping[str, str]
    """Commands that make no question, and why."""

    @property
    def by_kind(self) -> dict[str, tuple[str, ...]]:
        """The names of what is asked about."""
        return {kind: tuple(task.name for task in self.tasks if task.kind == kind) for kind in KINDS}


@dataclass(frozen=True, slots=True)
class Pool:
    """The passages of an index from which a question can be made."""

    names: Mapping[int, str]
    """By id: "path#position"; without the source, so that documentation in another folder, or on another
    machine, is taken in the same order."""
    digest: str
    """Of all passages with their places, whatever order they were indexed in."""


Nearest = Callable[[str, Passage | None], Passage | None]
"""(text, passage or None) -> the passage nearest to the text; of another page than the passage, where one is
given, which the text is then of."""


@dataclass(frozen=True, slots=True)
class Taking:
    """What sampling is done with."""

    index: IndexReader
    pool: Pool
    nearest: Nearest
    run: Callable[[Command], CommandOutput]
    may_not: Callable[[Command], str] = field(default=lambda _: "")
    """Why no question may be made of an entry's output; empty where one may."""


def place(passage: Passage) -> str:
    """Where a passage stands, as a name for it."""
    return f"{passage.source} {passage.path}#{passage.position}"


def pool(index: IndexReader) -> Pool:
    """The passages that are long enough; of those with equal text, the first."""
    names: dict[int, str] = {}
    bodies: set[bytes] = set()
    whole = hashlib.sha256()
    before, same = "", 0
    for path, position, _, number, text, body in sorted(map(_listed, _all(index))):
        name = f"{path}#{position}"
        same = same + 1 if name == before else 0
        before = name
        whole.update(name.encode("utf-8", "replace") + text)
        if body and body not in bodies:
            # Sources may have pages of one name: a number tells them apart.
            names[number] = f"{name} {same}" if same else name
            bodies.add(body)
    return Pool(names, whole.hexdigest()[:16])


def in_order(items: Mapping[K, str], seed: int, purpose: str) -> list[K]:
    """The items in an order of their names that looks random: the same for the same seed and purpose."""

    def key(item: K) -> bytes:
        return hashlib.sha256(f"{seed}\0{purpose}\0{items[item]}".encode("utf-8", "replace")).digest()

    return sorted(items, key=key)


def neighbours(retriever: Retriever, held: Pool) -> Nearest:
    """What finds the nearest passage by its vector."""

    def nearest(text: str, of: Passage | None) -> Passage | None:
        (embedding,) = retriever.embedder.embed([text], query=of is None)
        for number, _ in retriever.index.dense(embedding.vector, _NEIGHBOURS):
            if number in held.names:
                (found,) = retriever.index.passages([number])
                if of is None or (found.source, found.path) != (of.source, of.path):
                    return found
        return None

    return nearest


def sample(wanted: Wanted, entries: Iterable[Command], taking: Taking) -> Sample:
    """What is asked about; fewer where there is not as much. Runs commands until enough of them printed
    something."""
    left_out: dict[str, str] = {}
    outputs = list(_outputs(wanted, entries, taking, left_out))
    asked = outputs if wanted.commands is None else outputs[: wanted.commands]
    documents = _passages(DOCUMENT, wanted.passages, wanted.seed, taking)
    unanswerable = _passages(UNANSWERABLE, wanted.unanswerable, wanted.seed, taking)
    tasks = [
        *(Task(_id(DOCUMENT, n), DOCUMENT, (each,)) for n, each in enumerate(documents, 1)),
        *(Task(_id(COMMAND, n), COMMAND, (), *each) for n, each in enumerate(asked, 1)),
        *(Task(_id(UNANSWERABLE, n), UNANSWERABLE, (each,)) for n, each in enumerate(unanswerable, 1)),
        *(Task(_id(TWO_PASSAGES, n), TWO_PASSAGES, each) for n, each in enumerate(_pairs(wanted, taking), 1)),
        *(Task(_id(MIXED, n), MIXED, *each) for n, each in enumerate(_mixed(outputs, wanted, taking), 1)),
    ]
    return Sample(tuple(tasks), tuple(stored for _, stored in outputs), left_out)


def unusable(output: CommandOutput) -> str:
    """Why no question can be made of an output; empty where one can."""
    if output.status == "failed":
        said = neutral(output.stderr).strip().partition("\n")[0][:200]
        return f"it failed with exit code {output.exit_code}" + (f": {said}" if said else "")
    if output.status != "ok":
        return output.reason
    return "" if output.stdout.strip() else "it printed nothing"


def _outputs(
    wanted: Wanted, entries: Iterable[Command], taking: Taking, left_out: dict[str, str]
) -> Iterator[tuple[Command, StoredOutput]]:
    """Entries with what they printed, as many as are needed; the others are told why not."""
    needed = None if wanted.commands is None else max(wanted.commands, wanted.mixed)
    by_id = {command.id: command for command in entries}
    made = 0
    for name in in_order({name: name for name in by_id}, wanted.seed, COMMAND):
        if made == needed:
            return
        command = by_id[name]
        why = taking.may_not(command)
        output = None if why else taking.run(command)
        if output is None or (why := unusable(output)):
            left_out[name] = why
            continue
        made += 1
        yield command, StoredOutput(command.description, output)


def _passages(purpose: str, most: int, seed: int, taking: Taking) -> list[Passage]:
    return taking.index.passages(in_order(taking.pool.names, seed, purpose)[:most])


def _pairs(wanted: Wanted, taking: Taking) -> Iterator[tuple[Passage, Passage]]:
    """Passages with the nearest one of another page, each pair once."""
    seen: set[frozenset[int]] = set()
    order = in_order(taking.pool.names, wanted.seed, TWO_PASSAGES)
    for number in order[: _TRIES * wanted.two_passages]:
        if len(seen) == wanted.two_passages:
            return
        (passage,) = taking.index.passages([number])
        other = taking.nearest(passage.text, passage)
        pair = frozenset({number, other.id}) if other else None
        if other and pair and pair not in seen:
            seen.add(pair)
            yield passage, other


def _mixed(
    outputs: Iterable[tuple[Command, StoredOutput]], wanted: Wanted, taking: Taking
) -> Iterator[tuple[tuple[Passage, ...], Command, StoredOutput]]:
    """Commands that printed something, each with the passage nearest to what it tells."""
    found = 0
    for command, stored in outputs:
        if found == wanted.mixed:
            return
        passage = taking.nearest(command.description, None)
        if passage:
            found += 1
            yield (passage,), command, stored


def _id(kind: str, number: int) -> str:
    return f"{kind}-{number:03}"


def _listed(passage: Passage) -> tuple[str, int, str, int, bytes, bytes]:
    """Path, position, source and id, then digests of the text and of the body; none of a body too short."""
    long_enough = len(_WORD.findall(passage.body)) >= SHORTEST
    digests = _digest(passage.text), _digest(passage.body) if long_enough else b""
    return passage.path, passage.position, passage.source, passage.id, *digests


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()


def _all(index: IndexReader) -> Iterator[Passage]:
    ids = index.ids()
    for start in range(0, len(ids), _AT_ONCE):
        yield from index.passages(ids[start : start + _AT_ONCE])
