"""Citations of an answer, checked against the sources that the model was given.

Models write [1], [1, 2], [1][3], [1-3], [Source 2], 【1†L3】; all become [n]. Code is left alone:
`a[1]` and `#SBATCH --array=[1-3]` cite nothing.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from hyce.records import Citation, CommandOutput, Passage, Source, command_line

DROPPED = "The answer cited a source that it was not given; the citation was removed."
UNSUPPORTED = "The answer cites none of its sources; check it against them."

_NUMBERS = r"\d{1,3}(?:\s*[-\N{EN DASH}]\s*\d{1,3})?"
_NOUN = r"(?:(?:sources?|passages?|documents?|docs?|commands?|outputs?)[\s:#]*|[\^#]\s*)?"
_LIST = rf"{_NOUN}{_NUMBERS}(?:\s*(?:[,;]|and|&)\s*{_NOUN}{_NUMBERS})*"
# [1](address) and [1]: address would lead the reader elsewhere than to the source: the address goes.
_ADDRESS = r"\s*<?(?:[a-z][a-z0-9+.-]{1,20}:|www\.|[/#])"
_TARGET = rf"(?:\({_ADDRESS}[^)\n]*\)|:{_ADDRESS}[^\n]*)?"
# An array or a host list looks like a citation: --array=[1-3], cn[1-4,7].
_CITATION = re.compile(
    rf"(?P<blank>[ \t]*)(?P<glued>(?<=[\w=-])(?<!\s))?"
    rf"(?:\[\s*(?P<square>{_LIST})\s*\]{_TARGET}|【\s*(?P<lens>{_LIST})\s*(?:\N{{DAGGER}}[^】\n]*)?】)",
    re.IGNORECASE,
)
_CODE = re.compile(r"(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`)")
_FENCE = re.compile(r"[ \t>]*(?:[-*+]\s+|\d+[.)]\s+)?(`{3,}|~{3,})")
_WIDEST = 50
"""A range of more numbers than this is no citation."""


@dataclass(frozen=True, slots=True)
class Checked:
    """An answer whose citations all lead to a source."""

    text: str
    used: frozenset[int]
    dropped: bool
    """Whether a citation led nowhere and was removed."""


def check(text: str, numbers: Collection[int]) -> Checked:
    """The text with its citations in the form [n], without those of sources that were not given."""
    pieces: list[str] = []
    checker = Checker(numbers, pieces.append)
    checker.feed(text)
    checker.close()
    return Checked("".join(pieces), frozenset(checker.used), checker.dropped)


class Checker:
    """Checks a text that comes in pieces, and shows each part as soon as nothing can change it any more."""

    def __init__(self, numbers: Collection[int], show: Callable[[str], None]) -> None:
        self._numbers = frozenset(numbers)
        self._show = show
        self._pending = ""
        self._before = "\n"
        self._fence = ""
        self.used: set[int] = set()
        self.dropped = False

    def feed(self, piece: str) -> None:
        """Takes the next piece."""
        *lines, rest = (self._pending + piece).split("\n")
        for line in lines:
            self._emit(line + "\n")
        self._pending = rest
        whole = rest.rstrip(" \t")
        # Within a line, what ends outside of brackets and code is final; a blank goes with what follows.
        if whole and not self._fence and not re.search(r"[`~\[【]", whole):
            # The last word stays: what follows may be glued to it.
            done = re.match(r".*\S(?=[ \t]+\S)", whole)
            if done:
                self._emit(done[0])
                self._pending = rest[done.end() :]

    def close(self) -> None:
        """Shows what is left."""
        if self._pending:
            self._emit(self._pending)
            self._pending = ""

    def _emit(self, part: str) -> None:
        """Checks and shows a line, or the beginning of one."""
        fence = _FENCE.match(part) if self._before.endswith("\n") else None
        if self._fence:
            self._show(part)
            if fence and fence[1].startswith(self._fence) and not part[fence.end() :].strip():
                self._fence = ""
        elif fence and "`" not in part[fence.end() :]:
            self._fence = fence[1]
            self._show(part)
        else:
            self._show(self._prose(part))
        self._before = part

    def _prose(self, line: str) -> str:
        pieces, end = [], 0
        for code in _CODE.finditer(line):
            pieces += [self._linked(line[end : code.start()]), code[0]]
            end = code.end()
        return "".join([*pieces, self._linked(line[end:])])

    def _linked(self, text: str) -> str:
        # Removing one citation can make another: [[8]9].
        while (after := _CITATION.sub(self._replace, text)) != text:
            text = after
        return text

    def _replace(self, match: re.Match[str]) -> str:
        listed = match["square"] or match["lens"]
        glued = match["glued"] is not None and not match["blank"]
        before = match.string[match.start() - 1 : match.start()] if match.start() else ""
        if glued and (before in ("=", "-") or re.search(r"[-\N{EN DASH}]|,\S", listed)):
            return match[0]
        numbers = _numbers(listed)
        if not numbers:
            return match[0]
        given = [n for n in numbers if n in self._numbers]
        self.used.update(given)
        self.dropped = self.dropped or len(given) < len(numbers)
        return match["blank"] + "".join(f"[{n}]" for n in given) if given else ""


def records(sources: Sequence[Source], used: Collection[int]) -> tuple[Citation, ...]:
    """A citation for each source that the model was given."""
    return tuple(_record(source, source.number in used) for source in sources)


def unrun_command(text: str, outputs: Sequence[CommandOutput]) -> str | None:
    """A command that the text says was run, and that wasn't; None when there is no such claim.

    Looks for plain claims only: "I ran `x`", "`x` returned", "according to the output of `x`".
    """
    ran = [
        set(_words(command_line(o.argv, o.also))) for o in outputs if o.status in ("ok", "failed", "timeout")
    ]
    for claim in _CLAIM.finditer(text):
        command = next(group for group in claim.groups() if group)
        words = {
            word for word in _words(command) if "..." not in word and "\N{HORIZONTAL ELLIPSIS}" not in word
        }
        if words and not any(words <= known for known in ran):
            return " ".join(command.split())
    return None


_PROGRAMS = (
    "squeue|sbatch|scancel|scontrol|sacct|sacctmgr|sinfo|sprio|sshare|sreport|sstat|srun|salloc|seff|"
    "qstat|qsub|qdel|qalter|qhold|qrls|pbsnodes|pbs_rstat|lfs|nvidia-smi|chmod|chown|kill|rm"
)
_NAMED = rf"(?:the\s+)?(?:command\s+)?(?:`+([^`\n]+)`+|((?:{_PROGRAMS})\b(?:[ ]-\S+)*))"
_CLAIM = re.compile(
    rf"\b(?:I|we)(?:['\N{{RIGHT SINGLE QUOTATION MARK}}]ve|\s+have)?\s+(?:just\s+|already\s+|also\s+)?"
    rf"(?:ran|run|executed|invoked|called|issued|checked\s+with|queried)\s+{_NAMED}"
    rf"|`+([^`\n]+)`+\s+(?:just\s+)?(?:returned|printed|reported|showed)\b"
    rf"|\b(?:according\s+to|based\s+on|judging\s+by)\s+(?:the\s+)?(?:output|results?)\s+(?:of|from)\s+{_NAMED}",
    re.IGNORECASE,
)


def _words(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    # A semicolon joins the pipelines of one entry.
    return [word.rstrip(";") for word in words if word not in ("|", "$")]


def _numbers(listed: str) -> list[int]:
    """The numbers in "1, 3-5", in order; [] where a range runs backwards or is too wide."""
    numbers: list[int] = []
    for first, last in re.findall(r"(\d+)(?:\s*[-\N{EN DASH}]\s*(\d+))?", listed):
        low, high = int(first), int(last or first)
        if high < low or high - low > _WIDEST:
            return []
        numbers += [n for n in range(low, high + 1) if n not in numbers]
    return numbers


def _record(source: Source, used: bool) -> Citation:
    item = source.item
    if isinstance(item, CommandOutput):
        return Citation(
            source.number,
            "command",
            command_line(item.argv, item.also),
            _run(item),
            item.started[:10] or None,
            used,
        )
    return Citation(source.number, "passage", source.label, _place(item.passage), item.passage.date, used)


def _run(output: CommandOutput) -> str:
    ending = {"timeout": "stopped at its time limit"}.get(output.status, f"exit code {output.exit_code}")
    return f"run {output.started}, {ending}, {output.seconds:.2f} s"


def _place(passage: Passage) -> str:
    if passage.url:
        return passage.url
    return passage.path if "://" in passage.source else f"{passage.source.rstrip('/')}/{passage.path}"
