"""Which language a page or a question is in, as an ISO 639-1 code such as de.

A page has enough words for a statistical recogniser (py3langid), and only `hyce index` needs it. A question
is a few words, half of them program names: only those that its small words give away are told from English,
and nothing is loaded for it.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from hyce.errors import ConfigError
from hyce.records import Page
from hyce.stop_words import WORD_LISTS, stop_words

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

ENGLISH = "en"

NAMES = {
    "ar": "Arabic", "bg": "Bulgarian", "ca": "Catalan", "cs": "Czech", "da": "Danish", "de": "German",
    "el": "Greek", "en": "English", "es": "Spanish", "et": "Estonian", "fa": "Persian", "fi": "Finnish",
    "fr": "French", "he": "Hebrew", "hi": "Hindi", "hr": "Croatian", "hu": "Hungarian", "id": "Indonesian",
    "it": "Italian", "ja": "Japanese", "ko": "Korean", "lt": "Lithuanian", "lv": "Latvian", "nl": "Dutch",
    "no": "Norwegian", "pl": "Polish", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian", "sk": "Slovak",
    "sl": "Slovenian", "sr": "Serbian", "sv": "Swedish", "th": "Thai", "tr": "Turkish", "uk": "Ukrainian",
    "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip
"""The languages that are told apart."""

_SAME = {"nb": "no", "nn": "no", "iw": "he", "cmn": "zh"}

ENGLISH_MODELS = ("all-MiniLM-", "multi-qa-MiniLM-", "all-mpnet-base-", "bge-small-en", "bge-base-en")
"""How the names of embedding models begin that were trained on English alone."""

REMEDY = 'Set preset = "multilingual", run `hyce models pull` and `hyce index`.'
"""Where the model doesn't know the language of pages."""

SAMPLE = 4000
"""Characters of a page that are looked at."""
SURE = 0.9
"""Probability from which a page's own words count more than what it declares."""
CLEARLY_ENGLISH = 0.2
"""Share of English stop words from which a page is English and nothing has to be loaded. Nearly all English
pages of three centres have more, full of code or not; in other languages it is below 0.1."""
LEAST_WORDS = 3
SCRIPT_SHARE = 0.15
"""Share of a script among a page's letters from which the page is written in it: the rest may be commands."""

_WORD = r"[^\W\d_]+"
_SCRIPTS = (
    ("ja", r"[\u3040-\u30ff]"),
    ("ko", r"[\u1100-\u11ff\uac00-\ud7af]"),
    ("zh", r"[\u3400-\u4dbf\u4e00-\u9fff]"),
    ("th", r"[\u0e00-\u0e7f]"),
    ("el", r"[\u0370-\u03ff]{2}"),
    ("he", r"[\u0590-\u05ff]"),
    ("ar", r"[\u0600-\u06ff]"),
    ("hi", r"[\u0900-\u097f]"),
    ("ru", r"[\u0400-\u04ff]{2}"),
)
"""Scripts that give a language, or its relatives, away: kana first, for Japanese has Chinese characters.
One letter of Greek or Cyrillic alone is a symbol."""
ALONE = ("ja", "ko", "zh", "th", "el", "he")
"""Those that one language alone is written in, of NAMES."""


class Recogniser:
    """Tells the language of pages."""

    def __init__(self, among: Sequence[str] = ()) -> None:
        """among: the only languages that pages are in, of NAMES; empty: any. Raises ConfigError."""
        for code in among:
            if code not in NAMES:
                known = ", ".join(NAMES)
                raise ConfigError(f"index.languages: {code!r} is not known; name some of {known}")
        self._among = tuple(among) or tuple(NAMES)

    def language(self, page: Page) -> str:
        """That of the page's words where they are clear, else the one that the page declares, else English.

        Code and tables don't count. What a page declares comes second, because many a site builder writes
        lang="en" whatever the author writes.
        """
        declared = code_of(page.language)
        likely = declared if declared in self._among else ""
        if not likely:
            likely = ENGLISH if ENGLISH in self._among else self._among[0]
        if len(self._among) == 1:
            return likely
        return self._recognised(_prose(page)) or likely

    def _recognised(self, text: str) -> str:
        """The text's language; empty where that isn't sure."""
        script = _script(text, SCRIPT_SHARE)
        if script in ALONE:
            return script if script in self._among else ""
        words = re.findall(_WORD, text.lower())
        if len(words) < LEAST_WORDS:
            return ""
        if ENGLISH in self._among:
            english = sum(word in stop_words(ENGLISH) for word in words)
            if english >= CLEARLY_ENGLISH * len(words) and len(words) >= 5 * LEAST_WORDS:
                return ENGLISH
        likely: dict[str, float] = defaultdict(float)
        for found, probability in _identifier(self._among).rank(text):
            likely[code_of(found)] += probability
        best = max(likely, key=lambda code: likely[code])
        return best if likely[best] >= SURE else ""


@lru_cache(maxsize=1)  # half a second and 100 MB
def _identifier(among: tuple[str, ...]) -> LanguageIdentifier:
    """What recognises these languages and no others."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    wanted = {*among, *(other for other, code in _SAME.items() if code in among)}
    identifier.set_languages(sorted(wanted.intersection(identifier.labels)))
    return identifier


def code_of(declared: str) -> str:
    """The code in NAMES that a declaration such as de-AT or zh_CN means; empty for others."""
    first = re.split(r"[-_]", declared.strip().lower(), maxsplit=1)[0]
    code = _SAME.get(first, first)
    return code if code in NAMES else ""


def of_question(question: str) -> str:
    """The question's language where its script or its small words tell; empty where they don't.

    Meant to be right where it says anything: an English question is never taken for another language because
    of a word that both have ("die"). Of languages that share a script it names one.
    """
    script = _script(question)
    if script:
        return script
    text = unicodedata.normalize("NFC", question).lower()
    words = [word for word in re.findall(_WORD, text) if len(word) > 1]
    hits = {code: sum(word in stop_words(code) for word in words) for code in WORD_LISTS}
    english = hits.pop(ENGLISH)
    best = max(hits, key=lambda code: hits[code])

    def own(code: str, other: str) -> list[str]:
        return [word for word in words if word in stop_words(code) and word not in stop_words(other)]

    # One word that English hasn't may be a name all the same: "mac os", "cores per node".
    if hits[best] > english and len(own(best, ENGLISH)) > int(text.isascii()):
        return best
    return ENGLISH if english >= hits[best] and own(ENGLISH, best) else ""


def beside_english(held: Mapping[str, int], question: str) -> tuple[str, ...]:
    """The languages, of those that an index holds, in whose forms the question's words are looked up as well.

    None for an English question where there are English pages: else a word that both languages have would
    count more in the language with fewer pages.
    """
    others = tuple(code for code in held if code != ENGLISH)
    if others and held.get(ENGLISH) and of_question(question) == ENGLISH:
        return ()
    return others


def unknown_to(model: str, held: Mapping[str, int]) -> str:
    """A sentence on the pages that the embedding model doesn't understand; empty where there are none."""
    others = {code: count for code, count in held.items() if code != ENGLISH}
    if not others or not english_only(model):
        return ""
    listed = ", ".join(f"{NAMES.get(code, code)} ({count})" for code, count in sorted(others.items()))
    return (
        f"pages in other languages: {listed}; {model} knows English alone and finds them by their words only"
    )


def english_only(model: str) -> bool:
    """Whether the embedding model is known to understand English alone."""
    return model.rpartition("/")[2].startswith(ENGLISH_MODELS)


def _script(text: str, share: float = 0.0) -> str:
    """The language that a script with more than this share of the letters gives away; empty for Latin."""
    if text.isascii():
        return ""
    letters = sum(map(str.isalpha, text))
    for code, script in _SCRIPTS:
        if len(re.findall(script, text)) > share * letters:
            return code
    return ""


def _prose(page: Page) -> str:
    """The beginning of what people wrote on the page: headings and text, no code, no tables."""
    parts: list[str] = [page.title]
    for section in page.sections:
        parts += section.heading[-1:]
        parts += [
            unit for block in section.blocks if block.kind not in ("code", "table") for unit in block.units
        ]
        if sum(map(len, parts)) >= SAMPLE:
            break
    return "\n".join(parts)[:SAMPLE]
