"""How many tokens a text has: measured with a model's own tokenizer, or estimated."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path

from hyce.errors import ConfigError

Length = Callable[[str], int]


def token_length(tokenizer: str, setting: str) -> Length:
    """Measures a text in the tokens of a tokenizer.json, special tokens not counted; `estimate` without one.

    setting: where the path comes from. Raises ConfigError when the file can't be read.
    """
    if not tokenizer:
        return estimate
    from tokenizers import Tokenizer

    path = Path(tokenizer).expanduser()
    try:
        loaded = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises plain Exception
        raise ConfigError(
            f"{setting}: {path} can't be read as a tokenizer.json; leave it out or mend it"
        ) from error
    # Files come with padding and truncation of their own; the whole text is measured.
    loaded.no_padding()
    loaded.no_truncation()
    return lambda text: len(loaded.encode(text, add_special_tokens=False).ids)


def estimate(text: str) -> int:
    """Tokens of a text, estimated too high for the tokenizers in use.

    A word counts one for each three letters, a digit, a mark and a line break count one each, blanks
    beyond one count a half, and what is not ASCII counts its bytes.
    """
    tokens = 0
    for piece in re.finditer(r"[A-Za-z]+|[ \t]+|[^A-Za-z \t]+", text):
        first = piece[0][0]
        size = len(piece[0])
        if first in " \t":
            tokens += size // 2
        elif first.isascii() and first.isalpha():
            tokens += math.ceil(size / 3)
        else:
            tokens += len(piece[0].encode("utf-8", "replace"))
    return tokens


def longest(most: int, version: Callable[[int], str], room: int, length: Length) -> str:
    """The longest version within `room` tokens, by bisection over the characters kept, from 0 to `most` - 1;
    empty if none fits."""
    low, high = 0, most
    best = ""
    while low < high:
        middle = (low + high) // 2
        candidate = version(middle)
        if length(candidate) <= room:
            best, low = candidate, middle + 1
        else:
            high = middle
    return best
