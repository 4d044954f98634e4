"""The values that pass between the stages. All frozen; no dict travels between stages."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# -- documentation: sources -> parse -> chunk -> index ---------------------------------------------------


@dataclass(frozen=True, slots=True)
class Document:
    """One page as a source delivers it, decoded but not yet rendered."""

    source: str
    """The source it belongs to: an absolute folder or file, or a URL. Key of the incremental index."""
    path: str
    """Where it is, relative to the source, with forward slashes."""
    media_type: str
    """One of text/markdown, text/x-rst, text/html, text/plain, text/x-script (a job script),
    application/pdf and text/troff (the last two with their text as HTML already)."""
    text: str
    digest: str
    """sha256 (hex) of everything its rendering depends on: its bytes, included files, site settings."""
    url: str | None = None
    """Where a person reads it, when the site's address is known."""
    title: str | None = None
    """A title known from outside the page, such as a navigation entry; the page's own wins."""
    date: str | None = None
    """Date of the last change, ISO 8601 (YYYY-MM-DD), when the source knows it; the page's own wins."""
    root: str | None = None
    """Folder below which files that the page includes may lie."""
    memo: str = ""
    """What the source wants to be told about the page next time, such as its ETag; nobody else reads it."""


@dataclass(frozen=True, slots=True)
class Unchanged:
    """A page that is as it was when it was indexed, as its source says without having read it anew."""

    path: str


@dataclass(frozen=True, slots=True)
class Failure:
    """A page that could not be indexed, or is left out, and why."""

    path: str
    reason: str
    skipped: bool = False
    """True where leaving it out is right (a hidden page, a stub): listed only with --verbose."""
    alone: bool = False
    """True where the path is a page's and no folder's: it tells nothing of the pages below it."""


@dataclass(frozen=True, slots=True)
class Note:
    """What is worth knowing about a source, or a folder of it, whose pages are indexed all the same."""

    path: str
    reason: str


BlockKind = Literal["paragraph", "list", "table", "code", "definition", "note"]


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a section that should stay together; `units` are the places where it may be cut."""

    kind: BlockKind
    units: tuple[str, ...]
    """The block's text in pieces that lose their meaning when cut: sentences or lines, list items,
    table rows. Joined with newlines they are the whole block."""
    head: str = ""
    """Repeated above each part when the block is cut: a table's column headings, a tab's name,
    an admonition's title."""


@dataclass(frozen=True, slots=True)
class Section:
    """The content below one heading, up to the next heading of any level."""

    heading: tuple[str, ...]
    """Headings from the page's title down to this section's own."""
    anchor: str
    """The fragment that leads to the heading; empty for the top of the page."""
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """A rendered page: what parse returns for a Document."""

    title: str
    sections: tuple[Section, ...]
    date: str | None = None
    language: str = ""
    """As the page declares it, such as de or pt-BR; empty where it doesn't."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage: what is embedded, found, and given to a model."""

    heading: tuple[str, ...]
    anchor: str
    body: str

    @property
    def text(self) -> str:
        """Heading path and body: all that a model is given of this passage."""
        return f"{' > '.join(self.heading)}\n{self.body}" if self.heading else self.body


# -- finding ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Embedding:
    """What an Embedder returns for one text."""

    vector: NDArray[np.float32]
    """Shape (dimensions,), length 1."""
    tokens: NDArray[np.float32]
    """Shape (number of tokens, dimensions), each of length 1: for late interaction. The special
    tokens at either end are left out. (0, dimensions) where token vectors were not asked for."""
    token_ids: tuple[int, ...] = ()
    """Vocabulary ids, one for each row of `tokens`."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A stored passage with all that is needed to show and cite it."""

    id: int
    source: str
    path: str
    url: str | None
    """Address of the page with the section's anchor, when the page's address is known."""
    title: str
    heading: tuple[str, ...]
    body: str
    date: str | None
    position: int = 0
    """Which passage of its page it is, counted from 0 in reading order."""

    @property
    def text(self) -> str:
        """Heading path and body: all that a model is given of this passage."""
        return f"{' > '.join(self.heading)}\n{self.body}" if self.heading else self.body


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that was found for a question."""

    rank: int
    """1 is the best."""
    score: float
    """The last stage's score. Higher is better; comparable within one ranking only."""
    passage: Passage
    similarity: float = 0.0
    """Cosine of question and passage, -1 to 1: comparable between questions."""


@dataclass(frozen=True, slots=True)
class Search:
    """The passages found for a question, and what a language model made of it on the way."""

    hits: tuple[Hit, ...]
    texts: tuple[str, ...] = ()
    """What was searched for beside the question: the model's words, never shown as an answer."""
    notices: tuple[str, ...] = ()
    """What the reader must know about the search."""
    model_ms: float = 0.0
    """Milliseconds for which the model was waited for."""


# -- commands --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Parameter:
    """A typed parameter of a command, taken from the question."""

    name: str
    pattern: str
    """Regular expression that the whole value must match."""
    description: str
    find: tuple[str, ...] = ()
    """Regular expressions that recognise it in a question, tried in order; group 1, or else the whole
    match, is the value."""
    default: str | None = None
    part: str = ""
    """Regular expression of the value's beginning that the program is given: Slurm's own listings write
    "48213_[2-9]", and its programs take "48213". Empty: the whole value."""
    instead: str = ""
    """Id of the entry that answers where the question holds no value: "my job" without a number is a
    question for the list of jobs. Empty: the user is asked for the value."""


Pipeline = tuple[tuple[str, ...], ...]
"""One argument list, or several joined by pipes."""


@dataclass(frozen=True, slots=True)
class Command:
    """An entry of the catalogue."""

    id: str
    description: str
    """The hypothetical command: what it tells, in a user's words."""
    questions: tuple[str, ...]
    argv: Pipeline
    """One argument list, or several joined by pipes. `{name}` stands for a parameter, `{me}` for the
    user's own name."""
    parameters: tuple[Parameter, ...] = ()
    requires: tuple[str, ...] = ()
    """Files or programs that must be present beside argv's own programs."""
    scheduler: Literal["slurm", "pbs"] | None = None
    timeout: float = 10.0
    """Seconds."""
    max_bytes: int = 65536
    """Output kept, in bytes, for stdout and stderr each."""
    reuse: float = 0.0
    """Seconds for which its output may be reused."""
    environment: tuple[str, ...] = ()
    """Names of the user's variables that it needs."""
    isolation: tuple[str, ...] = ()
    """Isolation that leaves its output unchanged: pid, user, mount, tmp, devices, network,
    no_new_privs."""
    may_leave_site: bool = False
    also: tuple[Pipeline, ...] = ()
    """Further argument lists that run after `argv`, whose output the view needs."""
    view: str = ""
    """Name of the function in hyce.views that makes the programs' output readable. Empty: as printed."""
    diagnosis: tuple[str, ...] = ()
    """Ids of entries that run beside it where the question asks why something is so, or doesn't happen."""
    after_failure: tuple[str, ...] = ()
    """The same where the question asks why something failed."""
    origin: str = ""
    """The file that defines it."""

    @property
    def stages(self) -> tuple[tuple[str, ...], ...]:
        """Every argument list that it runs, whatever pipeline it stands in."""
        return tuple(stage for pipeline in (self.argv, *self.also) for stage in pipeline)


@dataclass(frozen=True, slots=True)
class Match:
    """A command that would run for a question."""

    command: Command
    params: Mapping[str, str]
    """Values taken from the question, as they stand there; never defaults or the user's identity."""
    score: float
    """Similarity of the question to what the entry answers, -1 to 1."""


@dataclass(frozen=True, slots=True)
class Routing:
    """What matching a question to commands led to."""

    commands: tuple[Match, ...] = ()
    """Those that answer the question itself, best first."""
    supporting: tuple[Match, ...] = ()
    """Companions that a diagnosis runs beside them."""
    refused: str | None = None
    """Why nothing may run, when the question asks for what hyce never does."""
    ask_back: str | None = None
    """What the user has to say for a command to run, such as a job's number."""
    notices: tuple[str, ...] = ()
    """What the reader must know about the choice."""


def command_line(argv: Pipeline, also: tuple[Pipeline, ...] = ()) -> str:
    """An entry's argument lists as a person would type them."""
    return "; ".join(" | ".join(shlex.join(part) for part in pipeline) for pipeline in (argv, *also))


Status = Literal["ok", "failed", "timeout", "refused", "unavailable"]


@dataclass(frozen=True, slots=True)
class CommandOutput:
    """What running a command led to. `failed` means that it ran and ended with another exit code than 0."""

    id: str
    argv: Pipeline
    status: Status
    exit_code: int | None
    stdout: str
    stderr: str
    truncated: bool
    seconds: float
    layers: tuple[str, ...]
    """The safety layers that held."""
    started: str
    """When it ran: ISO 8601 with the offset from UTC."""
    reason: str = ""
    """Why, where status is refused, unavailable or timeout; empty otherwise."""
    also: tuple[Pipeline, ...] = ()
    """What ran beside argv for the entry's view."""
    reused: bool = False
    """Whether this is what an earlier run printed, at `started`, within the entry's reuse time."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """What a code in a command's output means: a reason why a job waits, an end state, an exit code."""

    code: str
    """As it stands in the output."""
    meaning: str
    """One or two sentences of ours, with what the user can do."""
    output: str
    """Id of the output that holds it."""


# -- answering -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Citation:
    """A source that an answer was given, under the number by which the answer cites it."""

    number: int
    kind: Literal["passage", "command"]
    label: str
    """Title and section, or the command line."""
    location: str
    """Link to the anchor or the file's path; for a command when it ran and how it ended."""
    date: str | None = None
    used: bool = False
    """Whether the answer cites it."""


@dataclass(frozen=True, slots=True)
class Source:
    """What a model is given under one number: a passage, or the output of a command that ran."""

    number: int
    item: Hit | CommandOutput
    label: str
    """Title and section, or the command line."""
    text: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The end of the way."""

    question: str
    text: str | None
    """The model's answer with citations [n] that were checked; None where no model was asked."""
    citations: tuple[Citation, ...]
    outputs: tuple[CommandOutput, ...]
    hits: tuple[Hit, ...]
    model: str | None
    timings_ms: Mapping[str, float]
    notices: tuple[str, ...] = ()
    """What the reader must know: a dropped citation, a cut passage, no model, low confidence."""
    reasons: str | None = None
    """The model's chain of thought, where it was asked for; never part of the answer."""
    refused: str | None = None
    help: str | None = None
    """Where to get help from people."""
    descriptions: Mapping[str, str] = field(default_factory=dict)
    """What each command tells, by its id."""
    failed: bool = False
    """The model was asked and could not answer; the sources are there all the same."""
    explanations: tuple[Explanation, ...] = ()
    """Of codes in the outputs."""
    ask_back: str | None = None
    """What the user has to say for a command to run."""
    jobs: tuple[str, ...] = ()
    """Numbers of the jobs that the outputs show, in their order."""
    withheld: tuple[CommandOutput, ...] = ()
    """The outputs that the model did not see: they have to be shown beside its answer."""
    cited: bool = True
    """Whether the model was asked to cite its sources; else all that it was given have to be listed."""
    searched: tuple[str, ...] = ()
    """What was searched for beside the question."""
    sources: tuple[Source, ...] = ()
    """What the model was given, as it was given it; empty where no model was asked."""


@dataclass(frozen=True, slots=True)
class Turn:
    """An earlier question of a conversation and the answer that was shown."""

    question: str
    answer: str
    """Empty where no model answered: then the question only helps to find passages for the next one."""
    jobs: tuple[str, ...] = ()
    """Numbers of the jobs that were shown with it, in their order."""


Message = dict[str, str]
"""One message to a language model, as it goes over the wire: {"role": ..., "content": ...}."""
