"""hyce doctor: everything that a user could trip over, each with its remedy."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from hyce.config import Config, Policy, for_role, index_folder, models_folder
from hyce.errors import HyceError
from hyce.programs import PROGRAM_DIRECTORIES


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
        ("reranker", _reranker),
        ("index", _index),
        ("commands", _commands),
        ("safety layers", _layers),
        ("state", _state),
        ("language model", _language_model),
    )
    for subject, check in checks:
        try:
            yield from check(config)
        except HyceError as error:
            yield _failure(subject, error)


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
    from hyce.embed import open_embedder

    embedder = open_embedder(config)
    near, far = embedder.embed(["my job is waiting in the queue", "how to cook rice"])
    question = embedder.embed(["why is my job pending?"])[0].vector
    if not question @ near.vector > question @ far.vector:
        yield Finding(
            "fail",
            "embedding model",
            f"{config.model.name}: the model gives senseless vectors",
            "Pull it again: `hyce models pull`."
            if config.model.kind == "onnx"
            else "Check model.name, model.input_type and what the endpoint serves.",
        )
        return
    place = f"{config.model.precision}, in {models_folder(config)}"
    if config.model.kind != "onnx":
        place = f"{embedder.dimensions} dimensions, at {config.model.base_url}"
    yield Finding("ok", "embedding model", f"{config.model.name}, {place}")


def _reranker(config: Config) -> Iterator[Finding]:
    from hyce.rerank import open_reranker

    reranker = open_reranker(config)
    if reranker is None:
        return
    served = config.retrieval.rerank == "endpoint"
    name = config.reranker.name
    right, wrong = reranker.score(
        "Why is my job pending?",
        ["A pending job waits until enough nodes are free.", "Rinse the rice, then cook it in salted water."],
    )
    if not right > wrong:
        yield Finding(
            "fail",
            "reranker",
            f"{name}: the model gives senseless scores",
            "Check reranker.name, reranker.form and what the endpoint serves."
            if served
            else "Pull it again: `hyce models pull`.",
        )
        return
    place = f"{config.reranker.precision}, in {models_folder(config, name)}"
    if served:
        place = f"at {config.reranker.base_url}"
    yield Finding("ok", "reranker", f"{name}, {place}")


def _index(config: Config) -> Iterator[Finding]:
    from hyce.embed import open_embedder
    from hyce.index.embedded import open_index
    from hyce.indexing import passage_settings
    from hyce.languages import REMEDY, unknown_to

    folder = index_folder(config)
    with open_index(folder) as index:
        index.check(open_embedder(config).fingerprint)
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
    if manifest.passages != passage_settings(config):
        yield Finding(
            "note",
            "index",
            f"made with other passages ({manifest.passages}) than the settings name "
            f"({passage_settings(config)})",
            "Build it again with `hyce index`, or set preset, [passages] and index.languages back.",
        )
    others = unknown_to(config.model.name, manifest.languages)
    if others:
        yield Finding("note", "index", others, REMEDY)
    if config.retrieval.rerank == "late" and not manifest.token_vectors:
        yield Finding(
            "note",
            "index",
            "it has no token vectors, so passages keep their fused order",
            'Set index.token_vectors = true and index again, or retrieval.rerank = "none".'
            if config.model.kind == "onnx"
            else "An endpoint gives none: set retrieval.rerank to cross-encoder, endpoint or none.",
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


def _layers(config: Config) -> Iterator[Finding]:
    from hyce import programs

    yield from layers(config.policy)
    for folder in config.policy.program_folders:
        reason = programs.distrust(folder)
        if reason:
            yield Finding(
                "fail",
                "safety layers",
                f"policy.program_folders: {reason}; no program there runs",
                "Let root own it and nobody else write it, or take it out.",
            )


def layers(policy: Policy, directories: Sequence[Path] = PROGRAM_DIRECTORIES) -> Iterator[Finding]:
    """Which layers hold of those that need a program of the system. directories: where it is; for tests."""
    from hyce import programs, sandbox

    subject = "safety layers"
    for name, what in (("prlimit", "no limits on processes and open files"), ("setpriv", "no no_new_privs")):
        found = programs.find(name, directories)
        if isinstance(found, str):
            yield Finding("note", subject, f"{found}: {what}", "Install the package util-linux.")
    if policy.sandbox == "off":
        yield Finding("note", subject, "no sandbox: the site has switched it off", "See sandbox in [policy].")
        return
    fault = sandbox.hindrance(directories)
    if fault:
        here = not isinstance(programs.find("bwrap", directories), str)
        refused = policy.sandbox == "require"
        yield Finding(
            "fail" if refused else "note",
            subject,
            f"no sandbox: {fault}" + ("; the site requires one, so no command runs" if refused else ""),
            sandbox.remedy() if here else "Install the package bubblewrap.",
        )
        return
    forbidden = sandbox.missing_parts(directories)
    yield Finding(
        "note" if forbidden else "ok",
        subject,
        "bubblewrap works" + (f", but this machine forbids: {', '.join(forbidden)}" if forbidden else ""),
        sandbox.remedy() if forbidden else "",
    )


def _state(config: Config) -> Iterator[Finding]:
    from hyce.config import state_folder
    from hyce.state import State

    state = State(state_folder())
    most = config.policy.rate_limit
    try:
        with state.locked("audit.lock", 1.0):
            limit = f"at most {most} commands a minute" if most else "no limit on commands a minute"
            yield Finding("ok", "state", f"{state.folder} is yours alone; {limit}")
    except OSError as error:
        yield Finding(
            "note",
            "state",
            f"{error.filename or state.folder}: {error.strerror}: runs are not logged and not reused",
            "Make room there, or set XDG_STATE_HOME to a folder that you can write.",
        )


def _language_model(config: Config) -> Iterator[Finding]:
    """The general one, and each role's that has settings of its own: one that fails hides no other."""
    subject = "language model"
    if not _configured(for_role(config, "answer")):
        yield Finding(
            "note",
            subject,
            "none is configured: answers are passages and command output",
            "Set base_url and model in [llm].",
        )
    if _configured(config):
        yield _asked(config, subject)
    for role in config.roles:
        own = for_role(config, role)
        if _configured(own):
            yield _asked(own, f"{subject} ({role})")
        else:
            yield Finding(
                "note",
                f"{subject} ({role})",
                f"[llm.{role}] has settings, but base_url or model is missing there and in [llm]",
                f"Set base_url and model in [llm.{role}] or [llm].",
            )
    asks = config.retrieval.transform != "none" or config.retrieval.decide
    if asks and not _configured(for_role(config, "queries")):
        from hyce.transform import no_model

        yield Finding("note", subject, no_model(config), "Set base_url and model in [llm.queries] or [llm].")


def _configured(config: Config) -> bool:
    return bool(config.llm.base_url and config.llm.model)


def _asked(config: Config, subject: str) -> Finding:
    """What becomes of one small question."""
    from hyce.llm import ChatClient

    try:
        with ChatClient(config) as client:
            completion = client.complete([{"role": "user", "content": "Answer with the word yes."}])
    except HyceError as error:
        return _failure(subject, error)
    return Finding("ok", subject, f"{completion.model} at {config.llm.base_url} answers")


def _failure(subject: str, error: HyceError) -> Finding:
    text, _, remedy = str(error).partition("; ")
    return Finding("fail", subject, text, remedy)
