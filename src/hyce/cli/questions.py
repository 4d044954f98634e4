"""hyce ask, hyce chat and hyce match."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from hyce.cli.catalogue import output_json, show_output
from hyce.cli.documents import hit_json, show_hits
from hyce.cli.terminal import Terminal
from hyce.config import Config
from hyce.errors import HyceError
from hyce.questions import QUESTION_HELP, check, read_questions
from hyce.records import Answer, CommandOutput, Match, Routing

SHOWN = 3
"""Passages shown by ask and chat where no model answers; `hyce search` and --json give all."""


def register(subparsers: Any, common: argparse.ArgumentParser) -> None:
    """Add the commands to the parser."""
    ask = subparsers.add_parser(
        "ask",
        parents=[common],
        help="answer a question, with sources",
        description="Answers a question from the indexed documentation and from commands that it runs now, "
        "and names its sources. Without a language model in the settings, it shows the best passages and the "
        "commands' output.",
    )
    ask.add_argument("question", metavar="QUESTION", help=QUESTION_HELP)
    ask.add_argument("--no-llm", action="store_true", help="ask no language model: passages and output only")
    ask.add_argument("--preview", action="store_true", help="show what a model would be sent; send nothing")
    ask.add_argument("--trace", action="store_true", help="show every stage with its time")
    ask.set_defaults(call=run_ask)

    chat = subparsers.add_parser(
        "chat",
        parents=[common],
        help="ask, as a conversation",
        description="The same as ask, as a conversation: a question a line, an empty line or Ctrl-D ends it.",
    )
    chat.add_argument("--no-llm", action="store_true", help="ask no language model: passages and output only")
    chat.set_defaults(call=run_chat)

    match = subparsers.add_parser(
        "match",
        parents=[common],
        help="show which commands ask would run; run nothing",
        description="Shows which commands of the catalogue ask would run for a question. Runs nothing.",
    )
    match.add_argument("question", metavar="QUESTION", help=QUESTION_HELP)
    match.add_argument(
        "--scheduler", choices=("slurm", "pbs"), help="choose as on a cluster with this batch system"
    )
    match.add_argument(
        "--assume-available", action="store_true", help="choose as if every command's program were installed"
    )
    match.set_defaults(call=run_match)


# -- ask -------------------------------------------------------------------------------------------------


def run_ask(arguments: argparse.Namespace, config: Config, terminal: Terminal) -> int:
    """Answer one question, or each of stdin's."""
    from hyce.assistant import open_assistant

    # A preview sends nothing, not even the question to a model that would choose the commands.
    use_model = not (arguments.no_llm or arguments.preview)
    served = _served(config)
    if arguments.preview:
        for difference in _differences(config):
            terminal.note(difference)
        if served:
            terminal.note(f"The question goes to the endpoint of {served}, to be searched for.")
    if arguments.question != "-":
        question = check(arguments.question)
        with open_assistant(config, use_model=use_model, report=terminal.note) as assistant:
            if arguments.preview:
                return _preview(assistant.preview(question), bool(served), terminal)
            return _answer_one(assistant, question, arguments, terminal)
    failed = False
    with open_assistant(config, use_model=use_model, report=terminal.note) as assistant:
        for asked in read_questions(sys.stdin.buffer):
            error = asked.error
            if error is None:
                try:
                    if arguments.preview:
                        messages = assistant.preview(asked.question)
                        terminal.json({"question": asked.question, "messages": messages})
                        continue
                    answer = assistant.answer(asked.question)
                    error_row = {"error": "; ".join(answer.notices)} if answer.failed else {}
                    terminal.json(answer_json(answer) | error_row)
                    failed = bool(_say_failure(answer, terminal)) or failed
                    continue
                except HyceError as problem:
                    error = str(problem)
            failed = True
            terminal.error(error)
            terminal.json({"question": asked.question, "error": error, "hits": [], "commands": []})
    return 1 if failed else 0


def _differences(config: Config) -> Iterator[str]:
    """What a preview does by itself that a model would be asked for."""
    if config.commands.matching == "llm":
        yield "The commands are hyce's own choice here; the model would be asked to choose them."
    if config.retrieval.transform != "none" or config.retrieval.decide:
        yield "hyce searches by itself here; the model would be asked to help with the search."


def _served(config: Config) -> str:
    """The sections whose endpoints a search asks; empty where it asks none."""
    sections = {"[model]": config.model.kind != "onnx", "[reranker]": config.retrieval.rerank == "endpoint"}
    return " and ".join(name for name, asked in sections.items() if asked)


def _preview(messages: list[dict[str, str]], served: bool, terminal: Terminal) -> int:
    if terminal.json_output:
        terminal.json({"messages": messages})
        return 0
    for message in messages:
        terminal.print(f"--- {message['role']} ---", style="bold")
        terminal.print(message["content"])
    if not messages:
        terminal.note("No model would be asked this: `hyce ask --no-llm` shows why and what is found.")
    terminal.note("Nothing was sent to a language model." if served else "Nothing was sent.")
    return 0


def _answer_one(assistant: Any, question: str, arguments: argparse.Namespace, terminal: Terminal) -> int:
    stream = terminal.write if terminal.is_rich else None
    answer: Answer = assistant.answer(question, on_text=stream)
    if terminal.json_output:
        terminal.json(answer_json(answer))
    else:
        show_answer(answer, terminal, streamed=stream is not None)
        if arguments.trace:
            _show_trace(answer, terminal)
    return _say_failure(answer, terminal)


def _show_trace(answer: Answer, terminal: Terminal) -> None:
    """Every stage with its time, and what a model had searched for."""
    for stage, milliseconds in answer.timings_ms.items():
        terminal.print(f"{stage:10} {milliseconds:8.1f} ms", style="dim")
    for text in answer.searched:
        terminal.print(f"searched for: {text}", style="dim")


def _say_failure(answer: Answer, terminal: Terminal) -> int:
    """The exit code; why the model could not answer is a message too, beside what was found."""
    if not answer.failed:
        return 0
    terminal.error(answer.notices[-1])
    return 1


def answer_json(answer: Answer) -> dict[str, Any]:
    """An answer as the command-line contract has it."""
    return {
        "question": answer.question,
        "answer": answer.text,
        "citations": [
            {
                "number": citation.number,
                "kind": citation.kind,
                "label": citation.label,
                "location": citation.location,
                "date": citation.date,
                "used": citation.used,
            }
            for citation in answer.citations
        ],
        "commands": [output_json(output) for output in answer.outputs],
        "passages": [hit_json(hit) for hit in answer.hits],
        "timings_ms": {stage: round(value, 1) for stage, value in answer.timings_ms.items()},
        "model": answer.model,
        "notices": list(answer.notices),
        "explanations": [
            {"code": each.code, "meaning": each.meaning, "command": each.output}
            for each in answer.explanations
        ],
        "refused": answer.refused,
        "ask_back": answer.ask_back,
        "help": answer.help,
        "searched": list(answer.searched),
    }


def show_answer(answer: Answer, terminal: Terminal, *, streamed: bool = False) -> None:
    """The answer for a person: text, what was run, sources, what to know, where to get help."""
    if streamed and (answer.text is not None or answer.failed):
        terminal.print()  # the end of the line that was written last
    for said in (answer.refused, answer.ask_back):
        if said:
            terminal.print(said, style="yellow")
    for notice in answer.notices[:-1] if answer.failed else answer.notices:
        terminal.print(f"Note: {notice}", style="yellow")
    if answer.failed:
        terminal.print("Note: The language model did not answer; this is what was found.", style="yellow")
    if answer.text is None:
        _show_found(answer, terminal)
    else:
        if not streamed:
            terminal.markdown(answer.text)
        if answer.withheld:
            terminal.print()
        _show_outputs(answer, answer.withheld, terminal)
        listed = show_sources(answer, terminal)
        if answer.hits and not listed:
            terminal.print("\nNearest passages (low confidence)", style="bold")
            show_hits(answer.hits[:SHOWN], terminal)
    if answer.help:
        terminal.print(f"Help from people: {answer.help}")


def _show_found(answer: Answer, terminal: Terminal) -> None:
    """What there is to answer from, where no model did: output with what its codes mean, then passages."""
    if answer.notices or answer.refused or answer.ask_back:
        terminal.print()
    _show_outputs(answer, answer.outputs, terminal)
    show_hits(answer.hits[:SHOWN], terminal)
    if len(answer.hits) > SHOWN:
        terminal.note(f"{len(answer.hits) - SHOWN} more passages: `hyce search QUESTION`")


def _show_outputs(answer: Answer, outputs: Sequence[CommandOutput], terminal: Terminal) -> None:
    """Each of them, with what its codes mean."""
    for output in outputs:
        terminal.print(answer.descriptions.get(output.id, output.id), style="italic")
        show_output(output, terminal)
        for each in answer.explanations:
            if each.output == output.id:
                terminal.print(f"{each.code}: {each.meaning}", style="green")
        terminal.print()


def show_sources(answer: Answer, terminal: Terminal) -> bool:
    """Each source that the answer cites, or all that it was given where no citations were asked for; whether
    there is any."""
    listed = [citation for citation in answer.citations if citation.used or not answer.cited]
    if not listed:
        return False
    terminal.print("\nSources" if answer.cited else "\nSources that the model was given", style="bold")
    for citation in listed:
        dated = f"  ({citation.date})" if citation.date else ""
        terminal.print(f"[{citation.number}] {citation.label}{dated}")
        terminal.print(f"    {citation.location}", style="cyan")
    terminal.print()
    return True


# -- chat ------------------------------------------------------------------------------------------------


def run_chat(arguments: argparse.Namespace, config: Config, terminal: Terminal) -> int:
    """Answer line by line until the input ends."""
    from hyce.answer import Turn
    from hyce.assistant import open_assistant

    turns: list[Turn] = []
    interactive = sys.stdin.isatty()
    failed = False
    with open_assistant(config, use_model=not arguments.no_llm, report=terminal.note) as assistant:
        if interactive:
            terminal.note("Ask a question. An empty line or Ctrl-D ends the conversation.")
        while (question := _next_question(interactive, terminal)) is not None:
            try:
                stream = terminal.write if terminal.is_rich else None
                answer = assistant.answer(question, turns=turns, on_text=stream)
            except HyceError as error:
                terminal.error(str(error))
                failed = failed or not interactive
                continue
            if terminal.json_output:
                terminal.json(answer_json(answer))
            else:
                show_answer(answer, terminal, streamed=stream is not None)
            failed = bool(_say_failure(answer, terminal)) or failed
            turns.append(Turn(question, answer.text or "", answer.jobs))
    return 1 if failed else 0


def _next_question(interactive: bool, terminal: Terminal) -> str | None:
    """The next line, or None at the end. On a terminal an empty line ends, in a pipe it is passed over."""
    if interactive:
        try:
            import readline  # noqa: F401  (gives input() its line editing)

            # The prompt is no result: it must not get into what stdout is redirected to.
            terminal.err.write("\n> ")
            terminal.err.flush()
            return input().strip() or None
        except EOFError:
            terminal.print()
            return None
    for line in sys.stdin:
        if line.strip():
            return line.strip()
    return None


# -- match -----------------------------------------------------------------------------------------------


def run_match(arguments: argparse.Namespace, config: Config, terminal: Terminal) -> int:
    """Show the commands for one question, or for each of stdin's."""
    from hyce.router import open_routing

    with open_routing(
        config,
        scheduler=arguments.scheduler,
        assume_available=arguments.assume_available,
        report=terminal.warn,
    ) as route:
        if arguments.question != "-":
            question = check(arguments.question)
            routing = route(question, None)
            if terminal.json_output:
                terminal.json(routing_json(question, routing))
            else:
                show_routing(routing, terminal)
            return 0
        failed = False
        for asked in read_questions(sys.stdin.buffer):
            error = asked.error
            if error is None:
                try:
                    terminal.json(routing_json(asked.question, route(asked.question, asked.site)))
                    continue
                except HyceError as problem:
                    error = str(problem)
            failed = True
            terminal.error(error)
            terminal.json({"question": asked.question, "error": error, "commands": []})
    return 1 if failed else 0


def routing_json(question: str, routing: Routing) -> dict[str, Any]:
    """A routing as the command-line contract has it."""

    def row(match: Any) -> dict[str, Any]:
        return {"id": match.command.id, "params": dict(match.params), "score": round(match.score, 4)}

    return {
        "question": question,
        "commands": [row(match) for match in routing.commands],
        "supporting": [row(match) for match in routing.supporting],
        "refused": routing.refused,
        "ask_back": routing.ask_back,
        "notices": list(routing.notices),
    }


def show_routing(routing: Routing, terminal: Terminal) -> None:
    """The commands for a person, with what each tells."""
    if routing.refused:
        terminal.print(routing.refused, style="yellow")
    elif routing.ask_back:
        terminal.print(routing.ask_back, style="yellow")
    elif not routing.commands:
        terminal.print("No command answers this; the documentation may: `hyce search QUESTION`.")
    for notice in routing.notices:
        terminal.print(f"Note: {notice}", style="yellow")
    for match in routing.commands:
        _show_match(match, f"{match.score:.2f}", terminal)
    for match in routing.supporting:
        _show_match(match, "why?", terminal)


def _show_match(match: Match, rank: str, terminal: Terminal) -> None:
    params = "".join(f" {name}={value}" for name, value in match.params.items())
    terminal.print(f"{rank}  {match.command.id}{params}", style="bold")
    terminal.print(f"      {match.command.description}")
