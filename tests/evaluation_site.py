"""A small site to evaluate: pages and commands that each hold one fact, of the form in evaluation_llm.py."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evaluation_llm import Actor
from hyce_home import Home, Result

from hyce import catalogue

PAGES = {
    "jobs": (
        "# Time limits of batch jobs\n\n"
        "A job that runs longer than the queue allows is ended by the batch system without a "
        "warning. The walltime limit of queue heron is 48 hours. Save your results before."
    ),
    "interactive": (
        "# Time limits of interactive jobs\n\n"
        "A job in which you work at a terminal runs at once, and is ended by the batch system too. "
        "The walltime limit of queue swift is 2 hours. Save your results before."
    ),
    "storage": (
        "# Space in your home directory\n\n"
        "Your home directory is backed up every night and meant for source code and scripts. The "
        "quota of the home directory is 50 GB. Put large data somewhere else."
    ),
    "software": (
        "# GROMACS for molecular dynamics\n\n"
        "Simulations of proteins and membranes run with a module that we build ourselves. The "
        "default version of the GROMACS module is 2024.3. Older ones are kept."
    ),
    "support": (
        "# People who help you\n\n"
        "Write to us whenever you are stuck, with the job's number and its script, or come and see "
        "us. The opening time of the help desk is 14:00. Bring your laptop along."
    ),
    "rack": (
        "# How the machine was delivered\n\n"
        "The vendor brought the cabinets with a lorry in spring and put a label on each of them. "
        "The serial number of the first cabinet is K-4711. Nobody needs to know it."
    ),
    "scratch": (
        "# Temporary files of running programs\n\n"
        "What programs write while they run goes to a fast file system that is not backed up at "
        "all. The storage time of it is 30 days. Older files are deleted."
    ),
    "cellar": (
        "# Electricity and water\n\n"
        "Warm water from the processors heats the lecture halls of the university in winter. The "
        "cooling power of the cellar is rumoured to be 900 kW. Ask the technicians."
    ),
}
"""Eight passages. Questions about the last three are rejected: each by another criterion."""

GOOD = ("jobs", "interactive", "storage", "software", "support")

COMMANDS = {
    "site.nodes": (
        "Shows how many nodes of the partition are free at this moment.",
        "how many nodes are free right now",
        "The number of free nodes of partition osprey is 17.",
    ),
    "site.balance": (
        "Shows how many core hours your project has left in this quarter.",
        "how many core hours does my project have left",
        "The remaining budget of project p042 is 1234 core hours.",
    ),
    "site.maintenance": (
        "Shows when the cluster is shut down for maintenance next.",
        "when is the next maintenance",
        "The starting time of the next maintenance is 2027-03-31.",
    ),
}
"""By id: description, a question, and what it prints."""


@dataclass(frozen=True)
class Site:
    """A user of the small site, whose language model is an actor."""

    home: Home
    actor: Actor
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return self.home.folder

    @property
    def all_settings(self) -> dict[str, Any]:
        model = {"llm.base_url": self.actor.url, "llm.model": "scripted", "llm.retries": 1}
        rules = {"policy.catalogue": [str(self.folder / "catalogue")], "policy.sandbox": "off"}
        return model | rules | self.settings

    def hyce(self, *arguments: str, **more: Any) -> Result:
        return self.home.hyce(*arguments, settings=self.all_settings, **more)

    def printed(self, name: str, text: str) -> None:
        """Have a command print this from now on."""
        (self.folder / "state" / f"{name}.txt").write_text(f"{text}\n", "utf-8")


def build(site: Site) -> Site:
    """The site with its pages indexed."""
    pages, state, entries = (site.folder / name for name in ("docs", "state", "catalogue"))
    for folder in (pages, state, entries):
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)
    for name, text in PAGES.items():
        (pages / f"{name}.md").write_text(f"{text}\n", "utf-8")
    rows: dict[str, Any] = {name: {"disabled": True} for name in catalogue.load()}
    for name, (description, question, printed) in COMMANDS.items():
        site.printed(name, printed)
        command = ["cat", str(state / f"{name}.txt")]
        rows[name] = {"description": description, "questions": [question], "command": command}
    file = entries / "own.yaml"
    file.write_text(json.dumps(rows), "utf-8")  # JSON is YAML
    file.chmod(0o644)
    made = site.hyce("index", str(pages))
    assert made.code == 0, made.err
    return site


# -- calling it -----------------------------------------------------------------------------------------

DOCS, DESCRIBED, HYCE, COT = "baseline (docs)", "baseline (described)", "+hyce", "+cot"
ROWS = (DOCS, DESCRIBED, HYCE, COT)
"""Rows of the shipped variants file `local`."""


def run_arguments(asked: Path, folder: Path, *options: str, variants: str = "local") -> list[str]:
    return ["evaluate", "run", str(asked), "--variants", variants, "--out", str(folder), *options]


def only(*names: str) -> list[str]:
    return [part for name in names for part in ("--only", name)]


def report(site: Site, folder: Path, *options: str) -> dict[str, Any]:
    done = site.hyce("evaluate", "report", str(folder), *options, "--json")
    assert done.code == 0, done.err
    found: dict[str, Any] = done.json
    assert json.loads((folder / "report.json").read_text("utf-8")) == found
    return found


def lines(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The figures by variant."""
    return {line["name"]: line for line in found["variants"]}


def share(estimate: dict[str, Any] | None) -> float | None:
    return None if estimate is None else round(estimate["value"], 4)


def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "results.jsonl").read_text("utf-8").splitlines()]
