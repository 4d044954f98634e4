"""Which commands a question leads to: six figures, what each part of the method brings, and why descriptions.

    python benchmarks/routing.py [--shared DIR] [--model DIR] [--only TEXT]

The figures are those of `hyce evaluate routing`, on data/routing_held.jsonl (questions whose writers also
wrote example questions; none of it is an example) and on DIR/questions/routing.jsonl (where it is there):

    first       share of the questions for a command whose first command is right
    precision   share of all commands chosen for them that are right
    parameters  share of the questions that name a value whose command is right and carries exactly that value
    quiet       share of the questions for no command for which none runs
    traps       the same for orders, other people's things and attacks
    overall     share of all questions handled rightly
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import environment
import numpy as np
import report

from hyce import catalogue, match, score
from hyce.catalogue.loader import load_folders
from hyce.embed import OnnxEmbedder
from hyce.evaluate.finding.encoders import Encoder, cosine
from hyce.evaluate.finding.measured import ALL
from hyce.evaluate.finding.routing import Routed, summarised
from hyce.evaluate.finding.similarity import catalogue_set
from hyce.evaluate.finding.similarity import measure as compared_by
from hyce.evaluate.records import Question
from hyce.evaluate.sets import read_set
from hyce.match import Matcher
from hyce.models import find
from hyce.records import Command, Embedding, Routing

DATA = Path(__file__).parent / "data"
FIGURES = ("first", "precision", "parameters", "quiet", "traps", "overall")


class Remembering:
    """The embedder, with each text's vector kept: the variants ask the same questions."""

    token_vectors = False

    def __init__(self, embedder: OnnxEmbedder) -> None:
        self.fingerprint, self.dimensions, self.length = (
            embedder.fingerprint,
            embedder.dimensions,
            embedder.length,
        )
        self._embedder = embedder
        self._known: dict[str, Embedding] = {}

    def embed(
        self,
        texts: Sequence[str],
        *,
        tokens: bool = False,  # noqa: ARG002
        query: bool = False,  # noqa: ARG002
    ) -> list[Embedding]:
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        self._known |= dict(zip(new, self._embedder.embed(new), strict=True))
        return [self._known[text] for text in texts]


class NearestText(score.Likeness):
    """The score of an answer is the cosine of its nearest text: nothing is learnt."""

    def fit(self, answers: np.typing.NDArray[np.int64], count: int) -> score.Array:
        weights = np.zeros((self.rows, count), np.float32)
        weights[np.arange(len(answers)), answers] = 1
        return weights

    def scores(  # the words of the questions don't count
        self,
        questions: Sequence[str],  # noqa: ARG002
        vectors: score.Array,
        weights: score.Array,
    ) -> score.Array:
        cosine = vectors @ self._vectors.T
        mine = weights[: cosine.shape[1]].T > 0
        nearest: score.Array = np.where(mine, cosine[:, None, :], -1).max(axis=2)
        return nearest


@dataclass(frozen=True, slots=True)
class Variant:
    """A way to choose commands."""

    name: str
    entries: Sequence[Command]
    documentation: Sequence[str]
    threshold: float = match.THRESHOLD
    change: tuple[tuple[object, str, object], ...] = ()
    """(module, name, value): parts of the method that are replaced before hyce's own code runs."""


def variants() -> list[Variant]:
    whole = list(catalogue.load().values())
    few = list(load_folders([catalogue.BUILTIN], builtin=None).values())
    bare = [replace(entry, questions=()) for entry in whole]
    quiet = catalogue.documentation_questions()
    return [
        Variant("default", whole, quiet),
        Variant("about a dozen example questions an entry", few, quiet),
        Variant("descriptions alone", bare, quiet),
        Variant("nearest text, nothing learnt", whole, quiet, 0.33, ((match, "Likeness", NearestText),)),
        Variant("without likeness by words", whole, quiet, change=((score, "WORDS", 0.0),)),
        Variant(
            "without bonus for named values",
            whole,
            quiet,
            change=((match, "NAMED", 0.0), (match, "NUMBERED", 0.0)),
        ),
        Variant("without questions for documentation", whole, ()),
    ]


def figures(questions: Sequence[Question], routings: Sequence[Routing]) -> dict[str, report.Cell]:
    """The six figures; see the module's docstring."""
    rows = [
        Routed(question, question.accept or (), routing.commands)
        for question, routing in zip(questions, routings, strict=True)
    ]
    told = summarised(rows).groups[ALL]
    return {name: round(told[name].value, 3) if name in told else "" for name in FIGURES}


def measure(variant: Variant, questions: Sequence[Question], embedder: Remembering) -> dict[str, report.Cell]:
    kept = [(place, name, getattr(place, name)) for place, name, _ in variant.change]
    for place, name, value in variant.change:
        setattr(place, name, value)
    try:
        matcher = Matcher(
            variant.entries, embedder, documentation=variant.documentation, threshold=variant.threshold
        )
        for scheduler in ("slurm", "pbs"):
            matcher.match("warm up", scheduler=scheduler)
        embedder.embed([question.question for question in questions])
        started = time.perf_counter()
        routings = [matcher.match(each.question, scheduler=each.site) for each in questions]
        seconds = time.perf_counter() - started
    finally:
        for place, name, value in kept:
            setattr(place, name, value)
    return {**figures(questions, routings), "ms a question": round(1000 * seconds / len(questions), 1)}


def similarity(questions: Sequence[Question], embedder: Remembering) -> Iterator[dict[str, report.Cell]]:
    """How near questions are to the command lines, and to the descriptions, of the entries on their site."""
    asked = [question for question in questions if question.accept]
    encoder = Encoder(environment.NAME, "bi-encoder", cosine(embedder), "cosine")
    (found,) = compared_by(encoder, asked, [catalogue_set(catalogue.load().values())]).compared
    for name, best, ranks in (
        ("command line", found.all.line, found.line),
        ("description", found.all.description, found.description),
    ):
        assert ranks
        yield {
            "compared with": name,
            "mean best similarity": round(best, 3),
            "right first": round(ranks.first.value, 3),
            "MRR": round(ranks.reciprocal.value, 3),
        }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    environment.add_shared(parser)
    environment.add_model(parser)
    parser.add_argument("--only", metavar="TEXT", default="", help="only variants whose name holds TEXT")
    options = parser.parse_args()
    embedder = Remembering(
        OnnxEmbedder(find(environment.NAME, "int8", environment.models_folder(options.model)))
    )
    sets = {"held": read_set(DATA / "routing_held.jsonl").questions}
    further = options.shared / "questions" / "routing.jsonl"
    if further.is_file():
        sets["shared"] = read_set(further).questions
    else:
        print(f"{further}: not there, so only the project's own questions are measured")
    rows = [
        {"questions": name, "variant": variant.name, **measure(variant, questions, embedder)}
        for name, questions in sets.items()
        for variant in variants()
        if options.only in variant.name
    ]
    for row in rows:
        print(*row.values(), sep="  ")
    if options.only:
        return
    notes = [
        f"{name}: {len(questions)} questions, {sum(bool(each.accept) for each in questions)} for commands"
        for name, questions in sets.items()
    ]
    notes.append("ms a question: all but embedding it, which takes 5 to 10 ms")
    print(report.write("routing", "Which commands a question leads to", rows, notes))
    near = [
        {"questions": name, **row}
        for name, questions in sets.items()
        for row in similarity(questions, embedder)
    ]
    print(report.write("routing_similarity", "Questions compared with command lines and descriptions", near))


if __name__ == "__main__":
    main()
