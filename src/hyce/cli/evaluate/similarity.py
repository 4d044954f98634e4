"""hyce evaluate similarity."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hyce.cli.evaluate.arguments import QUESTIONS
from hyce.cli.terminal import Terminal
from hyce.config import Config

if TYPE_CHECKING:
    from hyce.evaluate.finding.encoders import Encoder
    from hyce.evaluate.finding.similarity import CommandSet, Compared, Figure, Means, Measured
    from hyce.evaluate.records import Question

NOTES = (
    "A model's scores have a scale of their own: compare its two columns, never the means of two models. "
    "Sets of commands of different sizes can't be compared by them either.",
    "Scores are raw outputs of the classifier, without an activation; those of models marked sigmoid have "
    "one, as their published figures have; a bi-encoder's are cosines.",
    "Ranks count a wrong command with the same score as before the right one. In brackets: 95 % intervals "
    "(bootstrap over the questions).",
)


_MEANS = ("model", "kind", "questions", "lines", "descriptions", "difference", "nearer", "note")
_RANKS = ("model", "questions", "by", "MRR", "right first")


def register(actions: Any, common: argparse.ArgumentParser) -> None:
    """Add the command to the parser."""
    similarity = actions.add_parser(
        "similarity",
        parents=[common],
        help="compare questions with command lines and with descriptions",
        description="Compares questions with the lines of commands and with their descriptions (the first "
        "table of the HyCE paper): the mean of the best scores, and the rank of the right command. Runs no "
        "command. Without --model and --bi-encoder: the paper's five cross-encoders and the configured "
        "bi-encoder. One that can't be had here is listed with the reason.",
    )
    similarity.add_argument("questions", type=Path, metavar="QUESTIONS", help=QUESTIONS)
    similarity.add_argument(
        "--model",
        action="append",
        default=[],
        metavar="NAME",
        help="a cross-encoder: one on this machine, or reranker.name where reranker.base_url serves it; may "
        "be repeated",
    )
    similarity.add_argument(
        "--bi-encoder",
        action="append",
        default=[],
        metavar="NAME",
        help="a bi-encoder, compared by the cosine: an extension of the paper's table; may be repeated",
    )
    similarity.add_argument(
        "--commands",
        choices=("catalogue", "ten", "both"),
        default="both",
        help="what questions are compared with: the catalogue's entries, ten commands like those of the "
        "paper's code, or each in turn (default)",
    )
    similarity.add_argument(
        "--backend",
        choices=("onnx", "sentence-transformers"),
        default="onnx",
        help="what runs models on this machine; sentence-transformers (the extra `similarity`) takes names "
        "of the model hub and folders",
    )
    similarity.set_defaults(call=run)


def run(arguments: argparse.Namespace, config: Config, terminal: Terminal) -> int:
    """Print the table; exit code 1 when no model could be measured."""
    from hyce import catalogue
    from hyce.evaluate.finding import encoders
    from hyce.evaluate.finding.similarity import catalogue_set, is_for_command, ten_set
    from hyce.evaluate.leaving import without_private
    from hyce.evaluate.sets import asked, read_sets

    read = read_sets([arguments.questions])
    models = encoders.wanted(config, arguments.model, arguments.bi_encoder)
    if encoders.sends_outside(models, config):
        read = without_private(read, config, terminal.warn)
    questions = asked(read)
    if arguments.backend == "sentence-transformers":
        encoders.require_sentence_transformers()
    sets = []
    if arguments.commands != "ten":
        sets.append(catalogue_set(catalogue.load_for(config).values()))
    if arguments.commands != "catalogue":
        sets.append(ten_set())
    found = []
    for name, kind in models.items():
        encoder = encoders.open_encoder(name, kind, config, arguments.backend)
        found.append(_measured(encoder, questions, sets, config, terminal))
        del encoder  # five large models may not fit into memory together
    commands = sum(map(is_for_command, questions))
    if terminal.json_output:
        counts = {"questions": len(questions), "command_questions": commands}
        terminal.json({**counts, "models": [asdict(each) for each in found], "notes": NOTES})
    else:
        _show(found, sets, terminal)
    if any(each.compared for each in found):
        return 0
    terminal.error("no model could be measured; each says above why, and what to do")
    return 1


def _measured(
    encoder: Encoder,
    questions: Sequence[Question],
    sets: Sequence[CommandSet],
    config: Config,
    terminal: Terminal,
) -> Measured:
    from hyce.evaluate.finding.similarity import measure
    from hyce.evaluate.work import Pace

    with terminal.progress(encoder.name) as progress:
        pace = Pace(progress, len(questions))
        return measure(
            encoder, questions, sets, scheduler=_scheduler(config), step=lambda: pace.step("questions")
        )


def _scheduler(config: Config) -> str | None:
    """The site's, for questions that don't say theirs; None where nothing tells."""
    from hyce.surroundings import look_around

    if config.site.scheduler != "auto":
        return config.site.scheduler
    here = look_around().scheduler
    return None if here == "none" else here


# -- the table -------------------------------------------------------------------------------------------


def _show(found: Sequence[Measured], sets: Sequence[CommandSet], terminal: Terminal) -> None:
    measured = [model for model in found if model.compared]
    for place, commands in enumerate(sets if measured else ()):
        what = "entries of the catalogue" if commands.name == "catalogue" else "commands like the paper's"
        heading = f"Questions compared with {len(commands.candidates)} {what}"
        terminal.print(f"{heading}: mean of the best scores", style="bold")
        terminal.table([_MEANS, *(row for model in measured for row in _mean_rows(model, place))])
        terminal.print()
        ranked = [row for model in measured for row in _rank_rows(model.name, model.compared[place])]
        if ranked:
            terminal.print(f"{heading}: rank of the right one", style="bold")
            terminal.table([_RANKS, *ranked])
            terminal.print()
        if left := measured[0].compared[place].unlabelled:
            terminal.print(
                f"Questions for commands without a rank, as none of these is labelled right: {left}"
            )
            terminal.print()
    missing = [(model.name, model.unavailable) for model in found if not model.compared]
    if missing:
        terminal.table([("not measured", "why"), *missing])
        terminal.print()
    for note in NOTES if measured else ():
        terminal.print(note)


def _mean_rows(model: Measured, place: int) -> Iterator[tuple[str, ...]]:
    compared = model.compared[place]
    note = model.where + (f", {model.output}" if model.output in ("sigmoid", "as served") else "")
    for whose, means in (("all", compared.all), ("command", compared.command)):
        if means:
            yield (model.name, model.kind, f"{whose} {means.questions}", *_mean_cells(means), note)


def _mean_cells(means: Means) -> tuple[str, ...]:
    nearer = f"{means.description_nearer} of {means.questions}"
    return (f"{means.line:.3f}", f"{means.description:.3f}", f"{means.difference:+.3f}", nearer)


def _rank_rows(name: str, compared: Compared) -> Iterator[tuple[str, ...]]:
    if not (compared.line and compared.description and compared.difference):
        return
    questions = str(compared.ranked)
    for by, ranks in (("lines", compared.line), ("descriptions", compared.description)):
        yield (name, questions, by, _figure(ranks.reciprocal), _figure(ranks.first))
    yield (name, questions, "difference", _figure(compared.difference, "+"), "-")


def _figure(figure: Figure, sign: str = "") -> str:
    return f"{figure.value:{sign}.3f} ({figure.low:{sign}.3f} to {figure.high:{sign}.3f})"
