"""How well passages are found, on question sets of real centres; and what each part of the method brings.

    python benchmarks/retrieval.py [--shared DIR] [--model DIR] [--only TEXT]

Each documentation is indexed by `hyce index`, each question set goes through `hyce search - -k 60 --json`,
and DIR/tools/score_retrieval.py scores what comes back: the share of the questions' evidence within the first
500 and 2000 words, and the mean reciprocal rank of the first hit that supports it. A variant differs in
settings, or in parts of the method that have none and that are taken away before hyce's own code runs.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import environment
import report

from hyce.config import Passages

BESIDE = Path(__file__).parent
HITS = "60"
METRICS = {"recall@500w": "500w", "recall@2000w": "2000w", "mrr@10": "mrr"}
PARTS = ("weights", "rarity", "neighbours", "joining")
DEFAULT = Passages().size
SIZES = tuple(size for size in (128, 160, 192, 256) if size != DEFAULT)

Scores = Mapping[str, float]
Row = dict[str, report.Cell]


@dataclass(frozen=True, slots=True)
class Variant:
    """A way to index and search."""

    name: str
    index: tuple[tuple[str, str], ...] = ()
    """Settings that the index depends on, as HYCE_* variables without HYCE_."""
    search: tuple[tuple[str, str], ...] = ()
    without: tuple[str, ...] = ()
    """Of PARTS."""


_FP32 = ("MODEL_PRECISION", "fp32")
_NO_TOKENS = ("INDEX_TOKEN_VECTORS", "false")
_PLAIN = (("RETRIEVAL_VOCABULARY", "false"),)
DENSE_ONLY = (("RETRIEVAL_LEXICAL", "false"), ("RETRIEVAL_RERANK", "none"), *_PLAIN)
_CHAT_SERVER = Variant("1000-character windows, dense alone (as chat servers)")
VARIANTS = (
    Variant("default"),
    Variant(
        "<p> passages, dense alone (as the paper's code)",
        (("PASSAGES_KIND", "paragraph"), _FP32, _NO_TOKENS),
        DENSE_ONLY,
        ("joining",),
    ),
    _CHAT_SERVER,
    Variant("structure passages, dense alone", (), DENSE_ONLY, ("joining",)),
    Variant("+ BM25, fused by rank", (), (("RETRIEVAL_RERANK", "none"), *_PLAIN), ("joining",)),
    Variant(
        "+ late interaction alone orders them", (), _PLAIN, ("weights", "rarity", "neighbours", "joining")
    ),
    Variant("+ dense and BM25 scores beside it", (), _PLAIN, ("rarity", "neighbours", "joining")),
    Variant("+ rare words of the question count more", (), _PLAIN, ("neighbours", "joining")),
    Variant("+ score of the neighbour", (), _PLAIN, ("joining",)),
    Variant("+ neighbours joined", (), _PLAIN),
    Variant("+ the field's terms = default"),
    Variant("default without dense search", (), (("RETRIEVAL_DENSE", "false"),)),
    Variant("default without BM25", (), (("RETRIEVAL_LEXICAL", "false"),)),
    Variant("default without late interaction", (), (("RETRIEVAL_RERANK", "none"),)),
    Variant("default without rare words' weight", without=("rarity",)),
    Variant("default without the neighbour's score", without=("neighbours",)),
    Variant("default in fp32", (_FP32,)),
    *(Variant(f"passages of {size} tokens", (("PASSAGES_SIZE", str(size)),)) for size in SIZES),
)


@dataclass(frozen=True, slots=True)
class Set:
    """Documentation with its questions."""

    name: str
    folder: Path
    questions: Path


def main() -> None:
    options = arguments()
    if options.without is not None:
        sys.exit(search_without(options.without))
    scorer = options.shared / "tools" / "score_retrieval.py"
    if not scorer.is_file():
        print(
            f"skipped: {scorer} is not there; name the folder with corpora, questions and tools: --shared DIR"
        )
        return
    variants = [variant for variant in VARIANTS if options.only in variant.name]
    models = environment.models_folder(options.model)
    scores: dict[str, dict[str, Scores]] = {}
    sizes: list[Row] = []
    for asked in sets(options.shared):
        with tempfile.TemporaryDirectory(prefix="hyce-retrieval-") as work:
            scores[asked.name], indexes = measure(asked, variants, scorer, models, Path(work))
        sizes += indexes
    rows = [row(variant, scores) for variant in variants]
    if options.only:
        print(json.dumps(rows, indent=1))
        return
    publish(rows, sizes)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    environment.add_shared(parser)
    environment.add_model(parser)
    parser.add_argument(
        "--only", default="", metavar="TEXT", help="variants with this in their name; nothing is written"
    )
    parser.add_argument("--without", nargs="*", choices=PARTS, help=argparse.SUPPRESS)
    return parser.parse_args()


def sets(shared: Path) -> list[Set]:
    """The centres, and the sample documentation."""
    centres = [
        Set(name, shared / "corpora" / name, shared / "questions" / f"{name}.jsonl")
        for name in environment.CENTRES
    ]
    own = environment.REPOSITORY / "tests" / "data" / "kestrel_questions.jsonl"
    return [*centres, Set("kestrel", environment.REPOSITORY / "examples" / "kestrel", own)]


def measure(
    asked: Set,
    variants: Sequence[Variant],
    scorer: Path,
    models: Path,
    work: Path,
) -> tuple[dict[str, Scores], list[Row]]:
    """Scores by variant, and the indexes: each is made once and removed when its variants are done."""
    scores: dict[str, Scores] = {}
    sizes: list[Row] = []
    found, index = work / "found.jsonl", work / "index"
    for wanted in dict.fromkeys(variant.index for variant in variants if variant is not _CHAT_SERVER):
        env = environment.settings(index, models, **dict(wanted))
        sizes.append({"documentation": asked.name, "index": _words(wanted), **build(asked, index, env)})
        for variant in variants:
            if variant.index == wanted and variant is not _CHAT_SERVER:
                search(asked, variant, env, found)
                scores[variant.name] = score(scorer, asked, found)
        shutil.rmtree(index)
    if _CHAT_SERVER in variants:
        command = [sys.executable, str(BESIDE / "windows.py"), str(asked.folder), str(models)]
        found.write_bytes(environment.run(command, stdin=asked.questions).stdout)
        scores[_CHAT_SERVER.name] = score(scorer, asked, found)
        with found.open(encoding="utf-8") as lines:
            windows = int(json.loads(next(lines))["windows"])
        sizes.append({"documentation": asked.name, "index": "1000-character windows", "passages": windows})
    return scores, sizes


def build(asked: Set, index: Path, env: Mapping[str, str]) -> Row:
    """Index the documentation; pages, passages, size and time."""
    ended, said = environment.index(asked.folder, env)
    size = sum(path.stat().st_size for path in index.rglob("*") if path.is_file())
    return {
        "pages": said["documents"],
        "passages": said["chunks"],
        "MB": round(size / 1e6, 1),
        "seconds": round(ended.seconds, 1),
        "peak MB": round(ended.peak_mb),
    }


def search(asked: Set, variant: Variant, env: Mapping[str, str], found: Path) -> None:
    """Write what is found for each question to `found`."""
    started = time.monotonic()
    env = {**env, **{f"HYCE_{name}": value for name, value in variant.search}}
    command = [environment.hyce(), "search", "-", "-k", HITS, "--json"]
    if variant.without:
        command = [sys.executable, __file__, "--without", *variant.without]
    found.write_bytes(environment.run(command, env, stdin=asked.questions).stdout)
    print(f"{asked.name}: {variant.name}: {time.monotonic() - started:.1f} s", file=sys.stderr)


def score(scorer: Path, asked: Set, found: Path) -> Scores:
    """The scorer's figures over all questions."""
    command = [sys.executable, str(scorer), str(asked.questions), str(found), "--json"]
    scores: Scores = json.loads(environment.run(command).stdout)["all"]
    return scores


def search_without(parts: Sequence[str]) -> int:
    """`hyce search -` without these parts of the method, in this process."""
    import numpy as np

    from hyce import cli, retrieve

    replaced: dict[str, dict[str, object]] = {
        "weights": {"DENSE_WEIGHT": 0.0, "LEXICAL_WEIGHT": 0.0},
        "rarity": {"_rarity": lambda question, _: np.ones(len(question), np.float32)},
        "neighbours": {"NEIGHBOUR_WEIGHT": 0.0},
        "joining": {"join_neighbours": list},
    }
    for part in parts:
        if not replaced[part].keys() <= vars(retrieve).keys():
            raise SystemExit(f"hyce.retrieve has changed: {part} can't be taken away any more")
        vars(retrieve).update(replaced[part])
    return cli.main(["search", "-", "-k", HITS, "--json"])


def row(variant: Variant, scores: Mapping[str, Mapping[str, Scores]]) -> Row:
    """The means of the three centres, then each documentation's own."""
    cells: Row = {"": variant.name}
    for metric, short in METRICS.items():
        values = [scores[centre][variant.name][metric] for centre in environment.CENTRES]
        cells[f"mean {short}"] = round(statistics.mean(values), 3)
    for name, found in scores.items():
        cells |= {f"{name} {short}": found[variant.name][metric] for metric, short in METRICS.items()}
    return cells


def publish(rows: list[Row], sizes: list[Row]) -> None:
    """Write results/retrieval and results/retrieval_index."""
    notes = (
        "500w, 2000w: share of the evidence found within the first 500 and 2000 words (recall@500w, "
        "recall@2000w); mrr: mrr@10. mean: of katana, cscs and archer2; kestrel is the sample documentation.",
        f"default: structure passages of at most {DEFAULT} tokens, int8, all parts. Rows that begin with + "
        "add a part to the row above.",
        "The weights, the size of passages and the joining were chosen on these four sets together. The "
        "field's terms are general ones of HPC; what they count was chosen on the sets too. Other sites' "
        "figures differ.",
        "Dense alone, of <p> passages and of windows: in fp32. Each row in a process of its own.",
    )
    path = report.write("retrieval", "How well passages are found", rows, notes)
    print(path.read_text(encoding="utf-8"))
    about = ("Whole process of `hyce index`. Size with token vectors, but for <p> passages.",)
    report.write("retrieval_index", "The indexes that were searched", sizes, about)


def _words(wanted: Sequence[tuple[str, str]]) -> str:
    return ", ".join(value for name, value in wanted if name != _NO_TOKENS[0]) or "default"


if __name__ == "__main__":
    main()
