"""Sets of names, written as one text."""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    """The words of the text."""
    return frozenset(text.split())
