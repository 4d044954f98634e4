"""Passages embedded a second: hyce against sentence-transformers on torch.

    python benchmarks/throughput.py [FOLDER ...] [--passages 200] [--runs 5] [--stack PYTHON]

The passages are those that `hyce index` would make of the folders (default: examples/kestrel).
sentence-transformers runs with its defaults in an environment of its own, made on the first run below the
cache folder (`python -m venv`, then pip installs torch==2.13.0 and sentence-transformers: about 2 GB), or in
that of --stack PYTHON. Both embed the same passages, in turns, so that other load on the machine meets both.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import environment
import numpy as np
import report
from numpy.typing import NDArray

from hyce import config, models
from hyce.chunk import chunk
from hyce.embed import OnnxEmbedder
from hyce.errors import SourceError
from hyce.parse import parse
from hyce.records import Document
from hyce.sources import files

DEFAULT = environment.REPOSITORY / "examples" / "kestrel"


def main() -> None:
    options = arguments()
    python = environment.stack(options.stack)
    original = environment.original_model(options.model)
    folder = environment.models_folder(options.model)
    ours: dict[str, OnnxEmbedder] = {
        p: OnnxEmbedder(models.find(environment.NAME, p, folder), options.threads) for p in models.PRECISIONS
    }
    passages = collect(options.folders, options.passages, ours["int8"])
    lengths = [ours["int8"].length(passage) for passage in passages]
    seconds, vectors, versions = measure(ours, passages, python, original, options.runs)
    notes = [
        f"{len(passages)} passages of {statistics.mean(lengths):.0f} tokens on average, "
        f"{max(lengths)} at most; {options.runs} runs each, in turns; medians",
        "ratio: median over the runs of one round of passages/s to those of sentence-transformers",
        "cosine: to the vectors of sentence-transformers, over all passages",
        f"hyce on {ours['int8'].threads} threads; sentence-transformers with its defaults",
    ]
    rows = table(seconds, vectors, len(passages))
    path = report.write("throughput", "Passages embedded a second", rows, notes, versions)
    print(path.read_text(encoding="utf-8"))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, default=[DEFAULT])
    parser.add_argument("--passages", type=int, default=200, help="how many to embed, chosen at random")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=0, help="of hyce, as model.threads")
    environment.add_stack(parser)
    environment.add_model(parser)
    return parser.parse_args()


def collect(folders: list[Path], most: int, embedder: OnnxEmbedder) -> list[str]:
    """At most `most` passages of all pages, chosen at random but the same each time."""
    size = config.Passages().size
    passages = []
    for folder in folders:
        for document in files.read(str(folder), max_page_bytes=10_000_000):
            if not isinstance(document, Document):
                continue
            try:
                page = parse(document)
            except SourceError:
                continue
            passages += [piece.text for piece in chunk(page, size=size, length=embedder.length)]
    return random.Random(0).sample(passages, min(most, len(passages)))


def measure(
    ours: dict[str, OnnxEmbedder], passages: list[str], python: str, original: Path, runs: int
) -> tuple[dict[str, list[float]], dict[str, NDArray[np.float32]], dict[str, str]]:
    """Seconds of each run and the vectors, by contestant; versions of the other stack."""
    contestants: dict[str, Callable[[], object]] = {}
    vectors: dict[str, NDArray[np.float32]] = {}
    for precision, embedder in ours.items():
        vectors[precision] = np.array([found.vector for found in embedder.embed(passages)])
        vectors[precision + " with token vectors"] = vectors[precision]
        contestants[precision] = lambda e=embedder: e.embed(passages)  # type: ignore[misc]
        contestants[precision + " with token vectors"] = lambda e=embedder: e.embed(passages, tokens=True)  # type: ignore[misc]
    seconds: dict[str, list[float]] = {name: [] for name in ("stack", *contestants)}
    with tempfile.TemporaryDirectory() as work:
        given, result = Path(work) / "passages.json", Path(work) / "vectors.npy"
        given.write_text(json.dumps(passages), encoding="utf-8")
        command = [
            python,
            str(Path(__file__).parent / "stack_embed.py"),
            str(original),
            str(given),
            str(result),
        ]
        with subprocess.Popen(
            command,
            env=os.environ | {"HF_HUB_OFFLINE": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as stack:
            assert stack.stdin and stack.stdout
            versions = json.loads(stack.stdout.readline())
            for _ in range(runs):
                print("go", file=stack.stdin, flush=True)
                seconds["stack"].append(json.loads(stack.stdout.readline()))
                for name, embed in contestants.items():
                    start = time.perf_counter()
                    embed()
                    seconds[name].append(time.perf_counter() - start)
            stack.stdin.close()
        vectors["stack"] = np.load(result)
    return seconds, vectors, versions


def table(
    seconds: dict[str, list[float]], vectors: dict[str, NDArray[np.float32]], count: int
) -> list[dict[str, report.Cell]]:
    rows: list[dict[str, report.Cell]] = []
    for name, times in seconds.items():
        ratios = [other / own for other, own in zip(seconds["stack"], times, strict=True)]
        cosines = (vectors[name] * vectors["stack"]).sum(1)
        rows.append(
            {
                "": "sentence-transformers, torch" if name == "stack" else f"hyce {name}",
                "passages/s": round(count / statistics.median(times), 1),
                "ratio": round(statistics.median(ratios), 2),
                "lowest ratio": round(min(ratios), 2),
                "mean cosine": round(float(cosines.mean()), 7),
                "min cosine": round(float(cosines.min()), 7),
            }
        )
    return rows


if __name__ == "__main__":
    main()
