"""From a question to a full-text query that can't fail and can't be slow."""

from __future__ import annotations

import re
import sqlite3
import threading
import unicodedata
from collections.abc import Sequence

from hyce.index.database import FREQUENT, TOKENIZER

TITLE_WEIGHT, HEADING_WEIGHT, BODY_WEIGHT = 2.0, 2.0, 1.0
"""BM25: what an occurrence in each column counts."""

ROWS_RANKED = 4000
"""Passages ranked for one question, about: FTS5 takes a microsecond for each (see affordable). In an index of
5,680 passages of three centres, 2,000 and 8,000 found equally well."""

MOST_TERMS = 64

_COMPOUND = re.compile(r"[^\W_]+(?:[-_./:=+@%]+[^\W_]+)*")
_WORD = re.compile(r"[^\W_]+")

_ENGLISH = """
a about after again all also am an and any are as at be because been before being between both but by
can cannot could did do does doing don done during each for from further get gets getting give given go
got had has have having he her here hers him his how i if in into is it its just let like make may me
might mine more most must my need no nor not of off on once only or other our ours out over own please
same shall she should so some such t s d ll m re ve than that the their theirs them then there these
they this those through to too under until up us very want was we were what when where which while who
whom why will with would you your yours
"""
STOP_WORDS = frozenset(_ENGLISH.split())


def terms(question: str) -> list[str]:
    """The question's words, without stop words, each once; the parts of a compound such as
    --mem-per-cpu also side by side, as "mem per cpu". Only letters, digits and single spaces."""
    found: dict[str, None] = {}
    for compound in _COMPOUND.findall(unicodedata.normalize("NFC", question)):
        words = _WORD.findall(compound.lower())
        if len(words) > 1:
            found[" ".join(words)] = None
        found.update(dict.fromkeys(words))
    wanted = [term for term in found if term not in STOP_WORDS]
    return wanted or list(found)  # a question may be made of them: "who", "at"


def query(any_of: Sequence[str], all_of: Sequence[str] = ()) -> str:
    """An FTS5 expression: any of these terms, or else all of those. Quoted, none of them can be syntax."""
    alternatives = [f'"{term}"' for term in any_of]
    if all_of:
        alternatives.append("(" + " AND ".join(f'"{term}"' for term in all_of) + ")")
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
    database: sqlite3.Connection, stems: Stems, wanted: Sequence[str], passages: int, rows: int
) -> str:
    """A query for the terms that ranks about `rows` passages of an index of `passages`; empty without terms.

    FTS5 ranks every passage that matches any term, and in a large index the words that are in every tenth
    passage would take most of the time and tell the passages apart least. So a passage must have one of the
    rarer terms, or several of the frequent ones: the rarest of these, as many as make the match rare enough.
    """
    costs: list[tuple[int, str]] = []
    for term, parts in zip(wanted, stems.of(wanted), strict=True):
        if parts:
            costs.append((min(_passages(database, part) for part in parts), term))
    costs = sorted(costs)[:MOST_TERMS]
    any_of: list[str] = []
    left = rows
    while costs and costs[0][0] <= left:
        cost, term = costs.pop(0)
        left -= cost
        any_of.append(term)
    # Words go together in text, so that each further one halves its effect in the estimate.
    all_of: list[str] = []
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
