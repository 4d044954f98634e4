"""Each thing that a user could trip over has a line, and a remedy where there is one."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest
import scripted_llm
import tiny_model
from safetensors.numpy import save_file
from word_embedder import WordEmbedder

from hyce import catalogue, config, doctor, models, sandbox
from hyce.config import Config
from hyce.doctor import Finding, examine
from hyce.index.embedded import open_writer
from hyce.indexing import passage_settings
from hyce.records import Chunk, Document


@pytest.fixture
def healthy(tmp_path: Path, model_folder: Path) -> Config:
    """A model, an index of one page, somewhere to get help, an ordinary user's rights, no language model."""
    settings = Config(
        site=config.Site(help="help@centre.example"),
        index=config.Index(path=str(tmp_path / "index")),
        model=config.Model(folder=str(model_folder)),
        policy=config.Policy(root=True),
    )
    build_index(settings)
    return settings


def build_index(settings: Config, *, token_vectors: bool = True) -> None:
    """One page, with vectors as the model's in shape and name."""
    files = models.find(settings.model.name, settings.model.precision, config.models_folder(settings))
    embedder = WordEmbedder(files.fingerprint, files.dimensions)
    with open_writer(
        config.index_folder(settings),
        embedder=embedder.fingerprint,
        dimensions=embedder.dimensions,
        passages=passage_settings(settings),
        token_vectors=token_vectors,
    ) as writer:
        chunks = [Chunk(("Page",), "", "text"), Chunk(("Page",), "", "more")]
        vectors = embedder.embed([chunk.text for chunk in chunks], tokens=True)
        document = Document("/docs", "a.md", "text/markdown", "", str(token_vectors))
        writer.put(document, "Page", None, chunks, vectors)
        writer.publish()


def findings(settings: Config, subject: str) -> list[Finding]:
    return [finding for finding in examine(settings) if finding.subject == subject]


def one(settings: Config, subject: str, state: str) -> Finding:
    (finding,) = (f for f in findings(settings, subject) if f.state == state)
    return finding


def sandbox_state() -> str:
    return "note" if sandbox.hindrance() or sandbox.missing_parts() else "ok"


def test_a_healthy_setup_has_nothing_to_mend(healthy: Config) -> None:
    found = list(examine(healthy))
    assert [(f.subject, f.state) for f in found] == [
        ("settings", "ok"),
        ("embedding model", "ok"),
        ("index", "ok"),
        ("commands", "ok"),
        ("safety layers", sandbox_state()),
        ("state", "ok"),
        ("language model", "note"),
    ]


def test_one_trouble_hides_no_other(tmp_path: Path) -> None:
    nothing = Config(
        index=config.Index(path=str(tmp_path / "index")),
        model=config.Model(folder=str(tmp_path / "models")),
        policy=config.Policy(catalogue=(str(tmp_path / "catalogue"),)),
        llm=config.Llm(base_url="https://outside.example/v1", model="m"),
    )
    failed = [finding for finding in examine(nothing) if finding.state == "fail"]
    assert [f.subject for f in failed] == ["embedding model", "index", "commands", "language model"]
    for finding in failed:
        assert "\n" not in finding.text


# -- settings --------------------------------------------------------------------------------------------


def test_settings_name_where_they_come_from(healthy: Config) -> None:
    origins = {
        "llm.seed": "/home/me/hyce.toml",
        "site.help": "/etc/hyce/hyce.toml",
        "llm.model": "environment",
    }
    found = one(replace(healthy, origins=MappingProxyType(origins)), "settings", "ok")
    assert found.text.endswith("from /etc/hyce/hyce.toml, /home/me/hyce.toml, environment")
    assert "default" in one(healthy, "settings", "ok").text


def test_settings_without_effect_are_noted(healthy: Config) -> None:
    found = one(replace(healthy, notices=("policy.root has no effect",)), "settings", "note")
    assert found.text == "policy.root has no effect"


def test_nowhere_to_get_help_is_noted(healthy: Config) -> None:
    found = one(replace(healthy, site=config.Site()), "settings", "note")
    assert "help" in found.text
    assert found.remedy == "Set help in [site]."


# -- embedding model -------------------------------------------------------------------------------------


def test_a_missing_model_fails_with_how_to_get_it(healthy: Config, tmp_path: Path) -> None:
    without = replace(healthy, model=config.Model(folder=str(tmp_path)))
    found = one(without, "embedding model", "fail")
    assert str(tmp_path) in found.text
    assert found.remedy.startswith("get it with `hyce models pull ")


def test_a_broken_model_fails(healthy: Config, tmp_path: Path) -> None:
    models.pull("tiny", tmp_path / "models", source=tiny_model.write(tmp_path / "source"))
    graph = tmp_path / "models" / "tiny" / "int8.onnx"
    graph.write_bytes(b"x" * graph.stat().st_size)
    broken = replace(healthy, model=config.Model(name="tiny", folder=str(tmp_path / "models")))
    found = one(broken, "embedding model", "fail")
    assert str(graph) in found.text
    assert "hyce models pull" in found.remedy


def test_a_model_that_gives_senseless_vectors_fails(healthy: Config, tmp_path: Path) -> None:
    """With weights of zero, waiting jobs are not nearer to pending ones than rice is."""
    source = tiny_model.write(tmp_path / "source")
    zeros = {name: np.zeros_like(tensor) for name, tensor in tiny_model.weights().items()}
    save_file(zeros, source / "model.safetensors")
    models.pull("tiny", tmp_path / "models", source=source)
    for precision in models.PRECISIONS:
        model = config.Model(name="tiny", precision=precision, folder=str(tmp_path / "models"))
        found = one(replace(healthy, model=model), "embedding model", "fail")
        assert "senseless" in found.text
        assert found.remedy == "Pull it again: `hyce models pull`."


def test_a_good_model_is_named(healthy: Config) -> None:
    found = one(healthy, "embedding model", "ok")
    assert found.text.startswith("all-MiniLM-L6-v2, int8, in ")


# -- index -----------------------------------------------------------------------------------------------


def test_a_missing_index_fails_with_how_to_build_it(healthy: Config, tmp_path: Path) -> None:
    found = one(replace(healthy, index=config.Index(path=str(tmp_path / "none"))), "index", "fail")
    assert "no index here" in found.text
    assert "`hyce index SOURCE`" in found.remedy


def test_an_index_of_another_model_fails(healthy: Config) -> None:
    other = replace(healthy, model=replace(healthy.model, precision="fp32"))
    found = one(other, "index", "fail")
    assert "made with the model" in found.text
    assert "hyce index" in found.remedy


def test_a_damaged_index_fails(healthy: Config) -> None:
    (vectors,) = (config.index_folder(healthy) / "segments").glob("*.vectors")
    vectors.write_bytes(vectors.read_bytes()[:-4])
    found = one(healthy, "index", "fail")
    assert "damaged" in found.text
    assert "hyce index" in found.remedy


def test_an_index_tells_its_size_and_its_age(healthy: Config) -> None:
    found = one(healthy, "index", "ok")
    assert found.text == f"1 pages, 2 passages in {config.index_folder(healthy)}, 0 days old"
    assert found.remedy == ""


@pytest.mark.parametrize(("days", "state"), [(29, "ok"), (31, "note")])
def test_an_old_index_is_noted(healthy: Config, days: int, state: str) -> None:
    current = config.index_folder(healthy) / "current"
    manifest = json.loads(current.read_text())
    manifest["written"] = (datetime.now(UTC) - timedelta(days=days, hours=1)).isoformat()
    manifest["sources"] = dict.fromkeys(manifest["sources"], manifest["written"])
    current.write_text(json.dumps(manifest))
    (found,) = findings(healthy, "index")
    assert found.state == state
    assert f"{days} days old" in found.text
    assert ("hyce index" in found.remedy) == (state == "note")


def test_missing_token_vectors_are_noted_where_they_would_be_used(healthy: Config) -> None:
    build_index(healthy, token_vectors=False)
    found = one(healthy, "index", "note")
    assert "no token vectors" in found.text
    assert "index.token_vectors = true" in found.remedy
    plain = replace(healthy, retrieval=config.Retrieval(rerank="none"))
    assert [f.state for f in findings(plain, "index")] == ["ok"]


# -- commands --------------------------------------------------------------------------------------------


def test_an_index_with_passages_of_other_settings_is_noted(healthy: Config) -> None:
    other = replace(healthy, passages=config.Passages(kind="paragraph"))
    note = one(other, "index", "note")
    assert "structure/160" in note.text and "paragraph/160" in note.text
    assert "hyce index" in note.remedy


def test_the_folder_of_the_reranker_is_its_own(
    healthy: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "environment"))
    shared = tmp_path / "environment" / "share" / "hyce" / "models"
    models.pull("tiny-cross", shared, source=tiny_model.write_cross_encoder(tmp_path / "source", seed=2))
    settings = replace(
        healthy,
        model=replace(healthy.model, folder=""),
        reranker=config.Reranker(name="tiny-cross"),
        retrieval=config.Retrieval(rerank="cross-encoder"),
    )
    assert one(settings, "reranker", "ok").text == f"tiny-cross, int8, in {shared}"


def test_the_usable_commands_are_counted(healthy: Config) -> None:
    found = one(healthy, "commands", "ok")
    usable, _, rest = found.text.partition(" of ")
    total = int(rest.split()[0])
    assert total == len(catalogue.load())
    assert 0 <= int(usable) <= total


def test_a_broken_catalogue_fails(healthy: Config, tmp_path: Path) -> None:
    folder = tmp_path / "site"
    folder.mkdir(mode=0o755)
    (folder / "own.yaml").write_text("- id: [broken\n")
    (folder / "own.yaml").chmod(0o644)
    found = one(replace(healthy, policy=config.Policy(catalogue=(str(folder),))), "commands", "fail")
    assert str(folder / "own.yaml") in found.text


@pytest.mark.parametrize("by_site", [True, False])
def test_commands_that_are_switched_off_are_noted(healthy: Config, by_site: bool) -> None:
    off = replace(healthy, policy=config.Policy(commands=False, root=True))
    if not by_site:
        off = replace(healthy, commands=config.Commands(enabled=False))
    found = one(off, "commands", "note")
    assert "switched off" in found.text
    assert "commands.enabled" in found.remedy


@pytest.mark.parametrize(
    ("uid", "allowed", "noted"), [(0, False, True), (0, True, False), (1000, False, False)]
)
def test_root_is_told_that_no_command_runs(
    healthy: Config, monkeypatch: pytest.MonkeyPatch, uid: int, allowed: bool, noted: bool
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    found = findings(replace(healthy, policy=config.Policy(root=allowed)), "commands")
    assert [f.state for f in found] == (["ok", "note"] if noted else ["ok"])
    if noted:
        assert "runs as root" in found[1].text
        assert "root = true" in found[1].remedy


# -- safety layers ---------------------------------------------------------------------------------------


def helpers(folder: Path, *names: str, bwrap: str = "") -> list[Path]:
    """A folder with these programs of the system, and with one that stands for bwrap."""
    folder.mkdir(mode=0o755)
    for name in names:
        (folder / name).symlink_to(f"/usr/bin/{name}")
    if bwrap:
        (folder / "bwrap").write_text(f"#!/bin/sh\n{bwrap}\n")
        (folder / "bwrap").chmod(0o755)
    return [folder]


@pytest.mark.skipif(sandbox.hindrance() is not None, reason=str(sandbox.hindrance()))
def test_a_working_sandbox_is_ok_and_one_switched_off_is_noted(tmp_path: Path) -> None:
    (found,) = doctor.layers(config.Policy(), helpers(tmp_path / "bin", "prlimit", "setpriv", "bwrap"))
    assert (found.state, found.text) == (sandbox_state(), found.text)
    assert found.text.startswith("bubblewrap works")
    (found,) = doctor.layers(config.Policy(sandbox="off"))
    assert found.state == "note"
    assert "switched it off" in found.text


def test_a_missing_bubblewrap_is_noted_and_fails_where_it_is_required(tmp_path: Path) -> None:
    where = helpers(tmp_path / "bin", "prlimit", "setpriv")
    (found,) = doctor.layers(config.Policy(), where)
    assert found.state == "note"
    assert "bwrap is not installed" in found.text
    assert found.remedy == "Install the package bubblewrap."
    (found,) = doctor.layers(config.Policy(sandbox="require"), where)
    assert found.state == "fail"
    assert "no command runs" in found.text


@pytest.mark.skipif(os.getuid() != 0, reason="a program of root's is needed")
def test_a_forbidden_bubblewrap_is_noted_with_why_and_what_to_do(tmp_path: Path) -> None:
    refuses = "echo 'bwrap: No permissions to create new namespace' >&2; exit 1"
    (found,) = doctor.layers(config.Policy(), helpers(tmp_path / "bin", "prlimit", "setpriv", bwrap=refuses))
    assert found.state == "note"
    assert "No permissions to create new namespace" in found.text
    assert "user namespaces" in found.remedy


def test_missing_helpers_are_noted(tmp_path: Path) -> None:
    first, second, _ = doctor.layers(config.Policy(), helpers(tmp_path / "bin"))
    assert "prlimit is not installed" in first.text
    assert "setpriv is not installed" in second.text
    assert first.remedy == second.remedy == "Install the package util-linux."


@pytest.mark.parametrize("mode", [0o755, 0o777])
def test_program_folders_that_others_can_change_fail(healthy: Config, tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "programs"
    folder.mkdir()
    folder.chmod(mode)
    settings = replace(
        healthy, policy=config.Policy(root=True, program_folders=(str(folder), "bin", f"{folder}/none"))
    )
    failed = [f for f in findings(settings, "safety layers") if f.state == "fail"]
    texts = [f.text for f in failed]
    assert any(f"{folder} can be changed" in text for text in texts) == (mode == 0o777 or os.getuid() != 0)
    assert any("bin is no absolute path" in text for text in texts)
    assert any("none is no folder" in text for text in texts)
    assert all("root own it" in f.remedy for f in failed)


# -- language model --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "llm", [config.Llm(), config.Llm(model="m"), config.Llm(base_url="http://127.0.0.1:1")]
)
def test_no_language_model_is_noted(healthy: Config, llm: config.Llm) -> None:
    found = one(replace(healthy, llm=llm), "language model", "note")
    assert "none is configured" in found.text
    assert found.remedy == "Set base_url and model in [llm]."


def test_a_language_model_that_answers_is_ok(healthy: Config) -> None:
    with scripted_llm.ScriptedLlm(scripted_llm.says("yes")) as server:
        llm = config.Llm(base_url=server.url, model="m", location="onsite")
        found = one(replace(healthy, llm=llm), "language model", "ok")
        assert found.text.endswith(f" at {server.url} answers")
        assert len(server.requests) == 1


def test_a_language_model_that_is_down_or_refuses_fails(healthy: Config) -> None:
    with scripted_llm.ScriptedLlm(scripted_llm.fails(401, "wrong key")) as server:
        llm = config.Llm(base_url=server.url, model="m", location="onsite", retries=0)
        refused = one(replace(healthy, llm=llm), "language model", "fail")
        assert "401" in refused.text or "key" in refused.text
    down = one(replace(healthy, llm=llm), "language model", "fail")
    assert server.origin.removeprefix("http://") in down.text


def test_an_outside_endpoint_without_consent_fails_before_anything_is_sent(healthy: Config) -> None:
    """Sockets to other machines are blocked in tests: trying to connect would be another failure."""
    llm = config.Llm(base_url="https://192.0.2.1/v1", model="m", location="outside", retries=0)
    found = one(replace(healthy, llm=llm), "language model", "fail")
    assert "outside_endpoints" in f"{found.text} {found.remedy}"


def test_a_state_folder_that_is_unsafe_or_can_not_be_written(
    healthy: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert "at most 30 commands a minute" in one(healthy, "state", "ok").text
    (tmp_path / "state" / "hyce").chmod(0o755)
    unsafe = one(healthy, "state", "fail")
    assert "others may enter it" in unsafe.text
    assert "chmod 700" in unsafe.remedy
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert "not logged" in one(healthy, "state", "note").text
