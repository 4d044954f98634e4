"""The field's terms for what newcomers say: "graphics card" is a GPU in the documentation.

A question and the page that answers it often share no word. Embeddings bridge general language, but a small
model knows little of this field's, so the terms that documentation uses are added to the question.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path

from hyce.languages import ENGLISH, of_question

FILE = Path(__file__).parent / "vocabulary.toml"


def field_terms(question: str) -> list[str]:
    """The field's terms for what the question says, without those that it has itself; each once.

    None for a question in another language than English: there "die" and "room" mean something else.
    """
    have = set(re.findall(r"\w+", question.lower()))
    terms: dict[str, None] = {}
    for said, means in _entries():
        if said.search(question):
            terms.update(dict.fromkeys(term for term in means if term.lower() not in have))
    return list(terms) if terms and of_question(question) in ("", ENGLISH) else []


@cache
def _entries() -> tuple[tuple[re.Pattern[str], tuple[str, ...]], ...]:
    """What is said, as one expression of whole words, and what it means."""
    entries = tomllib.loads(FILE.read_text(encoding="utf-8"))["entry"]
    return tuple(
        (
            re.compile(rf"\b(?:{'|'.join(map(re.escape, entry['said']))})s?\b", re.IGNORECASE),
            tuple(entry["means"].split()),
        )
        for entry in entries
    )
