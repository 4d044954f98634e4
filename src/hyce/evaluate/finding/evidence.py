"""Which of the passages found hold the evidence that answers a question, and how soon a reader meets it.

A hit supports a piece of evidence when it is of the same page and has at least 80 % of the quote's words in
order, markup left out on both sides. So passages of any size and any way to cut a page are measured alike:
words are compared, not the passages' numbers. What a reader gets to see is counted in words too, so that long
passages gain nothing.

What a word is: a run of letters a to z and digits, as for English documentation; a letter with a mark parts
words. Of scripts other than Latin a run of letters is one too, and a character alone where words are not
spaced.
"""

from __future__ import annotations

import html
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache

from hyce.evaluate.finding.ranking import Ranking
from hyce.evaluate.records import Evidence, Question
from hyce.records import Hit

BUDGETS = (500, 2000)
"""Words: about what a person reads, and about what a model is given."""

_LATIN = (
    "\x00-\u036f\u1d00-\u1dbf\u1e00-\u1eff\u2c60-\u2c7f\ua720-\ua7ff\uab30-\uab6f"
    "\u2000-\u2bff\ufb00-\ufb06\uff00-\uff5e\U0001d400-\U0001d7ff"  # signs and letter shapes of its texts
)
_UNSPACED = (
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003134f"  # Chinese characters and kana
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
)
_WORD = re.compile(rf"[a-z0-9]+|[{_UNSPACED}]|(?:[^\W{_LATIN}{_UNSPACED}])+")
_TAG = re.compile(r"<[^>]{1,300}>")
_MARKUP = re.compile(
    r"\]\([^)\s]*\)"  # where a Markdown link leads
    r"|\]\[[^\]]*\]"  # the name of one that is given elsewhere
    r"|\{[:#.][^}]*\}"  # attributes: {#anchor}, {: .class}, {.class}
    r"|:[a-z:]+:`"  # a reStructuredText role
    r"|`<[^>]*>`_*|<[^>\s]+>`_+"  # where its links lead
)

Words = tuple[str, ...]


def support(evidence: Sequence[Evidence], hits: Sequence[tuple[str, str]]) -> list[frozenset[int]]:
    """For each hit, as (path, text), which pieces of evidence it supports, by their place in `evidence`.

    A path may begin at a folder above or below the one where the evidence's path begins. Sources are not
    compared: the same pages may lie in another folder when they are measured again.
    """
    return [_pieces(evidence, path, words(text)) for path, text in hits]


def found(question: Question, hits: Sequence[Hit]) -> list[frozenset[int]]:
    """For each hit, which pieces of the evidence it supports."""
    return [_supported(question, hit, words(hit.passage.text)) for hit in hits]


def first_support(question: Question, hits: Sequence[Hit]) -> int | None:
    """Place, from 1, of the first hit that supports a piece of the evidence; None where none does."""
    texts = ((hit, words(hit.passage.text)) for hit in hits)
    return next((n for n, (hit, text) in enumerate(texts, 1) if _supported(question, hit, text)), None)


def ranking(question: Question, hits: Sequence[Hit]) -> Ranking:
    """The hits as ranking.py measures them: which of the question's needs each one meets.

    Each piece of evidence is a need of its own where the question needs all; else they are one need together.
    """
    pieces = len(question.evidence)
    if question.needs_all:
        return Ranking(tuple(found(question, hits)), pieces)
    met = (frozenset({0}) if supported else frozenset() for supported in found(question, hits))
    return Ranking(tuple(met), min(pieces, 1))


def recall_within(
    question: Question, hits: Sequence[Hit], budgets: Sequence[int] = BUDGETS
) -> dict[int, float]:
    """By budget in words, how much of the evidence the hits show; empty for a question without evidence.

    A question that needs all its evidence scores the share that is found, any other 1 as soon as one piece
    is. A hit that crosses the limit is cut there.
    """
    if not question.evidence:
        return {}
    return {budget: _share(question, hits, budget) for budget in budgets}


@lru_cache(maxsize=4096)  # a passage is found for many questions, a quote compared with many passages
def words(text: str) -> Words:
    """The words of a text in lower case, without markup."""
    return tuple(_WORD.findall(_TAG.sub(" ", html.unescape(_MARKUP.sub(" ", text))).lower()))


def common(first: Sequence[str], second: Sequence[str]) -> int:
    """Length of the longest common subsequence of two lists of words.

    Bit by bit in one integer (Hyyrö 2004, "Bit-parallel LCS-length computation revisited"): a step for each
    word of the second that the first has too, each on a number with a bit for each word of the first.
    """
    places: dict[str, int] = defaultdict(int)
    for place, word in enumerate(first):
        places[word] |= 1 << place
    every = unmatched = (1 << len(first)) - 1
    for word in second:
        if word in places:
            at = unmatched & places[word]
            unmatched = ((unmatched + at) | (unmatched - at)) & every
    return len(first) - unmatched.bit_count()


def _share(question: Question, hits: Sequence[Hit], budget: int) -> float:
    shown = [_supported(question, hit, text) for hit, text in _within(hits, budget)]
    pieces = len(frozenset().union(*shown))
    return pieces / len(question.evidence) if question.needs_all else float(pieces > 0)


def _within(hits: Sequence[Hit], budget: int) -> Iterator[tuple[Hit, Words]]:
    """The hits that start within the first `budget` words of all, each with its words up to there."""
    left = budget
    for hit in hits:
        if left <= 0:
            return
        text = words(hit.passage.text)
        yield hit, text[:left]
        left -= len(text)


def _supported(question: Question, hit: Hit, text: Words) -> frozenset[int]:
    return _pieces(question.evidence, hit.passage.path, text)


def _pieces(evidence: Sequence[Evidence], path: str, text: Words) -> frozenset[int]:
    """Which pieces these words of a page support."""
    return frozenset(
        number
        for number, piece in enumerate(evidence)
        if same_page(path, piece.path) and _holds(text, words(piece.quote))
    )


def same_page(hit: str, wanted: str) -> bool:
    """Whether both paths name one page, also where one of them begins at a folder further up."""
    hit = hit.partition("#")[0].lstrip("./")
    return hit == wanted or hit.endswith(f"/{wanted}") or wanted.endswith(f"/{hit}")


def _holds(text: Words, quote: Words) -> bool:
    """Whether the text has 80 % of the quote's different words, and 80 % of all its words in order."""
    different = set(quote)
    if not quote or 5 * len(different.intersection(text)) < 4 * len(different):
        return False
    return 5 * common(quote, text) >= 4 * len(quote)
