"""What a result depends on, in one digest: with the same one it need not be computed again.

Keys, time limits and places of files are left out: they change no answer. What stands in an index and in the
catalogue counts by its content.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

from hyce import catalogue
from hyce.config import Config, for_role
from hyce.evaluate.records import Mode
from hyce.evaluate.running.runs import digest
from hyce.prompts import answering_digest
from hyce.prompts.evaluation import judging_digest

_COUNTED = ("site", "model", "reranker", "retrieval", "commands", "llm", "policy")
_WITHOUT_EFFECT = {
    "api_key_env",
    "api_key_file",
    "batch",
    "catalogue",
    "folder",
    "rate_limit",
    "retries",
    "stream",
    "syslog",
    "threads",
    "timeout",
}
_ANSWERING = ("answer", "commands", "queries")
JUDGES = ("judge", "second_judge")


def row_key(
    config: Config,
    *,
    index: str,
    questions: str,
    judging: str,
    live: bool,
    today: str,
) -> str:
    """The digest for a variant. index, questions, judging: digests of what they hold."""
    settings: dict[str, Any] = {name: counted(getattr(config, name)) for name in _COUNTED}
    settings["roles"] = {role: counted(config.roles[role]) for role in _ANSWERING if role in config.roles}
    program = [version("hyce"), answering_digest()]
    return digest([*program, settings, _entries(config), index, questions, judging, live, today])


def judging_key(config: Config, mode: Mode) -> str:
    """The digest of what verdicts depend on beside the answers. config: the one that the judges have."""
    models = [
        counted(for_role(config, role).llm) for role in JUDGES if role == "judge" or role in config.roles
    ]
    policy = [config.policy.onsite_endpoints, config.policy.outside_endpoints]
    return digest([mode, judging_digest(), models, policy])


def counted(section: Any) -> Mapping[str, Any]:
    """The settings of a section that an answer may depend on."""
    return {name: value for name, value in dataclasses.asdict(section).items() if name not in _WITHOUT_EFFECT}


def _entries(config: Config) -> str:
    """Digest of the commands that may answer; where none may, of what a judge outside may be shown."""
    entries = catalogue.load_for(config).values()
    if not config.commands.enabled:
        return digest({entry.id: entry.may_leave_site for entry in entries})
    return digest([dataclasses.asdict(dataclasses.replace(entry, origin="")) for entry in entries])
