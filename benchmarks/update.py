"""What `hyce index` takes when nothing has changed, as a share of the first run.

    python benchmarks/update.py [--shared DIR] [--runs 7] [--model DIR]

On the archer2 documentation (examples/kestrel where --shared is absent). Whole processes, from start to end.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from pathlib import Path

import environment
import report


def main() -> None:
    options = arguments()
    models = environment.models_folder(options.model)
    name, folder = environment.corpus(options.shared, "archer2")
    with tempfile.TemporaryDirectory(prefix="hyce-update-") as work:
        env = environment.settings(Path(work) / "index", models)
        first, _ = environment.index(folder, env)
        runs = [environment.index(folder, env) for _ in range(options.runs)]
        without = [environment.run([environment.hyce(), "--version"], env) for _ in range(options.runs)]
    again, said = [ended for ended, _ in runs], runs[-1][1]
    if said["embedded"] or said["unchanged"] != said["documents"]:
        raise SystemExit(f"the last run should have found nothing new: {said}")
    notes = [
        f"{name}: {said['documents']} pages, {said['chunks']} passages. {options.runs} runs without changes; "
        "share: of the first run's seconds.",
        "`hyce --version` shows what the start of the process alone takes.",
    ]
    rows = [
        row("first run", [first], first),
        row("without changes", again, first),
        row("hyce --version", without, first),
    ]
    path = report.write("update", "Indexing again without changes", rows, notes)
    print(path.read_text(encoding="utf-8"))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    environment.add_shared(parser)
    environment.add_model(parser)
    parser.add_argument("--runs", type=int, default=7, help="runs without changes")
    return parser.parse_args()


def row(name: str, runs: list[environment.Ended], first: environment.Ended) -> dict[str, report.Cell]:
    """Median, slowest and peak memory of the runs."""
    median = statistics.median(run.seconds for run in runs)
    return {
        "": name,
        "seconds": round(median, 3),
        "slowest": round(max(run.seconds for run in runs), 3),
        "share": round(median / first.seconds, 4),
        "one in": round(first.seconds / median, 1),
        "peak MB": round(max(run.peak_mb for run in runs)),
    }


if __name__ == "__main__":
    main()
