"""How well pages in other languages than English are found by their words.

    python benchmarks/languages.py

The pages of tests/data/languages.toml, in seven languages, stand in one index together with the sample
documentation, and each is asked for by its own questions with lexical search alone. Before: every page is
indexed as English, as SQLite's tokenizer has it. After: each in its own language.
"""

from __future__ import annotations

import sqlite3
import tempfile
import tomllib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from statistics import mean
from typing import Any

import environment
import numpy as np
import report

from hyce.config import Config
from hyce.index import lexical
from hyce.index.database import open_read_only
from hyce.index.embedded import IndexReader, open_index, open_writer
from hyce.index.manifest import generation_folder
from hyce.indexing import index_sources
from hyce.languages import NAMES
from hyce.records import Embedding

DATA = environment.REPOSITORY / "tests" / "data" / "languages.toml"
KESTREL = environment.REPOSITORY / "examples" / "kestrel"
FIRST = 5
MOST = 100
"""Passages looked at."""


class NoEmbedder:
    """An Embedder whose vectors are all the same: meaning plays no part here."""

    fingerprint = "none"
    dimensions = 1
    token_vectors = False

    def embed(
        self,
        texts: Sequence[str],
        *,
        tokens: bool = False,  # noqa: ARG002
        query: bool = False,  # noqa: ARG002
    ) -> list[Embedding]:
        return [Embedding(np.ones(1, np.float32), np.empty((0, 1), np.float32)) for _ in texts]

    def length(self, text: str) -> int:
        return len(text) // 4


def main() -> None:
    pages: list[dict[str, Any]] = tomllib.loads(DATA.read_text(encoding="utf-8"))["page"]
    with tempfile.TemporaryDirectory(prefix="hyce-languages-") as work:
        folder = Path(work) / "pages"
        for page in pages:
            file = folder / page["path"]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(page["text"], encoding="utf-8")
        before = measure(pages, folder, Path(work) / "before", english=True)
        after = measure(pages, folder, Path(work) / "after")
    rows: list[dict[str, report.Cell]] = []
    for code in dict.fromkeys(page["language"] for page in pages):
        old, new = before[code], after[code]
        rows.append(
            {
                "language": NAMES[code],
                "questions": len(new),
                f"recall@{FIRST}, English alone": share(old, FIRST),
                f"recall@{FIRST}": share(new, FIRST),
                "first, English alone": share(old, 1),
                "first": share(new, 1),
            }
        )
    publish(rows)


def measure(
    pages: Sequence[dict[str, Any]], folder: Path, index: Path, *, english: bool = False
) -> dict[str, list[int]]:
    """By language, the rank of the page that answers each question; 0 where it isn't found.

    english: treat all pages and questions as English.
    """
    config = Config()
    config = replace(config, index=replace(config.index, languages=("en",) if english else ()))
    with open_writer(index, embedder="none", dimensions=1, passages="", token_vectors=False) as writer:
        index_sources([str(folder), str(KESTREL)], writer, NoEmbedder(), config, lambda *_: None)
    ranks: dict[str, list[int]] = defaultdict(list)
    with open_index(index) as reader:
        database = open_read_only(generation_folder(index, reader.manifest.generation) / "passages.db")
        for page in pages:
            for question in page["questions"]:
                ids = (
                    as_english(database, question)
                    if english
                    else [n for n, _ in reader.lexical(question, MOST)]
                )
                ranks[page["language"]].append(rank(reader, ids, folder, page["path"]))
        database.close()
    return ranks


def as_english(database: sqlite3.Connection, question: str) -> list[int]:
    """Passages by the question's own words, with the weights of hyce."""
    words = [term for term in lexical.terms(question) if term.among == "all"]
    weights = f"bm25({lexical.TITLE_WEIGHT}, {lexical.HEADING_WEIGHT}, {lexical.BODY_WEIGHT}, 0.0)"
    found = database.execute(
        "SELECT rowid FROM text WHERE text MATCH ? AND rank MATCH ? ORDER BY rank LIMIT ?",
        (lexical.query(words), weights, MOST),
    )
    return [number for (number,) in found]


def rank(reader: IndexReader, ids: Sequence[int], folder: Path, path: str) -> int:
    """The place of the page among the pages found, counted from 1; 0 where it isn't there."""
    places = list(dict.fromkeys((passage.source, passage.path) for passage in reader.passages(ids)))
    wanted = (str(folder), path)
    return places.index(wanted) + 1 if wanted in places else 0


def share(ranks: Sequence[int], first: int) -> float:
    return round(mean(1 <= place <= first for place in ranks), 2)


def publish(rows: Sequence[dict[str, report.Cell]]) -> None:
    """Write results/languages."""
    notes = (
        f"recall@{FIRST}, first: share of the questions whose page is among the first {FIRST}, or the first, "
        "by words alone (BM25; no meaning, no late interaction). English alone: the same index and questions "
        "with SQLite's English tokenizer for all languages.",
        "Five pages a language, written for this, beside the sample documentation in one index. Few and "
        "clean pages: what counts is the difference, not the height.",
        "English questions have rivals in the sample documentation, which answers most of them as well.",
    )
    versions = {name: version(name) for name in ("py3langid", "snowballstemmer")}
    title = "How well pages in other languages are found by words"
    path = report.write("languages", title, rows, notes, versions)
    print(path.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
