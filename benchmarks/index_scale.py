"""How search time and memory grow with the index: 2 thousand, 100 thousand and 1 million passages.

    python benchmarks/index_scale.py [--sizes 2000 100000 1000000] [--folder DIR] [--keep]

Vectors are random; text has Zipf-distributed words, the most frequent ones those of cluster documentation.
Token vectors (120 a passage) are made for up to 100 thousand passages: 5 GB. Each index is searched by a
fresh process, so that its memory is that of searching alone. Times are medians and 95th percentiles in ms of
the product's own Retriever, after the question was embedded. Cold: token vectors come from the disk.
"""

from __future__ import annotations

import os

# One thread for numpy, as the command line sets it: before numpy is imported.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import argparse
import json
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import report
from numpy.typing import NDArray

from hyce.config import Retrieval, Site
from hyce.index.embedded import estimate_bytes, open_index, open_writer
from hyce.records import Chunk, Document, Embedding
from hyce.retrieve import Retriever

DIMENSIONS, TOKENS, WORDS, PAGE = 384, 120, 90, 8
WITH_TOKENS = 100_000
"""Largest index that is built with token vectors."""

Figures = dict[str, float]

_DOCUMENTATION = """
job jobs node nodes run file slurm module cluster use memory command user data directory time gpu script
software example queue partition access cpu system storage set number cores load account program
environment version python project login run mpi home scratch output submit group quota batch limit
interactive container hours request install allocation srun sbatch library compiler transfer ssh key
password task parallel array path variable share backup error log state pending priority reservation
walltime node-local bandwidth vpn
"""
FREQUENT = _DOCUMENTATION.split()

QUESTIONS = (
    "How do I request a GPU node with 80 GB of memory for an interactive job?",
    "Why is my job pending with the reason {rare}?",
    "How much scratch storage does my project have and is there a backup?",
    "Which module provides {rare} with MPI?",
    "How do I submit a job array with sbatch?",
    "My python script can't find the library {rare}, what should I load?",
    "What is the maximum walltime of the {rare} partition?",
    "How can I transfer data to the cluster with ssh keys?",
    "How do I set --mem-per-cpu and the number of cores for each task?",
    "Can I run a container on the login node?",
    "Where do I see the quota of my home directory?",
    "What does error {rare} in the job log mean?",
)


STEPS = ("dense", "lexical", "retrieval")
BUILT = ("GB", "write s", "publish s", "update s", "open ms", "own MB", "mapped MB")
SEARCH_NOTES = (
    "After the question was embedded. retrieval: the whole, from its vectors to the joined passages: both "
    "searches, 100 candidates from each, their texts and token vectors, scoring, joining. dense, lexical: "
    "one search by itself.",
    "cold: token vectors come from the disk; warm: the same questions a second time.",
    "Random vectors, 120 token vectors of 384 dimensions a passage; Zipf-distributed words.",
)
BUILD_NOTES = (
    "Embedding isn't included: vectors are random. update: one page changed, then published.",
    "Memory of a process that searches. own: its alone. mapped: files that the system shares among "
    "processes and drops when memory is short.",
)


def vocabulary(size: int) -> list[str]:
    rng = random.Random(1)
    letters = "etaoinsrhldcumfpgwybvkxjqz"
    words = dict.fromkeys(FREQUENT)
    while len(words) < size:
        words["".join(rng.choices(letters, weights=range(26, 0, -1), k=rng.randint(4, 10)))] = None
    return list(words)


def passages(count: int, words: list[str]) -> Iterator[str]:
    """Texts of Zipf-distributed words: the most frequent one is in about half of them."""
    rng = np.random.default_rng(2)
    weights = 1 / (np.arange(len(words)) + 10.0)
    shares = np.cumsum(weights / weights.sum())
    for start in range(0, count, 1000):
        ranks = np.minimum(np.searchsorted(shares, rng.random((1000, WORDS))), len(words) - 1)
        for row in ranks[: count - start]:
            yield " ".join([words[rank] for rank in row])


def unit(rng: np.random.Generator, *shape: int) -> NDArray[np.float32]:
    values = rng.standard_normal((*shape, DIMENSIONS), np.float32)
    return np.asarray(values / np.linalg.norm(values, axis=-1, keepdims=True), np.float32)


def build(index: Path, count: int, token_vectors: bool) -> Figures:
    """Write an index of `count` passages through the writer; how long it took, in seconds."""
    rng = np.random.default_rng(3)
    pool = (
        [unit(rng, TOKENS) for _ in range(32)] if token_vectors else [np.zeros((0, DIMENSIONS), np.float32)]
    )
    ids = tuple(range(len(pool[0])))
    texts = passages(count, vocabulary(50_000))
    started = time.perf_counter()
    with open_writer(
        index,
        embedder="synthetic",
        dimensions=DIMENSIONS,
        passages="structure/160",
        token_vectors=token_vectors,
    ) as writer:
        for page in range(-(-count // PAGE)):
            bodies = [text for _, text in zip(range(min(PAGE, count - page * PAGE)), texts, strict=False)]
            title = " ".join(bodies[0].split()[:4])
            chunks = [Chunk((title, *body.split()[4:7]), "part", body) for body in bodies]
            vectors = unit(rng, len(bodies))
            embeddings = [Embedding(vector, pool[i % len(pool)], ids) for i, vector in enumerate(vectors)]
            document = Document("/docs", f"{page}.md", "text/markdown", "", str(page))
            writer.put(document, title, None, chunks, embeddings)
        written = time.perf_counter()
        writer.publish()
    published = time.perf_counter()
    size = sum(path.stat().st_size for path in index.rglob("*") if path.is_file())
    return {"write s": written - started, "publish s": published - written, "GB": size / 1e9}


def update(index: Path, token_vectors: bool) -> float:
    """Seconds to change one page and publish."""
    started = time.perf_counter()
    with open_writer(
        index,
        embedder="synthetic",
        dimensions=DIMENSIONS,
        passages="structure/160",
        token_vectors=token_vectors,
    ) as writer:
        vector = unit(np.random.default_rng(5), 1)
        document = Document("/docs", "0.md", "text/markdown", "", "changed")
        embedding = Embedding(vector[0], vector[:0])
        writer.put(document, "Changed", None, [Chunk(("Changed",), "", "a changed page")], [embedding])
        writer.publish()
    return time.perf_counter() - started


def forget(index: Path) -> None:
    """Ask the system to drop the index from its cache of files, as on a machine that just started."""
    for path in (index / "segments").iterdir():
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def timed(milliseconds: list[float], action: Callable[[], Any]) -> Any:
    started = time.perf_counter()
    result = action()
    milliseconds.append((time.perf_counter() - started) * 1000)
    return result


def search(index: Path, rounds: int) -> Figures:
    """Times of the steps of a search, and the memory of this process, which has done nothing else."""
    rng = np.random.default_rng(4)
    rare = vocabulary(50_000)[2000:50_000:397]
    forget(index)
    started = time.perf_counter()
    figures: Figures = {}
    with open_index(index) as reader:
        figures["open ms"] = (time.perf_counter() - started) * 1000
        asked = [
            QUESTIONS[number % len(QUESTIONS)].format(rare=rare[number % len(rare)])
            for number in range(rounds * len(QUESTIONS))
        ]
        embedder = Fixed(rng)
        retriever = Retriever(reader, embedder, Retrieval(), Site())
        retriever.retrieve(asked[0])  # reads all vectors
        for cache in ("cold", "warm"):
            times: dict[str, list[float]] = {step: [] for step in STEPS}
            for question in asked:
                timed(times["retrieval"], lambda: retriever.retrieve(question))  # noqa: B023
                vector = embedder.embedding.vector
                timed(times["dense"], lambda: reader.dense(vector, 100))  # noqa: B023
                timed(times["lexical"], lambda: reader.lexical(question, 100))  # noqa: B023
            for name, values in times.items():
                figures[f"{cache} {name} p50"] = statistics.median(values)
                figures[f"{cache} {name} p95"] = statistics.quantiles(values, n=20)[18]
        return figures | memory()


class Fixed:
    """An embedder whose answer takes no time: what is measured begins after the question was embedded."""

    fingerprint = "fixed"
    dimensions = DIMENSIONS
    token_vectors = True

    def __init__(self, rng: np.random.Generator) -> None:
        self.embedding = Embedding(unit(rng, 1)[0], unit(rng, 16), tuple(range(16)))

    def embed(
        self,
        texts: Sequence[str],
        *,
        tokens: bool = False,  # noqa: ARG002
        query: bool = False,  # noqa: ARG002
    ) -> list[Embedding]:
        return [self.embedding] * len(texts)

    def length(self, text: str) -> int:
        return len(text.split())


def memory() -> Figures:
    """MB of this process: its own, and mapped files that the system shares among processes and can drop."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    kilobytes = {
        line.split(":")[0]: line.split()[1] for line in status.splitlines() if line.startswith("Rss")
    }
    return {"own MB": int(kilobytes["RssAnon"]) / 1024, "mapped MB": int(kilobytes["RssFile"]) / 1024}


def measure(folder: Path, count: int, token_vectors: bool, rounds: int) -> Figures:
    """Build an index, and search it in a process of its own; all figures."""
    index = folder / f"{count}-{token_vectors}"
    needed = estimate_bytes(count, TOKENS, DIMENSIONS, token_vectors)
    if shutil.disk_usage(folder).free < 1.5 * needed:
        raise SystemExit(f"{folder}: {needed / 1e9:.1f} GB needed for {count} passages; use --folder")
    built = build(index, count, token_vectors)
    command = [sys.executable, __file__, "--search", str(index), "--rounds", str(rounds)]
    found = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    built["update s"] = update(index, token_vectors)
    searched: Figures = json.loads(found.stdout)
    return {"passages": count, "token vectors": token_vectors} | built | searched


def publish(figures: list[Figures]) -> None:
    """Write results/index_scale (search) and results/index_scale_build (writing and memory)."""
    searches: list[Mapping[str, report.Cell]] = []
    builds: list[Mapping[str, report.Cell]] = []
    for found in figures:
        index: dict[str, report.Cell] = {"passages": int(found["passages"])}
        index["token vectors"] = "yes" if found["token vectors"] else "no"
        for step in STEPS:
            if f"warm {step} p50" in found:
                names = [f"{cache} {step} {share}" for cache in ("warm", "cold") for share in ("p50", "p95")]
                times = {name.replace(f" {step}", ""): round(found[name], 2) for name in names}
                searches.append(index | {"step": step} | times)
        builds.append(index | {name: round(found[name], 2) for name in BUILT})
    report.write("index_scale", "Search in growing indexes, ms", searches, SEARCH_NOTES)
    report.write("index_scale_build", "Writing and opening growing indexes", builds, BUILD_NOTES)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[2000, 100_000, 1_000_000])
    parser.add_argument(
        "--folder", type=Path, help="where the indexes are built; default: the temporary folder"
    )
    parser.add_argument("--keep", action="store_true", help="leave the indexes there")
    parser.add_argument("--rounds", type=int, default=6, help="how often each of the 12 questions is asked")
    parser.add_argument("--search", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.search:
        print(json.dumps(search(options.search, options.rounds)))
        return
    folder = Path(tempfile.mkdtemp(prefix="hyce-scale-", dir=options.folder))
    figures: list[Figures] = []
    try:
        for count in options.sizes:
            for token_vectors in (False, True) if count <= WITH_TOKENS else (False,):
                figures.append(measure(folder, count, token_vectors, options.rounds))
        publish(figures)
    finally:
        if not options.keep:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
