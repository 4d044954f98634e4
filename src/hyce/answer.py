"""The whole flow: a question in, an answer with checked sources out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from hyce import citations, prompts, reply
from hyce.config import Config, llm_setting
from hyce.context import Context, build
from hyce.endpoint import Location, location
from hyce.errors import EndpointError
from hyce.gather import Clock, Found, Stages, gather
from hyce.llm import LanguageModel
from hyce.questions import check
from hyce.records import Answer, Citation, CommandOutput, Message, Source, Turn

__all__ = ["Turn", "answer", "preview"]

Show = Callable[[str], None]

OWN_KNOWLEDGE = "Written from the model's own knowledge; no source was looked up for it."

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
    sources: tuple[Source, ...] = ()


def answer(
    question: str,
    *,
    config: Config,
    stages: Stages,
    client: LanguageModel | None,
    turns: Sequence[Turn] = (),
    on_text: Show | None = None,
) -> Answer:
    """The answer to a question.

    config: with the answering model's settings as [llm]. client: None for passages and command output only.
    turns: the conversation so far. on_text: gets the answer piece by piece, its citations checked. Where the
    endpoint fails, the answer holds what was found, `failed` and a notice. Raises UsageError for a question
    that is none, before anything runs.
    """
    question = check(question)
    clock = Clock()
    found = gather(question, config, stages, turns, clock)
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
        jobs=found.jobs,
        withheld=written.withheld,
        cited=config.llm.prompt == "cited",
        searched=found.search.texts,
        sources=written.sources,
    )


def preview(
    question: str,
    *,
    config: Config,
    stages: Stages,
    turns: Sequence[Turn] = (),
) -> list[Message]:
    """The messages that answer() would send; [] where it would ask no model.

    Runs the commands and sends nothing. Without an endpoint, it is what one at llm.location would be sent.
    """
    where: Location = location(config) if config.llm.base_url else config.llm.location
    found = gather(check(question), config, stages, turns, Clock())
    if found.routing.refused or found.far:
        return []
    context = _context(found, config, where, turns)
    return list(context.messages) if context.answerable else []


def _asked(
    found: Found,
    config: Config,
    client: LanguageModel | None,
    turns: Sequence[Turn],
    on_text: Show | None,
) -> _Written:
    """What the model writes, where one is to be asked."""
    if found.routing.refused:
        # What was asked for is not done: the model isn't asked to help with it either.
        return _Written()
    if client is None:
        return _Written(notices=(_no_model(config), *((_FAR,) if found.far else ())))
    if found.far:
        return _nothing_near(on_text)
    return _write(_context(found, config, client.location, turns), client, config, on_text)


def _nothing_near(on_text: Show | None) -> _Written:
    """The plain word that there is no answer; no model is asked, which might make one up."""
    if on_text:
        on_text(reply.NO_ANSWER)
    return _Written(reply.NO_ANSWER, notices=(_FAR,))


def _context(found: Found, config: Config, where: Location, turns: Sequence[Turn]) -> Context:
    return build(
        found.question,
        found.hits,
        found.outputs,
        found.matches,
        config=config,
        where=where,
        today=found.today.isoformat(),
        turns=[turn for turn in turns if turn.answer],
        explanations=found.explanations,
        further=found.remarks,
        unsourced=not found.looked_up,
    )


def _no_model(config: Config) -> str:
    if config.llm.base_url and config.llm.model:
        return "No language model was asked; this is what was found."
    return "No language model is configured (base_url and model in [llm]); this is what was found."


def _write(context: Context, client: LanguageModel, config: Config, on_text: Show | None) -> _Written:
    """Asks the model and checks what it wrote. An endpoint that fails becomes a notice."""
    if not context.answerable:
        return _without_sources(context, config, on_text)
    numbers = {source.number for source in context.sources}
    try:
        ask = _ask_reasoned if config.llm.chain_of_thought and not context.unsourced else _ask
        said, model, notices = ask(context, client, citations.Checker(numbers, on_text or _hide))
    except EndpointError as error:
        return _Written(notices=(*context.notices, str(error)), failed=True, sources=context.sources)
    checked = citations.check(said.text, numbers)
    return _Written(
        checked.text,
        citations.records(context.sources, checked.used),
        model,
        said.reasons,
        (*context.notices, *notices, *_remarks(said, checked, context, config)),
        withheld=context.withheld,
        sources=context.sources,
    )


def _without_sources(context: Context, config: Config, on_text: Show | None) -> _Written:
    """Says why the model isn't asked."""
    if not context.fits:
        size = f"{llm_setting(config, 'context_tokens')} is {config.llm.context_tokens}"
        reason = f"The question is too long for the model ({size}); this was found."
        return _Written(notices=(*context.notices, reason), failed=True)
    if context.withheld:
        return _Written(notices=(*context.notices, "No model was asked: there is nothing that it may see."))
    if on_text:
        on_text(reply.NO_ANSWER)
    return _Written(reply.NO_ANSWER, notices=(*context.notices, "Nothing was found; no model was asked."))


def _ask(
    context: Context, client: LanguageModel, checker: citations.Checker
) -> tuple[reply.Reply, str, tuple[str, ...]]:
    """The model's reply, shown by way of the checker while it is written."""
    opening = reply.Opening(checker.feed)
    completion = client.complete(context.messages, on_text=opening.feed)
    opening.close()
    checker.close()
    said = reply.read(completion.text)
    if not said.text:
        raise _unanswered(client)
    return said, completion.model, completion.notices


def _ask_reasoned(
    context: Context, client: LanguageModel, checker: citations.Checker
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
        raise _unanswered(client)
    checker.feed(said.text)
    checker.close()
    return said, completion.model, (*completion.notices, *notices)


def _unanswered(client: LanguageModel) -> EndpointError:
    longest = llm_setting(client.config, "max_output_tokens")
    return client.error("it ended before it answered", f"raise {longest}, or use another model")


def _remarks(
    said: reply.Reply, checked: citations.Checked, context: Context, config: Config
) -> Iterator[str]:
    """What the reader must know about the answer itself."""
    if checked.dropped:
        yield citations.DROPPED
    if context.unsourced:
        yield OWN_KNOWLEDGE
    elif not said.answered:
        yield "The sources are only the nearest ones that were found (low confidence)."
    elif not checked.used and config.llm.prompt == "cited":
        yield citations.UNSUPPORTED
    ran = [source.item for source in context.sources if isinstance(source.item, CommandOutput)]
    unrun = citations.unrun_command(checked.text, ran)
    if unrun:
        yield f"The answer speaks of `{unrun}` as if it had been run; it was not."


def _hide(_: str) -> None:
    """Shows nothing."""
