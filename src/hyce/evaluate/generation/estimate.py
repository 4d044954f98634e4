"""What `hyce evaluate generate` would ask for: calls and tokens by role. Nothing is sent, no command runs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from hyce.catalogue import load_for
from hyce.config import Config, index_folder
from hyce.evaluate.calls import Calls
from hyce.evaluate.generation import filter as filtering
from hyce.evaluate.generation import writing
from hyce.evaluate.generation.filter import NEEDS_BOTH, Filter
from hyce.evaluate.generation.generate import candidates, open_models
from hyce.evaluate.generation.sample import Sample, Taking, Wanted, in_order, pool, sample
from hyce.evaluate.generation.writing import Writer
from hyce.evaluate.journal import Journal
from hyce.evaluate.records import UNANSWERABLE
from hyce.evaluate.running.cost import Cost
from hyce.index.embedded import open_index
from hyce.records import Command, CommandOutput, Hit, Passage

_OUTPUT = "word " * 300
"""In place of an output that nobody knows yet."""
_QUESTION = "How many hours may a job run on the cluster that is asked about here?"
_WRITTEN, _RATED = 80, 150
"""Tokens of a question with its answer, and of ratings with their reasons."""


def estimate(wanted: Wanted, config: Config) -> tuple[Sample, dict[str, Cost]]:
    """What would be asked about, with other passages as the nearest ones, and what that takes, by role.

    Second tries don't count; where one source of two is enough, the other need not be asked about. Raises
    HyceError where the settings name no model, or one that may not be used.
    """
    with (
        open_models(config) as models,
        open_index(index_folder(config)) as index,
        Journal(Path(os.devnull)) as nowhere,
    ):
        held = pool(index)
        some = index.passages(in_order(held.names, wanted.seed, "estimate")[:20])

        def nearest(_: str, of: Passage | None) -> Passage | None:
            return next((p for p in some if of is None or p.path != of.path), None)

        def found(_: str, most: int) -> Sequence[Hit]:
            return [Hit(1, 0.0, passage) for passage in some[:most]]

        taking = Taking(index, held, nearest, _unseen, models.may_not)
        sampled = sample(wanted, candidates(config, load_for(config)), taking)
        calls = Calls(nowhere)
        writer, rater = Writer(models.generation, calls), Filter(models.filter, calls, found)
        written = [writer.tokens(task) for task in sampled.tasks]
        rated = []
        for task in sampled.tasks:
            material = rater.material(_QUESTION, task)
            alone = [[one] for one in material] if task.kind in NEEDS_BOTH else []
            in_part = task.kind == UNANSWERABLE
            rated += [rater.tokens(_QUESTION, each, in_part=in_part) for each in (material, *alone)]
    return sampled, {
        writing.ROLE: Cost(len(written), sum(written), _WRITTEN * len(written)),
        filtering.ROLE: Cost(len(rated), sum(rated), _RATED * len(rated)),
    }


def _unseen(command: Command) -> CommandOutput:
    return CommandOutput(command.id, command.argv, "ok", 0, _OUTPUT, "", False, 0.0, (), "")
