"""Converted models against sentence-transformers: vectors, scores, and pairs scored a second.

    python benchmarks/cross_encoder.py [--stack PYTHON]

Small models of several architectures are made with random weights, converted by `hyce models convert`, and
compared with the originals as sentence-transformers runs them, on pairs of questions and passages that the
conversion's own check doesn't know. Speed is that of a cross-encoder with the layers of all-MiniLM-L6-v2.
sentence-transformers runs in an environment of its own, made on the first run below the cache folder, or in
that of --stack PYTHON.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import environment
import numpy as np
import report
from numpy.typing import NDArray

from hyce import models
from hyce.cross_encoder import OnnxCrossEncoder
from hyce.embed import OnnxEmbedder

SCRIPT = Path(__file__).with_name("stack_models.py")
REAL = "minilm-cross"
PAIRS = 100
"""As many as retrieval.candidates."""


def main() -> None:
    options = arguments()
    python = environment.stack(options.stack)
    texts = passages()
    pairs = [(question, text) for question in QUESTIONS for text in texts][:PAIRS]
    rows: list[dict[str, report.Cell]] = []
    with tempfile.TemporaryDirectory() as work:
        originals = Path(work) / "originals"
        minilm = str(environment.original_model(options.model))
        versions = json.loads(stack(python, texts, "make", str(originals), minilm))
        for folder in sorted(path for path in originals.iterdir() if path.name != "bare"):
            print(folder.name, file=sys.stderr)
            made = models.convert(str(folder), Path(work) / "models", python=Path(python))
            rows += compare(folder, made, pairs, python)
    notes = [
        f"{PAIRS} pairs, or their questions and passages; threads of hyce: as model.threads = 0 says",
        "difference: the largest of a score, or of an element of a vector, to sentence-transformers'",
        "agreement: mean cosine of vectors, correlation of scores",
        "way: graph built from the weights without torch, or exported by torch",
        f"{REAL}: the layers of all-MiniLM-L6-v2 and a random classifier; all others have random weights",
    ]
    title = "Converted models against sentence-transformers"
    print(report.write("cross_encoder", title, rows, notes, versions).read_text(encoding="utf-8"))


QUESTIONS = ("How long may a job run?", "Where do I put large files?", "Why is my job still waiting?")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    environment.add_stack(parser)
    environment.add_model(parser)
    return parser.parse_args()


def passages() -> list[str]:
    """Paragraphs of the sample documentation."""
    pages = sorted((environment.REPOSITORY / "examples" / "kestrel").rglob("*.md"))
    parts = [part.strip() for page in pages for part in page.read_text(encoding="utf-8").split("\n\n")]
    return [part for part in parts if len(part) > 80]


def stack(python: str, given: Any, *arguments: str) -> str:
    """What stack_models.py prints."""
    return subprocess.run(
        [python, str(SCRIPT), *arguments],
        input=json.dumps(given),
        env=os.environ | {"HF_HUB_OFFLINE": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
    ).stdout


def compare(
    folder: Path, made: list[models.ModelFiles], pairs: list[tuple[str, str]], python: str
) -> list[dict[str, report.Cell]]:
    """A row for each precision."""
    said = json.loads(stack(python, pairs, "run", str(folder)))
    true = np.array(said["values"])
    rows = []
    for files in made:
        values, seconds = ours(files, pairs)
        row: dict[str, report.Cell] = {
            "model": folder.name,
            "precision": files.precision,
            "way": "weights" if folder.name.startswith(("bert", REAL)) else "torch",
            "difference": float(f"{np.abs(values - true).max():.2g}"),
            "agreement": round(agreement(values, true), 6),
            "pairs/s": "",
            "of the stack": "",
        }
        if folder.name == REAL:
            row["pairs/s"] = round(len(pairs) / seconds, 1)
            row["of the stack"] = round(len(pairs) / said["seconds"], 1)
        rows.append(row)
    return rows


def ours(files: models.ModelFiles, pairs: list[tuple[str, str]]) -> tuple[NDArray[np.float64], float]:
    """Scores of the pairs, or vectors of their texts and then of their questions; the seconds it took."""
    if files.kind == "bi-encoder":
        embedder = OnnxEmbedder(files)
        found = embedder.embed([text for _, text in pairs])
        found += embedder.embed([question for question, _ in pairs], query=True)
        return np.array([each.vector for each in found], np.float64), 0.0
    model = OnnxCrossEncoder(files)
    model.score(*QUESTIONS[:1], [pairs[0][1]])
    start = time.perf_counter()
    scores = [
        model.score(question, [text for other, text in pairs if other == question]) for question in QUESTIONS
    ]
    return np.concatenate(scores).astype(np.float64), time.perf_counter() - start


def agreement(values: NDArray[np.float64], true: NDArray[np.float64]) -> float:
    if true.ndim == 1:
        return float(np.corrcoef(values, true)[0, 1])
    return float((values * true).sum(axis=1).mean())


if __name__ == "__main__":
    main()
