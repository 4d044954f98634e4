"""hyce index and hyce search."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hyce.cli.terminal import Terminal
from hyce.config import Config, index_folder
from hyce.errors import HyceError, UsageError
from hyce.questions import QUESTION_HELP, check, read_questions
from hyce.records import Hit, Search

if TYPE_CHECKING:
    from hyce.index.embedded import IndexWriter
    from hyce.indexing import IndexReport


def register(subparsers: Any, common: argparse.ArgumentParser) -> None:
    """Add the commands to the parser."""
    index = subparsers.add_parser(
        "index",
        parents=[common],
        help="add or update documentation",
        description="Adds documentation to the index, or updates it: unchanged pages are not embedded again, "
        "pages that are gone are removed. Without SOURCE all known sources are refreshed.",
    )
    index.add_argument(
        "sources",
        nargs="*",
        default=[],
        metavar="SOURCE",
        help="a folder or file of documentation, the address of a web site (https://docs.example.org/hpc/; "
        "what lies below it is read), or manual pages (man:sbatch,srun)",
    )
    index.add_argument(
        "--remove", action="append", default=[], metavar="SOURCE", help="forget a source and its pages"
    )
    index.set_defaults(call=run_index)

    search = subparsers.add_parser(
        "search",
        parents=[common],
        help="show the passages found for a question",
        description="Shows the passages of the indexed documentation that fit a question, best first.",
    )
    search.add_argument("question", metavar="QUESTION", help=QUESTION_HELP)
    search.add_argument(
        "-k", type=positive, metavar="N", help="how many passages (default: the setting retrieval.passages)"
    )
    search.set_defaults(call=run_search)


def positive(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 upwards")
    return int(text)


# -- index -----------------------------------------------------------------------------------------------


def run_index(arguments: argparse.Namespace, config: Config, terminal: Terminal) -> int:
    """Index the sources named, or refresh all; exit code 1 when a page failed."""
    from hyce.embed import open_embedder
    from hyce.index.embedded import open_writer
    from hyce.indexing import index_sources, passage_settings
    from hyce.languages import REMEDY as LANGUAGES
    from hyce.languages import unknown_to
    from hyce.match import open_matcher
    from hyce.sources.read import key

    embedder = open_embedder(config)
    with open_writer(
        index_folder(config, writing=True),
        embedder=embedder.fingerprint,
        dimensions=embedder.dimensions,
        passages=passage_settings(config),
        token_vectors=config.index.token_vectors and embedder.token_vectors,
    ) as writer:
        removed = 0
        for source in arguments.remove:
            if key(source) not in writer.sources():
                raise UsageError(f"{source}: not a source of this index; it knows {_listed(writer)}")
            removed += writer.remove_source(key(source))
        sources = arguments.sources or ([] if arguments.remove else writer.sources())
        if writer.rebuilding:
            terminal.warn(f"the whole index is built again: {writer.rebuilding}")
            # All of them: what isn't read again would be gone.
            named = {key(source) for source in sources}
            sources = [*sources, *(known for known in writer.sources() if known not in named)]
        if not sources and not arguments.remove:
            if writer.rebuilding:
                raise UsageError("its sources aren't known any more; name them all: `hyce index FOLDER...`")
            raise UsageError("the index has no source yet; name a folder or a web site: `hyce index SOURCE`")
        _tell_size(sources, embedder.dimensions, writer.token_vectors, config, terminal)
        with terminal.progress("indexing") as progress:
            report = index_sources(sources, writer, embedder, config, progress.update)
    _show_report(report, removed, terminal)
    foreign = unknown_to(config.model.name, report.languages)
    if foreign:
        terminal.warn(f"{foreign}. {LANGUAGES}")
    # Beside the passages, so that nobody who asks has to embed the catalogue first.
    open_matcher(config, embedder=embedder, report=terminal.note).keep(index_folder(config, writing=True))
    return 1 if report.failed else 0


def _listed(writer: IndexWriter) -> str:
    return ", ".join(writer.sources()) or "none"


def _tell_size(
    sources: Sequence[str], dimensions: int, token_vectors: bool, config: Config, terminal: Terminal
) -> None:
    """Say in advance what the index will take on disk, and stop when it can't fit."""
    from hyce.index.embedded import estimate_bytes
    from hyce.indexing import expect
    from hyce.sources.read import survey

    surveys = [survey(source) for source in sources]
    text = sum(found.bytes for found in surveys if found)
    if None in surveys and not text:
        return  # only reading the sources can tell
    chunks, tokens = expect(text, config.passages.size)
    size = estimate_bytes(chunks, tokens, dimensions, token_vectors)
    folder = index_folder(config, writing=True)
    free = shutil.disk_usage(next(p for p in (folder, *folder.parents) if p.exists())).free
    with_tokens = "with" if token_vectors else "without"
    terminal.note(
        f"{text / 1e6:.1f} MB of text; the index {with_tokens} token vectors takes about {size / 1e6:.0f} MB"
    )
    stored = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    if size - stored > 2 * free:
        raise HyceError(
            f"{folder}: about {size / 1e6:.0f} MB are needed and {free / 1e6:.0f} MB are free; "
            "set index.token_vectors = false or choose another folder with --index"
        )


def _show_report(report: IndexReport, removed: int, terminal: Terminal) -> None:
    for failure in report.failed:
        terminal.error(f"{failure.path}: {failure.reason}")
    for note in report.notes:
        terminal.warn(f"{note.path}: {note.reason}")
    if report.cost:
        terminal.note(report.cost)
    for failure in report.skipped:
        terminal.detail(f"left out: {failure.path}: {failure.reason}")
    summary = {
        "documents": report.documents,
        "chunks": report.chunks,
        "embedded": report.embedded,
        "unchanged": report.unchanged,
        "removed": report.removed + removed,
        "failed": len(report.failed),
        "seconds": round(report.seconds, 2),
    }
    if terminal.json_output:
        failures = [{"path": f.path, "reason": f.reason} for f in report.failed]
        notes = [{"path": f.path, "reason": f.reason} for f in report.notes]
        terminal.json({**summary, "failures": failures, "notes": notes})
        return
    terminal.print(
        f"{report.documents} pages, {report.chunks} passages in the index "
        f"({report.embedded} passages embedded, {report.unchanged} pages unchanged, "
        f"{summary['removed']} removed, {len(report.failed)} failed, {len(report.skipped)} left out) "
        f"in {report.seconds:.1f} s"
    )


# -- search ----------------------------------------------------------------------------------------------


def run_search(arguments: argparse.Namespace, config: Config, terminal: Terminal) -> int:
    """Print the passages found; for `-`, one JSON line a question."""
    if arguments.question != "-":
        question = check(arguments.question)
        with _searching(config, terminal) as search:
            found = search(question, arguments.k)
        if terminal.json_output:
            terminal.json({"question": question} | _search_json(found, config))
        else:
            show_hits(found.hits, terminal)
        return 0
    failed = False
    with _searching(config, terminal) as search:
        for asked in read_questions(sys.stdin.buffer):
            row: dict[str, Any] = {"question": asked.question}
            error = asked.error
            if error is None:
                try:
                    row |= _search_json(search(asked.question, arguments.k), config)
                except HyceError as problem:
                    error = str(problem)
            if error is not None:
                failed = True
                terminal.error(error)
                row |= {"error": error, "hits": []}
            terminal.json(row)
    return 1 if failed else 0


@contextmanager
def _searching(config: Config, terminal: Terminal) -> Iterator[Callable[[str, int | None], Search]]:
    """Searches as the settings say; what the reader must know is a warning."""
    from hyce.retrieve import open_retriever

    with open_retriever(config) as retriever:
        if config.retrieval.transform == "none":
            yield lambda question, k: Search(tuple(retriever.retrieve(question, k)))
            return
        from hyce.transform import open_search

        def told(question: str, k: int | None) -> Search:
            found = search(question, k)
            for notice in found.notices:
                terminal.warn(notice)
            for text in found.texts:
                terminal.detail(f"searched for: {text}")
            return found

        with open_search(config, retriever, terminal.warn) as search:
            yield told


def _search_json(found: Search, config: Config) -> dict[str, Any]:
    """The hits, and where a language model helped, what was searched for."""
    searched = {"searched": list(found.texts)} if config.retrieval.transform != "none" else {}
    return {"hits": [hit_json(hit) for hit in found.hits]} | searched


def hit_json(hit: Hit) -> dict[str, Any]:
    """A hit as the command-line contract has it."""
    passage = hit.passage
    return {
        "rank": hit.rank,
        "source": passage.source,
        "path": passage.path,
        "url": passage.url,
        "title": passage.title,
        "heading": " > ".join(passage.heading),
        "text": passage.text,
        "score": round(hit.score, 4),
        "date": passage.date,
    }


def show_hits(hits: Sequence[Hit], terminal: Terminal) -> None:
    """The passages for a person: where each is from, then its text."""
    if not hits:
        terminal.print("No passage was found.")
    for hit in hits:
        passage = hit.passage
        dated = f"  ({passage.date})" if passage.date else ""
        heading = " > ".join(passage.heading) or passage.title
        terminal.print(f"[{hit.rank}] {heading}{dated}", style="bold")
        terminal.print(f"    {passage.url or passage.path}", style="cyan")
        for line in passage.body.splitlines():
            terminal.print(f"    {line}")
        terminal.print()
