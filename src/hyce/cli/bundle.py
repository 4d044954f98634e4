"""hyce models bundle."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from hyce.cli.terminal import Terminal
from hyce.config import Config


def register(actions: Any, common: argparse.ArgumentParser) -> None:
    """Add the action to those of `hyce models`."""
    bundle = actions.add_parser(
        "bundle",
        parents=[common],
        help="pack program, models and index for a machine without internet",
        description="Packs this program with the packages that it runs with, models and the index into one "
        "file. `python3 FILE FOLDER` then installs all of it on a machine of the same kind that reaches no "
        "network. Settings, keys and what was asked are not packed.",
    )
    bundle.add_argument("file", type=Path, metavar="FILE", help="where to write it, such as hyce-bundle.pyz")
    bundle.add_argument(
        "--model",
        dest="models",
        nargs="+",
        default=[],
        metavar="NAME",
        help="these models in place of those that the settings use",
    )
    bundle.add_argument("--without-index", action="store_true", help="leave the index out")
    bundle.add_argument(
        "--wheels",
        type=Path,
        metavar="FOLDER",
        help="take what can't be packed from the installed packages from this folder of wheels, and ask no "
        "package index",
    )
    bundle.set_defaults(call=run_models_bundle)


def run_models_bundle(arguments: argparse.Namespace, config: Config, terminal: Terminal) -> int:
    """Write the bundle, and say what is in it."""
    from hyce.bundle import make

    with terminal.progress("packing") as progress:
        made = make(
            arguments.file,
            config,
            names=arguments.models,
            with_index=not arguments.without_index,
            given=arguments.wheels,
            progress=progress.update,
        )
    if terminal.json_output:
        terminal.json(
            {
                "file": str(made.file),
                "bytes": made.bytes,
                "packages": list(made.packages),
                "models": list(made.models),
                "documents": made.documents,
            }
        )
        return 0
    terminal.print(f"{made.file}: {made.bytes / 1e6:.0f} MB")
    terminal.print(f"  packages  {len(made.packages)}")
    terminal.print(f"  models    {', '.join(made.models) or 'none'}")
    terminal.print(f"  index     {'none' if made.documents is None else f'{made.documents} pages'}")
    terminal.note(f"Install it with `python3 {made.file.name} FOLDER`, on a machine of this kind.")
    return 0
