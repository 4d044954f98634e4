"""Plain text: white space, sentences, and the emoji and icon codes of documentation themes."""

from __future__ import annotations

import re
import unicodedata

_SPACE = re.compile(r"[^\S\n]+")
_INVISIBLE = re.compile("[\u200b\u200c\u200d\u2060\ufeff\u00ad\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
# An icon of a theme, with the attributes that may follow it: :material-server:{ .lg }
_ICON = re.compile(r":(?:material|fontawesome|octicons|simple)[-/][\w/-]+:(?:\{[^{}\n]*\})?")
_YES_ICON = re.compile(
    r":(?:material|octicons|fontawesome-\w+)-(?:check|checkbox|tick)[\w-]*:(?:\{[^{}\n]*\})?"
)
_NO_ICON = re.compile(
    r":(?:material|octicons|fontawesome-\w+)-(?:close|x|xmark|times)[\w-]*:(?:\{[^{}\n]*\})?"
)
_SENTENCE = re.compile(r"""(?<=[.!?])(?P<close>["')\]]*)\s+(?=["'(\[]?[A-Z0-9`$/~])""")
_ABBREVIATION = re.compile(
    r"(?:^|[\s(])(?:e\.g|i\.e|etc|cf|vs|approx|ca|no|nos|fig|figs|sec|dr|prof|mr|mrs|ms|st|incl|resp|max|min|[A-Z])"
    r"\.[\"')\]]*$",
    re.IGNORECASE,
)
LONGEST_ABBREVIATION = 16
"""Characters, with the space before it and the quotes and brackets behind it."""


def visible(text: str) -> str:
    """The text without control characters and characters that print nothing or reorder others."""
    return _CONTROL.sub(" ", _INVISIBLE.sub("", text))


def icons(text: str) -> str:
    """The text with check marks and crosses kept as signs, and other theme icons dropped."""
    if ":" not in text:
        return text
    return _ICON.sub("", _NO_ICON.sub("\u2717", _YES_ICON.sub("\u2713", text)))


def tidy(text: str) -> str:
    """The text with runs of spaces made one and empty lines dropped; line breaks stay."""
    lines = (_SPACE.sub(" ", line).strip() for line in text.split("\n"))
    return "\n".join(line for line in lines if line)


def one_line(text: str) -> str:
    return " ".join(text.split())


def sentences(text: str) -> tuple[str, ...]:
    """The text's lines, each cut at the ends of its sentences."""
    units: list[str] = []
    for line in text.split("\n"):
        start = 0
        for match in _SENTENCE.finditer(line):
            end = match.end("close")
            # Only the last word counts; to look at more of it takes time that grows with its square.
            if _ABBREVIATION.search(line, max(start - 1, end - LONGEST_ABBREVIATION, 0), end):
                continue
            units.append(line[start:end].strip())
            start = match.end()
        units.append(line[start:].strip())
    return tuple(unit for unit in units if unit)


def is_sign(text: str, signs: str) -> bool:
    """Whether the text is nothing but one of these signs (an emoji variant selector aside)."""
    return text.replace("\ufe0f", "").strip() in set(signs)


def cell(text: str) -> str:
    """A table cell on one line; a lone check mark or cross becomes a word that search can find."""
    text = "; ".join(part for part in tidy(text).split("\n") if part)
    if is_sign(text, "\u2705\u2714\u2713\u2611\U0001f5f8"):
        return "yes"
    if is_sign(text, "\u274c\u2717\u2718\u2716\u2715\u274e"):
        return "no"
    return text


def says_something(alt: str) -> bool:
    """Whether an image's alternative text tells more than that there is an image."""
    alt = one_line(alt)
    if len(alt) < 4 or re.fullmatch(r"[\w./-]+\.(?:png|jpe?g|gif|svg|webp)", alt, re.IGNORECASE):
        return False
    words = re.findall(r"[a-z]+", unicodedata.normalize("NFKD", alt).lower())
    return bool(
        set(words)
        - {"image", "img", "logo", "icon", "picture", "screenshot", "figure", "alt", "text", "badge"}
    )
