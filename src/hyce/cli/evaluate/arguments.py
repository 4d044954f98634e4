"""Arguments that several actions have."""

from __future__ import annotations

import argparse

QUESTIONS = "a question file, or the folder that `hyce evaluate generate` made"
"""What such a positional argument takes."""
_MOST_AT_ONCE = 64


def add_at_once(parser: argparse.ArgumentParser) -> None:
    """Add --at-once."""
    parser.add_argument(
        "--at-once", type=_at_once, default=4, metavar="N", help="calls under way at a time (default: 4)"
    )


def from_zero(text: str) -> int:
    """A number from 0 upwards."""
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 0 upwards")
    return int(text)


def _at_once(text: str) -> int:
    if not 1 <= from_zero(text) <= _MOST_AT_ONCE:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to {_MOST_AT_ONCE}")
    return int(text)
