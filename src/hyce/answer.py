"""The whole flow: a question in, an answer with checked sources out."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import zip_longest

from hyce import citations, explain, prompts, reply
from hyce.config import Config
from hyce.context import Context, build
from hyce.endpoint import Location, location
from hyce.errors import EndpointError
from hyce.llm import ChatClient
from hyce.questions import check
from hyce.records import Answer, Citation, CommandOutput, Explanation, Hit, Match, Message, Routing, Turn
from hyce.references import Reference, jobs_shown, resolve

__all__ = ["Turn", "answer", "preview"]

Retrieve = Callable[[str], Sequence[Hit]]
Route = Callable[[str, Sequence[Hit]], tuple[Routing, Sequence[Hit]]]
"""(question, passages) -> what runs, and the passages that stay beside it."""
Run = Callable[[Match], CommandOutput]
Show = Callable[[str], None]

_AT_ONCE = 4
"""Commands run at the same time, at most."""

NEAR = 0.3
"""Cosine from which a passage may bear on a question at all. Of 258 questions about three centres and the
sample documentation, the best passage of 1 in 100 was below it; of questions about cooking or football
nearly every one."""

_FAR = "No passage is near the question; the nearest ones are shown with low confidence."


@dataclass(frozen=True, slots=True)
class _Written:
    """What the model wrote, checked."""

    text: str | None = None
    citations: tuple[Citation, ...] = ()
    model: str | None = None
    reasons: str | None = None
    notices: tuple[str, ...] = ()
    failed: bool = False
    withheld: tuple[CommandOutput, ...] = ()


@dataclass(slots=True)
class _Clock:
    """Milliseconds of each stage."""

    timings: dict[str, float] = field(default_factory=dict)
    start: float = field(default_factory=time.perf_counter)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        begin = time.perf_counter()
        yield
        self.timings[name] = (time.perf_counter() - begin) * 1000

    def stop(self) -> dict[str, float]:
        self.timings["total"] = (time.perf_counter() - self.start) * 1000
        return self.timings


def answer(
    question: str,
    *,
    config: Config,
    retrieve: Retrieve,
    route: Route,
    run: Run,
    client: ChatClient | None,
    turns: Sequence[Turn] = (),
    on_text: Show | None = None,
) -> Answer:
    """The answer to a question.

    client: None for passages and command output only. turns: the conversation so far. on_text: gets
    the answer piece by piece, its citations checked. Where the endpoint fails, the answer holds what
    was found, `failed` and a notice. Raises UsageError for a question that is none, before anything runs.
    """
    question = check(question)
    clock = _Clock()
    found = _gather(question, config, retrieve, route, run, turns, clock)
    with clock.stage("model"):
        written = _asked(found, config, client, turns, on_text)
    routing = found.routing
    return Answer(
        question=question,
        text=written.text,
        citations=written.citations,
        outputs=found.outputs,
        hits=found.hits,
        model=written.model,
        timings_ms=clock.stop(),
        notices=(*found.notices, *written.notices),
        reasons=written.reasons,
        refused=routing.refused,
        help=config.site.help or None,
        descriptions={item.command.id: item.command.description for item in found.matches},
        failed=written.failed,
        explanations=found.explanations,
        ask_back=routing.ask_back,
        jobs=jobs_shown(routing.commands, found.outputs),
        withheld=written.withheld,
    )


def preview(
    question: str,
    *,
    config: Config,
    retrieve: Retrieve,
    route: Route,
    run: Run,
    turns: Sequence[Turn] = (),
) -> list[Message]:
    """The messages that answer() would send; [] where it would ask no model.

    Runs the commands and sends nothing. Without an endpoint, it is what one at llm.location would be sent.
    """
    where: Location = location(config) if config.llm.base_url else config.llm.location
    found = _gather(check(question), config, retrieve, route, run, turns, _Clock())
    if found.routing.refused or _far(found):
        return []
    context = _context(found, config, where, turns)
    return list(context.messages) if context.answerable else []


@dataclass(frozen=True, slots=True)
class _Found:
    """All that there is to answer from."""

    question: str
    hits: tuple[Hit, ...]
    routing: Routing
    matches: tuple[Match, ...]
    outputs: tuple[CommandOutput, ...]
    explanations: tuple[Explanation, ...]
    reference: Reference | None

    @property
    def notices(self) -> tuple[str, ...]:
        """What the reader must know about how it was found."""
        found = self.reference
        meant = (f'"{found.phrase}" was taken to be job {found.job}.',) if found else ()
        return (*meant, *self.routing.notices)

    @property
    def remarks(self) -> tuple[str, ...]:
        """The same for the model."""
        meant = (prompts.meant(self.reference.phrase, self.reference.job),) if self.reference else ()
        asked = (prompts.asked_back(self.routing.ask_back),) if self.routing.ask_back else ()
        return (*meant, *asked)


def _gather(  # noqa: PLR0917
    question: str,
    config: Config,
    retrieve: Retrieve,
    route: Route,
    run: Run,
    turns: Sequence[Turn],
    clock: _Clock,
) -> _Found:
    """Passages, commands and their output, and what the codes in it mean."""
    with clock.stage("retrieve"):
        hits: Sequence[Hit] = _find(question, retrieve, turns)
    with clock.stage("match"):
        reference = resolve(question, turns)
        routing, hits = route(reference.question if reference else question, hits)
        matches = _allowed(routing, config)
    with clock.stage("run"):
        outputs = _run_all(matches, run)
    with clock.stage("explain"):
        explanations = explain.explanations(outputs)
        about = explain.search_text(explanations)
        hits = _merged(hits, retrieve(about)) if about else tuple(hits)
    return _Found(question, tuple(hits), routing, matches, outputs, explanations, reference)


def _find(question: str, retrieve: Retrieve, turns: Sequence[Turn]) -> tuple[Hit, ...]:
    """The passages for the question; in a conversation, in turn with those for it and the one before.

    "And on the other cluster?" says nothing by itself, but "thanks, and how do I get a GPU?" says all.
    """
    hits = tuple(retrieve(question))
    if not turns:
        return hits
    return _merged(hits, retrieve(f"{turns[-1].question}\n{question}"))


def _merged(hits: Sequence[Hit], others: Sequence[Hit]) -> tuple[Hit, ...]:
    """Two rankings in turn, without what stands twice, as long as the first."""
    in_turn = [hit for pair in zip_longest(hits, others) for hit in pair if hit is not None]
    kept: dict[int, Hit] = {}
    for hit in in_turn:
        kept.setdefault(hit.passage.id, hit)
    return tuple(replace(hit, rank=rank) for rank, hit in enumerate([*kept.values()][: len(hits)], 1))


def _asked(
    found: _Found,
    config: Config,
    client: ChatClient | None,
    turns: Sequence[Turn],
    on_text: Show | None,
) -> _Written:
    """What the model writes, where one is to be asked."""
    if found.routing.refused:
        # What was asked for is not done: the model isn't asked to help with it either.
        return _Written()
    if client is None:
        return _Written(notices=(_no_model(config), *((_FAR,) if _far(found) else ())))
    if _far(found):
        return _nothing_near(on_text)
    return _write(_context(found, config, client.location, turns), client, config, on_text)


def _far(found: _Found) -> bool:
    """Whether nothing was found that could bear on the question."""
    hits = found.hits
    asked_back = found.routing.ask_back is not None
    return not found.outputs and not asked_back and bool(hits) and max(h.similarity for h in hits) < NEAR


def _nothing_near(on_text: Show | None) -> _Written:
    """The plain word that there is no answer; no model is asked, which might make one up."""
    if on_text:
        on_text(reply.NO_ANSWER)
    return _Written(reply.NO_ANSWER, notices=(_FAR,))


def _allowed(routing: Routing, config: Config) -> tuple[Match, ...]:
    """The commands to run: none where the routing refuses or commands are switched off."""
    if routing.refused or not config.commands.enabled:
        return ()
    return (*routing.commands, *routing.supporting)


def _run_all(matches: Sequence[Match], run: Run) -> tuple[CommandOutput, ...]:
    """The outputs, in the order of the matches; several commands wait at the same time."""
    if not matches:
        return ()
    with ThreadPoolExecutor(min(_AT_ONCE, len(matches))) as pool:
        return tuple(pool.map(run, matches))


def _context(found: _Found, config: Config, where: Location, turns: Sequence[Turn]) -> Context:
    return build(
        found.question,
        found.hits,
        found.outputs,
        found.matches,
        config=config,
        where=where,
        today=datetime.date.today().isoformat(),
        turns=[turn for turn in turns if turn.answer],
        explanations=found.explanations,
        further=found.remarks,
    )


def _no_model(config: Config) -> str:
    if config.llm.base_url and config.llm.model:
        return "No language model was asked; this is what was found."
    return "No language model is configured (base_url and model in [llm]); this is what was found."


def _write(context: Context, client: ChatClient, config: Config, on_text: Show | None) -> _Written:
    """Asks the model and checks what it wrote. An endpoint that fails becomes a notice."""
    if not context.answerable:
        return _without_sources(context, config, on_text)
    numbers = {source.number for source in context.sources}
    try:
        ask = _ask_reasoned if config.llm.chain_of_thought else _ask
        said, model, notices = ask(context, client, citations.Checker(numbers, on_text or _hide))
    except EndpointError as error:
        return _Written(notices=(*context.notices, str(error)), failed=True)
    checked = citations.check(said.text, numbers)
    return _Written(
        checked.text,
        citations.records(context.sources, checked.used),
        model,
        said.reasons,
        (*context.notices, *notices, *_remarks(said, checked, context)),
        withheld=context.withheld,
    )


def _without_sources(context: Context, config: Config, on_text: Show | None) -> _Written:
    """Says why the model isn't asked."""
    if not context.fits:
        size = config.llm.context_tokens
        reason = f"The question is too long for the model (llm.context_tokens is {size}); this was found."
        return _Written(notices=(*context.notices, reason), failed=True)
    if context.withheld:
        return _Written(notices=(*context.notices, "No model was asked: there is nothing that it may see."))
    if on_text:
        on_text(reply.NO_ANSWER)
    return _Written(reply.NO_ANSWER, notices=(*context.notices, "Nothing was found; no model was asked."))


def _ask(
    context: Context, client: ChatClient, checker: citations.Checker
) -> tuple[reply.Reply, str, tuple[str, ...]]:
    """The model's reply, shown by way of the checker while it is written."""
    opening = reply.Opening(checker.feed)
    completion = client.complete(context.messages, on_text=opening.feed)
    opening.close()
    checker.close()
    said = reply.read(completion.text)
    if not said.text:
        raise client.error("it ended before it answered", "raise llm.max_output_tokens, or use another model")
    return said, completion.model, completion.notices


def _ask_reasoned(
    context: Context, client: ChatClient, checker: citations.Checker
) -> tuple[reply.Reply, str, tuple[str, ...]]:
    """The same with reasons as JSON; nothing is shown before the answer is known. One more try where none can
    be made out; after that the reply counts as plain text."""
    completion = client.complete(context.messages)
    said = reply.read_reasoned(completion.text)
    notices: tuple[str, ...] = ()
    if said is None:
        completion = client.complete(prompts.again(context.messages, completion.text))
        said = reply.read_reasoned(completion.text)
    if said is None:
        said = reply.read(completion.text)
        notices = ("The model did not keep to the form for its reasons; its reply is shown as it is.",)
    if not said.text:
        raise client.error("it ended before it answered", "raise llm.max_output_tokens, or use another model")
    checker.feed(said.text)
    checker.close()
    return said, completion.model, (*completion.notices, *notices)


def _remarks(said: reply.Reply, checked: citations.Checked, context: Context) -> Iterator[str]:
    """What the reader must know about the answer itself."""
    if checked.dropped:
        yield citations.DROPPED
    if not said.answered:
        yield "The sources are only the nearest ones that were found (low confidence)."
    elif not checked.used:
        yield citations.UNSUPPORTED
    ran = [source.item for source in context.sources if isinstance(source.item, CommandOutput)]
    unrun = citations.unrun_command(checked.text, ran)
    if unrun:
        yield f"The answer speaks of `{unrun}` as if it had been run; it was not."


def _hide(_: str) -> None:
    """Shows nothing."""
