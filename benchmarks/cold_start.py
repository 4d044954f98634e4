"""Process start to result: hyce against the least that a search takes, and against torch and faiss.

    python benchmarks/cold_start.py [--shared DIR] [--runs 15] [--stack PYTHON] [--model DIR]

Measured are whole processes, from start to end, in turns, so that other load on the machine meets all of
them: `hyce search QUESTION -k 6` on an index of the katana documentation (examples/kestrel where --shared is
absent); floor_search.py, which does by hand with numpy, onnxruntime and tokenizers what can't be left out;
and stack_search.py, with sentence-transformers, torch and faiss. Also `hyce match` and `hyce ask --no-llm`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import environment
import report

QUESTION = "How much data may I keep in my home directory, and how do I see what I use?"
BESIDE = Path(__file__).parent
FLOOR, STACK, SEARCH = "floor", "stack", "hyce search"
NOTES = (
    "Seconds from the start of the process to its end; files are in the system's cache.",
    "times the floor, times faster than the stack: medians of the ratios, round by round.",
    "floor: numpy, onnxruntime and tokenizers by hand, the same int8 model, passages by meaning alone.",
    "stack: sentence-transformers, torch and faiss, passages by meaning alone; the paper's cross-encoder, a "
    "second model to load, is not included.",
)


@dataclass(frozen=True, slots=True)
class Contestant:
    """A command to be measured."""

    name: str
    command: Sequence[str]
    env: Mapping[str, str]


def main() -> None:
    options = arguments()
    if options.prepare:
        prepare(*options.prepare)
        return
    models = environment.models_folder(options.model)
    original = environment.original_model(options.model)
    python = environment.stack(options.stack)
    name, folder = environment.corpus(options.shared, "katana")
    with tempfile.TemporaryDirectory(prefix="hyce-cold-") as work:
        # Root is a user like others here; `ask` runs commands.
        env = environment.settings(Path(work) / "index", models, POLICY_ROOT="true")
        env |= {"XDG_CACHE_HOME": work, "XDG_STATE_HOME": work, "HF_HUB_OFFLINE": "1"}
        environment.index(folder, env)
        # In a process of its own: a process inherits the peak memory of the one that starts it.
        environment.run([sys.executable, __file__, "--prepare", work, str(models)], env)
        stack = [python, str(BESIDE / "stack_search.py"), work, str(original)]
        versions = json.loads(environment.run([*stack, "--prepare"], env).stdout)
        passages = len(json.loads((Path(work) / "passages.json").read_text(encoding="utf-8")))
        ended = measure(contestants(work, stack, env), options.runs)
    notes = [f"{passages} passages of {name}; {options.runs} rounds, in turns; medians.", *NOTES]
    path = report.write("cold_start", "Process start to result", table(ended), notes, versions)
    print(path.read_text(encoding="utf-8"))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    environment.add_shared(parser)
    environment.add_stack(parser)
    environment.add_model(parser)
    parser.add_argument("--runs", type=int, default=15, help="rounds")
    parser.add_argument("--prepare", nargs=2, type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def prepare(work: Path, models_folder: Path) -> None:
    """Write what floor_search.py reads, from the index in `work`: the passages and their vectors."""
    import numpy as np

    from hyce.embed import OnnxEmbedder
    from hyce.index.embedded import open_index
    from hyce.models import find

    files = find(environment.NAME, "int8", models_folder)
    with open_index(work / "index") as index:
        found = index.dense(np.ones(files.dimensions, np.float32), index.manifest.chunks)
        texts = [passage.text for passage in index.passages(sorted(number for number, _ in found))]
    vectors = np.array([embedding.vector for embedding in OnnxEmbedder(files).embed(texts)])
    np.save(work / "vectors.npy", vectors)
    (work / "passages.json").write_text(json.dumps(texts), encoding="utf-8")
    names = {"graph": str(files.graph), "tokenizer": str(files.tokenizer)}
    (work / "model.json").write_text(json.dumps(names), encoding="utf-8")


def contestants(work: str, stack: Sequence[str], env: Mapping[str, str]) -> list[Contestant]:
    program = environment.hyce()
    floor = [sys.executable, str(BESIDE / "floor_search.py"), work, QUESTION]
    return [
        Contestant(FLOOR, floor, env),
        Contestant(SEARCH, [program, "search", QUESTION, "-k", "6"], env),
        Contestant("hyce match", [program, "match", QUESTION], env),
        Contestant("hyce ask --no-llm", [program, "ask", "--no-llm", QUESTION], env),
        Contestant(STACK, [*stack, QUESTION], env),
    ]


def measure(entered: Sequence[Contestant], rounds: int) -> dict[str, list[environment.Ended]]:
    """Every round of each contestant, after one that doesn't count and fills the system's cache."""
    ended: dict[str, list[environment.Ended]] = {contestant.name: [] for contestant in entered}
    for number in range(rounds + 1):
        for contestant in entered:
            result = environment.run(contestant.command, contestant.env)
            if number:
                ended[contestant.name].append(result)
        print(f"round {number} of {rounds}", file=sys.stderr)
    return ended


def table(ended: Mapping[str, Sequence[environment.Ended]]) -> list[dict[str, report.Cell]]:
    rows: list[dict[str, report.Cell]] = []
    for name, runs in ended.items():
        floor = [own.seconds / least.seconds for own, least in zip(runs, ended[FLOOR], strict=True)]
        faster = [other.seconds / own.seconds for own, other in zip(runs, ended[STACK], strict=True)]
        rows.append(
            {
                "": name,
                "seconds": round(statistics.median(run.seconds for run in runs), 3),
                "fastest": round(min(run.seconds for run in runs), 3),
                "slowest": round(max(run.seconds for run in runs), 3),
                "times the floor": round(statistics.median(floor), 2),
                "times faster than the stack": round(statistics.median(faster), 2),
                "peak MB": round(max(run.peak_mb for run in runs)),
            }
        )
    return rows


if __name__ == "__main__":
    main()
