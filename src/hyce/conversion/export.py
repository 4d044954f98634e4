"""A model's export by torch: in an environment made for it and deleted, or by a Python that has it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hyce.conversion import verify
from hyce.conversion.original import Original
from hyce.conversion.weights import read_json
from hyce.errors import ModelError
from hyce.models import Report

TORCH = "torch==2.13.0"
"""Pinned: exports are tried with it. pip takes it from wherever its own settings say."""
PACKAGES = (TORCH, "sentence-transformers>=5", "onnx>=1.16")

_SCRIPT = Path(__file__).with_name("torch_export.py")
_READ = (".json", ".txt", ".safetensors", ".model")
"""Files that the model is loaded from. Others, such as pickles and programs, are not shown to torch."""
_PATIENCE = 3600
"""Seconds for each step."""


@dataclass(frozen=True, slots=True)
class Exported:
    """What the script wrote."""

    graph: Path
    tokenizer: Path
    max_tokens: int
    dimensions: int
    token_vectors: bool
    reference: verify.Reference


def run(original: Original, work: Path, python: Path | None, report: Report) -> Exported:
    """Export the model into `work`, a folder that is made. Raises ModelError.

    python: one with torch and sentence-transformers; None: an environment in `work`, about 2 GB.
    """
    work.mkdir()
    program = str(python) if python else _environment(work / "environment", report)
    staged, target = work / "original", work / "exported"
    target.mkdir()
    for path in [*original.folder.glob("*"), *original.folder.glob("*/*")]:
        if path.suffix in _READ and path.is_file():
            link = staged / path.relative_to(original.folder)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(path.resolve())
    report("exporting the model with torch")
    texts = verify.pairs() if original.kind == "cross-encoder" else verify.texts(original)
    request = json.dumps({"kind": original.kind, "texts": texts})
    _call([program, "-I", str(_SCRIPT), str(staged), str(target)], "torch could not export it", request)
    return _read(target)


def _environment(folder: Path, report: Report) -> str:
    """A new environment with torch; its Python."""
    report(f"making an environment with {', '.join(PACKAGES)} (about 2 GB; it is deleted afterwards)")
    _call([sys.executable, "-I", "-m", "venv", str(folder)], "no environment could be made")
    python = str(folder / "bin" / "python")
    pip = [python, "-I", "-m", "pip", "install", "--quiet", "--no-cache-dir", "--disable-pip-version-check"]
    # Wheels only: a source archive would run its setup.
    _call([*pip, "--no-input", "--only-binary", ":all:", *PACKAGES], "pip could not install torch")
    return python


def _call(command: Sequence[str], failure: str, given: str = "") -> None:
    """Run a program to its end. Raises ModelError, with the last line that it said, where it fails."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HYCE_")}
    offline = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    try:
        done = subprocess.run(  # noqa: S603 - a Python, with arguments from here
            command,
            input=given,
            env=kept | offline,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ModelError(f"{failure} within {_PATIENCE // 60} minutes") from error
    except OSError as error:
        raise ModelError(f"{command[0]}: can't be started ({error.strerror}); name a Python") from error
    if done.returncode:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        said = "".join(letter for letter in (lines or ["no reason given"])[-1] if letter.isprintable())
        remedy = "; it needs torch, sentence-transformers and onnx" if "No module named" in said else ""
        raise ModelError(f"{failure}: {said[:300]}{remedy}")


def _read(target: Path) -> Exported:
    """What the script left, checked for its form."""
    facts = read_json(target / "facts.json")
    try:
        with np.load(target / "reference.npz", allow_pickle=False) as arrays:
            values = arrays["values"].astype(np.float64)
        ids = [[int(token) for token in each] for each in facts["ids"]]
        return Exported(
            graph=target / "graph.onnx",
            tokenizer=target / "tokenizer.json",
            max_tokens=int(facts["max_tokens"]),
            dimensions=int(facts["dimensions"]),
            token_vectors=bool(facts["token_vectors"]),
            reference=verify.Reference(ids, values),
        )
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise ModelError(f"torch exported no usable model ({error}); try again") from error
