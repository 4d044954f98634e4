"""The whole flow: a question in, an answer with checked sources out."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import zip_longest

from hyce import citations, prompts, reply
from hyce.config import Config
from hyce.context import Context, build
from hyce.endpoint import Location, location
from hyce.errors import EndpointError
from hyce.llm import ChatClient
from hyce.questions import check
from hyce.records import Answer, Citation, CommandOutput, Hit, Match, Message, Routing, Turn

__all__ = ["Turn", "answer", "preview"]

Retrieve = Callable[[str], Sequence[Hit]]
Route = Callable[[str], Routing]
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
    match: Route,
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
    with clock.stage("retrieve"):
        hits = _find(question, retrieve, turns)
    with clock.stage("match"):
        routing = match(question)
    with clock.stage("run"):
        matches = _allowed(routing, config)
        outputs = _run_all(matches, run)
    with clock.stage("model"):
        if routing.refused:
            # What was asked for is not done: the model isn't asked to help with it either.
            written = _Written()
        elif client is None:
            written = _Written(notices=(_no_model(config), *((_FAR,) if _far(hits, outputs) else ())))
        elif _far(hits, outputs):
            written = _nothing_near(on_text)
        else:
            context = _context(question, hits, outputs, matches, config, client.location, turns)
            written = _write(context, client, config, on_text)
    return Answer(
        question=question,
        text=written.text,
        citations=written.citations,
        outputs=outputs,
        hits=hits,
        model=written.model,
        timings_ms=clock.stop(),
        notices=written.notices,
        reasons=written.reasons,
        refused=routing.refused,
        help=config.site.help or None,
        descriptions={item.command.id: item.command.description for item in matches},
        failed=written.failed,
    )


def preview(
    question: str,
    *,
    config: Config,
    retrieve: Retrieve,
    match: Route,
    run: Run,
    turns: Sequence[Turn] = (),
) -> list[Message]:
    """The messages that answer() would send; [] where it would ask no model.

    Runs the commands and sends nothing. Without an endpoint, it is what one at llm.location would be sent.
    """
    question = check(question)
    where: Location = location(config) if config.llm.base_url else config.llm.location
    hits = _find(question, retrieve, turns)
    routing = match(question)
    matches = _allowed(routing, config)
    outputs = _run_all(matches, run)
    if routing.refused or _far(hits, outputs):
        return []
    context = _context(question, hits, outputs, matches, config, where, turns)
    return list(context.messages) if context.answerable else []


def _find(question: str, retrieve: Retrieve, turns: Sequence[Turn]) -> tuple[Hit, ...]:
    """The passages for the question; in a conversation, in turn with those for it and the one before.

    "And on the other cluster?" says nothing by itself, but "thanks, and how do I get a GPU?" says all.
    """
    hits = tuple(retrieve(question))
    if not turns:
        return hits
    together = retrieve(f"{turns[-1].question}\n{question}")
    in_turn = [hit for pair in zip_longest(hits, together) for hit in pair if hit is not None]
    first = {(hit.passage.path, hit.passage.heading): hit for hit in reversed(in_turn)}
    kept = [hit for hit in in_turn if first[hit.passage.path, hit.passage.heading] is hit]
    return tuple(replace(hit, rank=rank) for rank, hit in enumerate(kept[: len(hits)], 1))


def _far(hits: Sequence[Hit], outputs: Sequence[CommandOutput]) -> bool:
    """Whether nothing was found that could bear on the question."""
    return not outputs and bool(hits) and max(hit.similarity for hit in hits) < NEAR


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


def _context(  # noqa: PLR0917
    question: str,
    hits: Sequence[Hit],
    outputs: Sequence[CommandOutput],
    matches: Sequence[Match],
    config: Config,
    where: Location,
    turns: Sequence[Turn],
) -> Context:
    today = datetime.date.today().isoformat()
    said = [turn for turn in turns if turn.answer]
    return build(question, hits, outputs, matches, config=config, where=where, today=today, turns=said)


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
