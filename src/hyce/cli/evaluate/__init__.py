"""hyce evaluate: one module for each of its actions."""

from __future__ import annotations

import argparse
from typing import Any

from hyce.cli.evaluate import gate, generate, injection, report, retrieval, routing, run, similarity


def register(subparsers: Any, common: argparse.ArgumentParser) -> None:
    """Add the commands to the parser."""
    evaluate = subparsers.add_parser(
        "evaluate",
        help="measure answers, passages and commands",
        description="Measures hyce on this site's own documentation, commands and models.",
    )
    actions = evaluate.add_subparsers(dest="action", metavar="ACTION", required=True)
    for module in (generate, run, report, retrieval, routing, similarity, injection, gate):
        module.register(actions, common)
