"""The forms by which words of other languages than English are found: stems, and pairs of characters.

SQLite stems English alone, and takes a whole Chinese sentence for one word. So passages in other languages
have a further column of words that are brought to these forms here, and so are the words of a question. What
the forms of a word are in a passage they are in a question; nothing else has to hold for it to be found.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Any

from hyce.stop_words import stop_words

SNOWBALL = {
    "ar": "arabic", "ca": "catalan", "cs": "czech", "da": "danish", "de": "german", "el": "greek",
    "es": "spanish", "et": "estonian", "fa": "persian", "fi": "finnish", "fr": "french", "hu": "hungarian",
    "id": "indonesian", "it": "italian", "lt": "lithuanian", "nl": "dutch", "no": "norwegian", "pl": "polish",
    "pt": "portuguese", "ro": "romanian", "ru": "russian", "sr": "serbian", "sv": "swedish", "tr": "turkish",
}  # fmt: skip
"""Snowball's name for the stemmer of a language. Words of other languages stay as they are."""

_LETTERS = (
    "\u3005-\u3007\u3040-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003134f"  # Chinese characters and kana
    "\uac00-\ud7af"  # Korean has spaces, but its particles stick to the words
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
)
# Compiled when needed: that takes milliseconds, and a search in English needs none of them.
_PIECE = rf"(?P<run>[{_LETTERS}]+)|(?:(?![{_LETTERS}])[^\W_])+"
_RUN = rf"[{_LETTERS}]"
_HIRAGANA = r"[\u3040-\u309f]+"


def stored(text: str, language: str) -> str:
    """A passage's words in their forms, for the index; of English only what has no spaces between words."""
    if language == "en" and (text.isascii() or not re.search(_RUN, text)):
        return ""
    found: list[str] = []
    for piece, is_run in _pieces(text):
        if is_run:
            found += [*_pairs(piece), piece[-1]]
        elif language != "en":
            found.append(stem(piece, language))
    return " ".join(found)


def asked(word: str, language: str) -> list[str]:
    """The forms of a question's word, or of several side by side.

    Stems, and pairs of characters from scripts without spaces; pairs that say little are left out where
    others remain. A single character of such a script (see one_of_a_run) stands for what begins with it too.
    """
    if language == "en" and word.isascii():
        return []
    found: dict[str, None] = {}
    stems: list[str] = []
    for piece, is_run in _pieces(word):
        if not is_run:
            stems.append(stem(piece, language))
            continue
        pairs = _pairs(piece) or [piece]
        telling = [
            pair for pair in pairs if not re.fullmatch(_HIRAGANA, pair) and pair not in stop_words("zh")
        ]
        found.update(dict.fromkeys(telling or pairs))
    if stems and language != "en":
        found[" ".join(stems)] = None
    return list(found)


def one_of_a_run(form: str) -> bool:
    """Whether the form is one character of a script without spaces."""
    return len(form) == 1 and bool(re.match(_RUN, form))


@lru_cache(maxsize=50_000)
def stem(word: str, language: str) -> str:
    """The word's stem, in lower case; the word itself where nothing is known of the language."""
    stemmer = _stemmer(language)
    return (stemmer and str(stemmer.stemWord(word))) or word


@cache
def _stemmer(language: str) -> Any:
    name = SNOWBALL.get(language)
    if not name:
        return None
    import snowballstemmer  # late: only an index with pages in other languages needs it

    return snowballstemmer.stemmer(name)


def _pieces(text: str) -> Iterator[tuple[str, bool]]:
    """The words in lower case, and the runs of characters without spaces; and which of both each is.

    Compatibility forms are one: a full-width letter is a letter. Vowel signs and tones are left out of runs,
    since SQLite takes them for spaces.
    """
    for found in re.finditer(_PIECE, unicodedata.normalize("NFKC", text).lower()):
        piece = found.group()
        if found["run"]:
            piece = "".join(letter for letter in piece if unicodedata.category(letter)[0] == "L")
        if piece:
            yield piece, bool(found["run"])


def _pairs(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(len(run) - 1)]
