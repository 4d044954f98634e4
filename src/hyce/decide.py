"""Whether a question needs documentation at all: Self-RAG's first decision, as one yes/no question.

Asai et al. 2023 train a model to write a token that says whether to retrieve; a model that hasn't learnt it
is asked. In doubt, everything is looked up: where the reply can't be used, where the endpoint fails, and,
without asking, where the question names what clusters are about.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from hyce import prompts
from hyce.errors import EndpointError
from hyce.llm import LanguageModel
from hyce.privacy import redact
from hyce.records import Turn
from hyce.reply import json_object, without_thinking

SCHEMA = {
    "type": "object",
    "properties": {"needed": {"type": "string", "enum": ["yes", "no"]}},
    "required": ["needed"],
    "additionalProperties": False,
}

_CLUSTER = re.compile(
    r"\b(?:jobs?|queue[sd]?|queu?ing|partitions?|nodes?|clusters?|hpc|gpus?|cpus?|cores?|memory|ram|quotas?|"
    r"storage|disks?|scratch|home|director(?:y|ies)|folders?|files?|modules?|software|licen[cs]es?|slurm|pbs|"
    r"lustre|mpi|cuda|conda|python|containers?|apptainer|singularity|scripts?|submit\w*|batch|schedul\w+|"
    r"limits?|accounts?|projects?|allocations?|log ?in|ssh|password|maintenance|wall ?time|"
    r"space|room|wait\w*|pending|stuck|killed|crash\w*|errors?|fail\w*|install\w*|compil\w*|help ?desk|"
    r"s(?:batch|run|alloc|queue|cancel|info|acct)|q(?:sub|stat|del))\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether passages are searched for, and what the reader must know about how that was decided."""

    needed: bool
    notices: tuple[str, ...] = ()


def decide(question: str, turns: Sequence[Turn], client: LanguageModel) -> Decision:
    """The model's decision; `needed` wherever there is doubt. turns: the conversation so far."""
    if _about_the_cluster(question, client):
        return Decision(True)
    clean = redact if client.location == "outside" else str
    before = clean(turns[-1].question) if turns and turns[-1].answer else ""
    messages = prompts.needed(clean(question), before, client.config.site)
    try:
        reply = client.complete(messages, schema=SCHEMA).text
    except EndpointError as error:
        return Decision(True, (_undecided(f" ({error})"),))
    said = json_object(without_thinking(reply)).get("needed")
    if said not in ("yes", "no"):
        return Decision(True, (_undecided(""),))
    return Decision(said == "yes")


def _about_the_cluster(question: str, client: LanguageModel) -> bool:
    """Whether the question says a word that only documentation or commands can be asked about."""
    site = client.config.site
    names = [name for name in (site.name, site.cluster, *site.clusters) if name]
    named = any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", question, re.IGNORECASE) for name in names)
    return named or _CLUSTER.search(question) is not None


def _undecided(why: str) -> str:
    return f"The language model did not decide whether documentation is needed{why}; it was searched."
