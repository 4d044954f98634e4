"""Whether passages are found better when pages are embedded as a whole, and what it takes.

    python benchmarks/late_chunking.py [--shared DIR] [--model DIR]

That is model.late_chunking. As retrieval.py measures, with the same questions and the same scorer: by
meaning alone, and with all parts of the method. The time is that of the processor for `hyce index`, so that
other work on the machine counts little.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import tempfile
from collections.abc import Mapping
from pathlib import Path

import environment
import report
import retrieval

WAYS = {"passages alone": "false", "late chunking": "true"}
MODES = (
    retrieval.Variant("by meaning alone", search=retrieval.DENSE_ONLY, without=("joining",)),
    retrieval.Variant("default"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    environment.add_shared(parser)
    environment.add_model(parser)
    options = parser.parse_args()
    scorer = options.shared / "tools" / "score_retrieval.py"
    if not scorer.is_file():
        print(
            f"skipped: {scorer} is not there; name the folder with corpora, questions and tools: --shared DIR"
        )
        return
    models = environment.models_folder(options.model)
    scores: dict[str, dict[str, retrieval.Scores]] = {}
    seconds: dict[str, dict[str, float]] = {way: {} for way in WAYS}
    for asked in retrieval.sets(options.shared):
        scores[asked.name] = {}
        for way, late in WAYS.items():
            with tempfile.TemporaryDirectory(prefix="hyce-late-") as work:
                env = environment.settings(Path(work) / "index", models, MODEL_LATE_CHUNKING=late)
                seconds[way][asked.name] = index(asked, env)
                for mode in MODES:
                    found = Path(work) / "found.jsonl"
                    retrieval.search(asked, mode, env, found)
                    scores[asked.name][f"{mode.name}, {way}"] = retrieval.score(scorer, asked, found)
    publish(scores, seconds)


def index(asked: retrieval.Set, env: Mapping[str, str]) -> float:
    """Processor seconds of `hyce index`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment.index(asked.folder, env)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime


def publish(
    scores: Mapping[str, Mapping[str, retrieval.Scores]], seconds: Mapping[str, Mapping[str, float]]
) -> None:
    """Write results/late_chunking."""
    rows: list[retrieval.Row] = []
    for mode in MODES:
        for way in WAYS:
            row = retrieval.row(retrieval.Variant(f"{mode.name}, {way}"), scores)
            ratios = [seconds[way][name] / seconds["passages alone"][name] for name in environment.CENTRES]
            rows.append(row | {"time to index": round(statistics.mean(ratios), 2)})
    notes = (
        "500w, 2000w: share of the evidence found within the first 500 and 2000 words (recall@500w, "
        "recall@2000w); mrr: mrr@10. mean: of katana, cscs and archer2; kestrel is the sample documentation.",
        "time to index: processor time of the whole `hyce index`, reading the pages and embedding the texts "
        "of the commands included, as a multiple of that for passages alone; mean of the three centres.",
        "The same passages, int8. The weights of the default were chosen on these questions, with passages "
        "embedded alone.",
    )
    path = report.write(
        "late_chunking", "Passages embedded alone, and with what stands around them", rows, notes
    )
    print(path.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
