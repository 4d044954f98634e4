"""hyce doctor: everything that a user could trip over, each with its remedy."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from hyce.config import Config, index_folder, models_folder
from hyce.errors import HyceError


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor's."""

    state: Literal["ok", "note", "fail"]
    """`note` is worth knowing; `fail` must be mended."""
    subject: str
    text: str
    remedy: str = ""


def examine(config: Config) -> Iterator[Finding]:
    """All checks, in the order in which one depends on the other."""
    checks: tuple[tuple[str, Callable[[Config], Iterator[Finding]]], ...] = (
        ("settings", _settings),
        ("embedding model", _model),
        ("index", _index),
        ("commands", _commands),
        ("language model", _language_model),
    )
    for subject, check in checks:
        try:
            yield from check(config)
        except HyceError as error:
            text, _, remedy = str(error).partition("; ")
            yield Finding("fail", subject, text, remedy)


def _settings(config: Config) -> Iterator[Finding]:
    origins = sorted(set(config.origins.values()))
    yield Finding("ok", "settings", f"from {', '.join(origins)}" if origins else "all are defaults")
    for notice in config.notices:
        yield Finding("note", "settings", notice)
    if not config.site.help:
        yield Finding(
            "note", "settings", "answers don't say where to get help from people", "Set help in [site]."
        )


def _model(config: Config) -> Iterator[Finding]:
    from hyce import embed, models

    files = models.find(config.model.name, config.model.precision, models_folder(config))
    embedder = embed.OnnxEmbedder(files, config.model.threads)
    near, far = embedder.embed(["my job is waiting in the queue", "how to cook rice"])
    question = embedder.embed(["why is my job pending?"])[0].vector
    if not question @ near.vector > question @ far.vector:
        yield Finding(
            "fail",
            "embedding model",
            f"{files.folder}: the model gives senseless vectors",
            "Pull it again: `hyce models pull`.",
        )
        return
    yield Finding("ok", "embedding model", f"{files.name}, {files.precision}, in {files.folder}")


def _index(config: Config) -> Iterator[Finding]:
    from hyce import models
    from hyce.index.embedded import open_index

    folder = index_folder(config)
    with open_index(folder) as index:
        index.check(models.find(config.model.name, config.model.precision, models_folder(config)).fingerprint)
        manifest = index.manifest
    # A refresh that changes nothing renews its sources' times only.
    refreshed = min(manifest.sources.values(), default=manifest.written) or manifest.written
    age = (datetime.now(UTC) - datetime.fromisoformat(refreshed)).days
    yield Finding(
        "ok" if age < 30 else "note",
        "index",
        f"{manifest.documents} pages, {manifest.chunks} passages in {folder}, {age} days old",
        "" if age < 30 else "Refresh it: `hyce index`.",
    )
    if config.retrieval.rerank == "late" and not manifest.token_vectors:
        yield Finding(
            "note",
            "index",
            "it has no token vectors, so passages keep their fused order",
            'Set index.token_vectors = true and index again, or retrieval.rerank = "none".',
        )


def _commands(config: Config) -> Iterator[Finding]:
    from hyce import catalogue
    from hyce.run import available

    entries = catalogue.load_for(config)
    usable = [command for command in entries.values() if available(command, policy=config.policy) is None]
    yield Finding("ok", "commands", f"{len(usable)} of {len(entries)} entries can run on this machine")
    if not config.commands.enabled or not config.policy.commands:
        yield Finding(
            "note", "commands", "running commands is switched off", "See commands.enabled and [policy]."
        )
    elif os.geteuid() == 0 and not config.policy.root:
        yield Finding(
            "note",
            "commands",
            "hyce runs as root, so no command runs",
            "Use an ordinary account, or set root = true in [policy].",
        )


def _language_model(config: Config) -> Iterator[Finding]:
    if not config.llm.base_url or not config.llm.model:
        yield Finding(
            "note",
            "language model",
            "none is configured: answers are passages and command output",
            "Set base_url and model in [llm].",
        )
        return
    from hyce.llm import ChatClient

    with ChatClient(config) as client:
        completion = client.complete([{"role": "user", "content": "Answer with the word yes."}])
    yield Finding("ok", "language model", f"{completion.model} at {config.llm.base_url} answers")
