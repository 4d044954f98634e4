"""What a model is given: which sources, cut to fit into its context."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hyce import prompts, tokens
from hyce.citations import check
from hyce.config import Config
from hyce.endpoint import Location
from hyce.llm import output_tokens
from hyce.privacy import redact
from hyce.prompts import fenced
from hyce.records import CommandOutput, Explanation, Hit, Match, Message, Source, Turn, command_line
from hyce.tokens import Length, longest

_RAN = ("ok", "failed", "timeout")
_SMALLEST = 48
"""Tokens. A remainder of a source that is smaller than this is of no use to a model."""


@dataclass(frozen=True, slots=True)
class Context:
    """The messages to send, the sources in them by their numbers, and what the reader must know."""

    messages: tuple[Message, ...]
    sources: tuple[Source, ...]
    notices: tuple[str, ...]
    fits: bool
    """False when the question leaves no room for any source."""
    withheld: tuple[CommandOutput, ...]
    """Those that were left out because they may not leave the site."""
    unsourced: bool = False
    """Whether the model is asked to reply without any source, because none is needed."""

    @property
    def answerable(self) -> bool:
        """Whether there is anything to ask a model about."""
        return self.fits and (self.unsourced or bool(self.sources))


def build(
    question: str,
    hits: Sequence[Hit],
    outputs: Sequence[CommandOutput],
    matches: Sequence[Match],
    *,
    config: Config,
    where: Location,
    today: str,
    turns: Sequence[Turn] = (),
    explanations: Sequence[Explanation] = (),
    further: Sequence[str] = (),
    unsourced: bool = False,
) -> Context:
    """The messages for a question, within llm.context_tokens less the longest answer.

    For an endpoint outside the site, outputs whose entry may not leave it are left out, and the rest
    is redacted, the question and earlier turns too. further: our own remarks for the model. unsourced:
    nothing was looked up, because nothing is needed.
    """
    clean = redact if where == "outside" else str
    length = token_length(config)
    split = _split(outputs, matches, where)
    remarks = [clean(remark) for remark in (*further, *split.remarks)]

    def messages(sources: Sequence[Source], kept: Sequence[Turn]) -> tuple[Message, ...]:
        asked, site = clean(question), config.site
        if unsourced:
            return tuple(
                prompts.unsourced(asked, today=today, centre=site.name, cluster=site.cluster, turns=kept)
            )
        return tuple(
            prompts.answer(
                asked,
                sources,
                today=today,
                centre=site.name,
                cluster=site.cluster,
                turns=kept,
                remarks=remarks,
                chain_of_thought=config.llm.chain_of_thought,
                cited=config.llm.prompt == "cited",
            )
        )

    room = config.llm.context_tokens - output_tokens(config) - measure(messages((), ()), length)
    # The numbers in earlier answers belong to earlier sources.
    cleaned = [Turn(clean(turn.question), clean(check(turn.answer, ()).text)) for turn in turns]
    kept = _latest(cleaned, room // 3, length)
    forgotten = len(turns) - len(kept)
    left_out = [f"{forgotten} earlier turns were left out: they don't fit into the model's context."]
    room -= sum(_turn_length(turn, length) for turn in kept)
    candidates = [
        Source(n, output, clean(command_line(output.argv, output.also)), clean(text))
        for n, (output, text) in enumerate(split.texts(explanations), 1)
    ]
    candidates += [
        Source(n, hit, passage_label(hit), hit.passage.text)
        for n, hit in enumerate(hits, len(candidates) + 1)
    ]
    sources, cuts = fit(candidates, room, length)
    fits = room >= 0 and bool(sources or not candidates)
    notices = (*split.notices, *(left_out if forgotten else ()), *cuts)
    return Context(messages(sources, kept), tuple(sources), notices, fits, split.kept_back, unsourced)


@dataclass(frozen=True, slots=True)
class _Split:
    """The outputs by what becomes of them."""

    sent: tuple[CommandOutput, ...]
    kept_back: tuple[CommandOutput, ...]
    """These may not leave the site."""
    not_run: tuple[CommandOutput, ...]
    descriptions: Mapping[str, str]

    @property
    def remarks(self) -> Iterator[str]:
        """What the model is told of those that it doesn't see."""
        for output in self.kept_back:
            yield prompts.withheld(self.descriptions.get(output.id, ""))
        for output in self.not_run:
            yield prompts.not_run(self.descriptions.get(output.id, ""), output.reason or output.status)

    @property
    def notices(self) -> Iterator[str]:
        """What the user is told."""
        for output in self.kept_back:
            line = command_line(output.argv, output.also)
            yield f"The output of `{line}` may not leave the site; the model did not see it."
        for output in self.not_run:
            line = command_line(output.argv, output.also)
            yield f"`{line}` did not run: {output.reason or output.status}."

    def texts(self, explanations: Sequence[Explanation]) -> Iterator[tuple[CommandOutput, str]]:
        """What the model is given of those that it sees."""
        for output in self.sent:
            meanings = [each for each in explanations if each.output == output.id]
            yield output, prompts.output_text(output, self.descriptions.get(output.id, ""), meanings)


def _split(outputs: Sequence[CommandOutput], matches: Sequence[Match], where: Location) -> _Split:
    commands = {match.command.id: match.command for match in matches}
    may_send = {name: where == "onsite" or command.may_leave_site for name, command in commands.items()}
    ran = [output for output in outputs if output.status in _RAN]
    sent = tuple(output for output in ran if may_send.get(output.id, where == "onsite"))
    return _Split(
        sent,
        tuple(output for output in ran if output not in sent),
        tuple(output for output in outputs if output.status not in _RAN),
        {name: command.description for name, command in commands.items()},
    )


def fit(candidates: Sequence[Source], room: int, length: Length) -> tuple[list[Source], list[str]]:
    """The sources that fit into `room` tokens, numbered from 1, and notices of what was cut or left out.

    Command outputs come first and share what the passages don't need, at least half; a long one loses
    its middle. Passages follow by rank; the one that doesn't fit any more loses its end.
    """
    outputs = [s for s in candidates if isinstance(s.item, CommandOutput)]
    passages = [s for s in candidates if not isinstance(s.item, CommandOutput)]
    wanted = sum(length(fenced(s)) + 2 for s in passages)
    shares = _shares([length(fenced(s)) + 2 for s in outputs], max(room // 2, room - wanted))
    kept: list[Source] = []
    cut, left_out = [], 0
    for source, share in [*zip(outputs, shares, strict=True), *((s, None) for s in passages)]:
        limit = room if share is None else share
        source = dataclasses.replace(source, number=len(kept) + 1)  # noqa: PLW2901
        fitted = _cut(source, limit, length, middle=share is not None)
        if fitted is None:
            left_out += 1
            continue
        if fitted.text != source.text:
            cut.append(source.number)
            if share is None:
                # What follows a passage that had to be cut ranks lower: nothing of it is squeezed in.
                room = 0
        kept.append(fitted)
        room = max(0, room - length(fenced(fitted)) - 2)
    notices = [
        f"Source [{number}] was cut to fit into the model's context (llm.context_tokens)." for number in cut
    ]
    if left_out:
        notices.append(
            f"{left_out} of {len(candidates)} sources were left out: they don't fit into the model's context "
            "(llm.context_tokens)."
        )
    return kept, notices


def token_length(config: Config) -> Length:
    """Measures a text in the model's tokens with llm.tokenizer, or else estimates them too high."""
    return tokens.token_length(config.llm.tokenizer, "llm.tokenizer")


def measure(messages: Sequence[Message], length: Length) -> int:
    """Tokens of a conversation, with eight for the frame of each message."""
    return sum(length(message["content"]) + 8 for message in messages)


def cut_middle(text: str, room: int, length: Length) -> str:
    """The text's beginning and end, within `room` tokens, with a mark where the middle was left out."""
    return longest(len(text), lambda kept: _without_middle(text, kept), room, length)


def cut_end(text: str, room: int, length: Length) -> str:
    """The text's beginning, within `room` tokens, with a mark where it was cut."""
    return longest(len(text), lambda kept: f"{text[:kept].rstrip()}\n[cut here]", room, length)


def passage_label(hit: Hit) -> str:
    """Title and section of a passage; a heading path that begins with the title says it once."""
    title, heading = hit.passage.title, hit.passage.heading
    parts = heading if heading and (not title or heading[0] == title) else (title, *heading)
    return " > ".join(part for part in parts if part) or hit.passage.path


def _without_middle(text: str, kept: int) -> str:
    head, tail = kept - kept // 3, kept // 3
    end = text[len(text) - tail :] if tail else ""
    return f"{text[:head].rstrip()}\n[... {len(text) - kept} characters left out here ...]\n{end.lstrip()}"


def _cut(source: Source, room: int, length: Length, *, middle: bool) -> Source | None:
    """The source within `room` tokens; None when too little of it would be left."""
    if length(fenced(source)) + 2 <= room:
        return source
    frame = length(fenced(dataclasses.replace(source, text=""))) + 6
    if room - frame < _SMALLEST:
        return None
    text = (cut_middle if middle else cut_end)(source.text, room - frame, length)
    fitted = dataclasses.replace(source, text=text)
    return fitted if text and length(fenced(fitted)) + 2 <= room else None


def _shares(wanted: Sequence[int], room: int) -> list[int]:
    """How many tokens each gets: the small ones what they want, the large ones equal parts of the rest."""
    shares = [0] * len(wanted)
    left = len(wanted)
    for index in sorted(range(len(wanted)), key=wanted.__getitem__):
        shares[index] = min(wanted[index], room // left)
        room -= shares[index]
        left -= 1
    return shares


def _turn_length(turn: Turn, length: Length) -> int:
    return length(turn.question) + length(turn.answer) + 16


def _latest(turns: Sequence[Turn], room: int, length: Length) -> list[Turn]:
    """The latest turns that fit into `room` tokens, oldest first."""
    kept: list[Turn] = []
    for turn in reversed(turns):
        room -= _turn_length(turn, length)
        if room < 0:
            break
        kept.insert(0, turn)
    return kept
