"""From a question to a full-text query that can't fail and can't be slow."""

from __future__ import annotations

import re
import sqlite3
import threading
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from hyce.index.database import FREQUENT, TOKENIZER
from hyce.index.forms import asked, one_of_a_run
from hyce.stop_words import stop_words

TITLE_WEIGHT, HEADING_WEIGHT, BODY_WEIGHT, FORMS_WEIGHT = 2.0, 2.0, 1.0, 1.0
"""BM25: what an occurrence in each column counts."""

ROWS_RANKED = 4000
"""Passages ranked for one question, about: FTS5 takes a microsecond for each (see affordable). In an index of
5,680 passages of three centres, 2,000 and 8,000 found equally well."""

MOST_TERMS = 64

_COMPOUND = re.compile(r"[^\W_]+(?:[-_./:=+@%]+[^\W_]+)*")
_WORD = re.compile(r"[^\W_]+")

STOP_WORDS = stop_words("en")


@dataclass(frozen=True, slots=True)
class Term:
    """What a passage may match: a word, or several side by side."""

    words: str
    """Letters, digits and single spaces: quoted, they can't be syntax."""
    among: Literal["all", "text", "forms"] = "all"
    """Where: in all columns; in title, heading and body; in the forms of other languages."""
    begins: bool = False
    """Whether words that begin so match too."""

    @property
    def expression(self) -> str:
        """As FTS5 has it."""
        columns = {"all": "", "text": "{title heading body} : ", "forms": "forms : "}[self.among]
        return f'{columns}"{self.words}"' + (" *" if self.begins else "")


def terms(question: str, languages: Sequence[str] = (), *, mixed: bool = False) -> list[Term]:
    """What to look up for a question.

    Its words, without stop words, each once; the parts of a compound such as --mem-per-cpu also side by side,
    as "mem per cpu". Beside them the words' forms in these languages, and those of scripts without spaces.
    mixed: the index has forms, among which the words themselves are not looked for.
    """
    text = unicodedata.normalize("NFC", question)
    found: dict[str, None] = {}
    for compound in _COMPOUND.findall(text):
        words = _WORD.findall(compound.lower())
        if len(words) > 1:
            found[" ".join(words)] = None
        found.update(dict.fromkeys(words))
    stopped = STOP_WORDS.union(*map(stop_words, languages))
    # A question may be made of them: "who", "at".
    wanted = [term for term in found if term not in stopped] or list(found)
    formed = dict.fromkeys(
        form for code in ("en", *languages) for word in wanted for form in asked(word, code)
    )
    return [Term(word, "text" if mixed else "all") for word in wanted] + [
        Term(form, "forms", one_of_a_run(form)) for form in formed
    ]


def query(any_of: Sequence[Term], all_of: Sequence[Term] = ()) -> str:
    """An FTS5 expression: any of these terms, or else all of those."""
    alternatives = [term.expression for term in any_of]
    if all_of:
        alternatives.append("(" + " AND ".join(term.expression for term in all_of) + ")")
    return " OR ".join(alternatives)


class Stems:
    """The stems of words exactly as the index has them: SQLite's own tokenizer is asked."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._database = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self._database.execute(f"CREATE VIRTUAL TABLE word USING fts5(term, tokenize = '{TOKENIZER}')")
        self._database.execute("CREATE VIRTUAL TABLE stem USING fts5vocab(word, instance)")

    def of(self, wanted: Sequence[str]) -> list[list[str]]:
        """The stems of each term, in order."""
        stems: list[list[str]] = [[] for _ in wanted]
        with self._lock:
            self._database.execute("BEGIN")
            self._database.executemany("INSERT INTO word(rowid, term) VALUES (?, ?)", enumerate(wanted))
            for stem, number in self._database.execute("SELECT term, doc FROM stem"):
                stems[number].append(stem)
            self._database.execute("ROLLBACK")
        return stems

    def close(self) -> None:
        self._database.close()


def affordable(
    database: sqlite3.Connection, stems: Stems, wanted: Sequence[Term], passages: int, rows: int
) -> str:
    """A query for the terms that ranks about `rows` passages of an index of `passages`; empty without terms.

    FTS5 ranks every passage that matches any term, and in a large index the words that are in every tenth
    passage would take most of the time and tell the passages apart least. So a passage must have one of the
    rarer terms, or several of the frequent ones: the rarest of these, as many as make the match rare enough.
    """
    costs: list[tuple[int, Term]] = []
    for term, parts in zip(wanted, stems.of([each.words for each in wanted]), strict=True):
        if parts:
            count = _beginning if term.begins else _passages
            costs.append((min(count(database, part) for part in parts), term))
    costs = sorted(costs, key=lambda cost: (cost[0], cost[1].words))[:MOST_TERMS]
    any_of: list[Term] = []
    left = rows
    while costs and costs[0][0] <= left:
        cost, term = costs.pop(0)
        left -= cost
        any_of.append(term)
    # Words go together in text, so that each further one halves its effect in the estimate.
    all_of: list[Term] = []
    estimate = float(passages)
    for number, (cost, term) in enumerate(costs):
        if number and (estimate <= left or number == 4):
            break
        estimate *= (cost / max(passages, 1)) ** (0.5**number)
        all_of.append(term)
    if estimate > left and rows - left > rows // 8:
        all_of = []  # too many, and the rarer terms find enough
    return query(any_of, all_of)


def _passages(database: sqlite3.Connection, stem: str) -> int:
    found = database.execute("SELECT passages FROM frequent WHERE term = ?", (stem,)).fetchone()
    return int(found[0]) if found else FREQUENT


def _beginning(database: sqlite3.Connection, stem: str) -> int:
    """About how many passages have a word that begins so, at most."""
    found = database.execute(
        "SELECT sum(passages) FROM frequent WHERE term >= ? AND term < ?", (stem, stem + chr(0x10FFFF))
    ).fetchone()
    return int(found[0] or 0) + FREQUENT
