"""Models fetched from a hub: a real server, what is asked of it, and what is not taken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import tiny_model
from model_hub import REVISION, ModelHub

SCRIPT = """
import sys
from pathlib import Path
from hyce import models
from hyce.errors import ModelError
try:
    made = getattr(models, sys.argv[1])(sys.argv[2], Path(sys.argv[3]), report=print)
    print(*[f"{m.name} {m.kind} {m.precision}" for m in made], sep="\\n")
except ModelError as error:
    print("ModelError:", error)
"""


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModelHub]:
    folder = tmp_path_factory.mktemp("hub")
    tiny_model.write(folder / "tiny")
    (folder / "tiny" / "pytorch_model.bin").write_bytes(b"a pickle")
    (folder / "tiny" / "modeling.py").write_text("raise SystemExit", encoding="utf-8")
    tiny_model.write_cross_encoder(folder / "cross")
    tiny_model.write(folder / "other")
    said = json.loads((folder / "other" / "config.json").read_text(encoding="utf-8"))
    (folder / "other" / "config.json").write_text(json.dumps(said | {"model_type": "mpnet"}), "utf-8")
    tiny_model.write(folder / "pickled")
    (folder / "pickled" / "model.safetensors").rename(folder / "pickled" / "pytorch_model.bin")
    names = {"tiny": "example/tiny", "other": "example/other", "pickled": "example/pickled"}
    folders = {repository: folder / name for name, repository in names.items()}
    with ModelHub(folders | {"cross-encoder/ms-marco-MiniLM-L12-v2": folder / "cross"}) as hub:
        yield hub


def run(hub: ModelHub, action: str, name: str, folder: Path) -> str:
    """What a process of its own says: huggingface_hub reads the hub's address when it is imported."""
    hub.asked.clear()
    env = os.environ | {"HF_ENDPOINT": hub.address, "HF_HOME": str(folder / "hf"), "HF_HUB_DISABLE_XET": "1"}
    command = [sys.executable, "-c", SCRIPT, action, name, str(folder)]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=120).stdout


def test_a_model_is_pulled_by_organisation_and_name(hub: ModelHub, tmp_path: Path) -> None:
    said = run(hub, "pull", "example/tiny", tmp_path)
    assert said.endswith("tiny bi-encoder int8\ntiny bi-encoder fp32\n"), said
    assert "tiny fp32: cosine to the original 1.0000000 on average" in said
    description = json.loads((tmp_path / "tiny" / "model.json").read_text(encoding="utf-8"))
    assert description["origin"] == f"{hub.address}/example/tiny at {REVISION}"
    assert {"model.safetensors", "tokenizer.json", "1_Pooling/config.json"} <= hub.fetched()
    assert not {"pytorch_model.bin", "modeling.py"} & hub.fetched()


def test_a_name_that_a_preset_uses_is_known(hub: ModelHub, tmp_path: Path) -> None:
    said = run(hub, "pull", "ms-marco-MiniLM-L-12-v2", tmp_path)
    assert said.splitlines()[0] == "fetching cross-encoder/ms-marco-MiniLM-L12-v2 from the model hub"
    assert said.endswith("ms-marco-MiniLM-L-12-v2 cross-encoder fp32\n"), said


def test_a_model_that_needs_torch_is_not_fetched_whole(hub: ModelHub, tmp_path: Path) -> None:
    said = run(hub, "pull", "example/other", tmp_path)
    assert "ModelError: example/other: has no ONNX graph" in said
    assert "use `hyce models convert example/other`" in said
    assert "model.safetensors" not in hub.fetched()


@pytest.mark.parametrize("action", ["pull", "convert"])
def test_pickles_are_not_taken(hub: ModelHub, tmp_path: Path, action: str) -> None:
    said = run(hub, action, "example/pickled", tmp_path)
    assert "ModelError: example/pickled: has no weights as safetensors or ONNX" in said
    assert "pytorch_model.bin" not in hub.fetched()
    assert not (tmp_path / "pickled").exists()


def test_a_repository_that_is_not_there(hub: ModelHub, tmp_path: Path) -> None:
    said = run(hub, "pull", "example/nothing", tmp_path)
    error = said.splitlines()[-1]
    assert error.startswith("ModelError: the model hub gave no example/nothing: ")
    assert error.endswith("fetch it on a machine with internet and name its folder")


@pytest.mark.parametrize("name", ["../x", "a/..", "a/b/c", "a/b\nc"])
def test_what_is_no_repository(hub: ModelHub, tmp_path: Path, name: str) -> None:
    assert "ModelError: " in run(hub, "pull", name, tmp_path)
    assert hub.asked == []
