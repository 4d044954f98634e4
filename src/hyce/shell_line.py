"""A command line as a person types it in a shell -> argument lists joined by pipes, or why it can't be one.

Nothing is run and nothing is guessed. A shell does more with a line than an entry of the catalogue can: what
has the same meaning without one is converted (quotes, pipes, $USER, ~), the rest is left to a person.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hyce.catalogue import PLACEHOLDER
from hyce.catalogue.loader import why_not_allowed
from hyce.records import Pipeline


@dataclass(frozen=True, slots=True)
class Line:
    """A line that was converted."""

    argv: Pipeline
    notes: tuple[str, ...] = ()
    """What was changed on the way, where a reader would not expect it."""


class _LeftError(Exception):
    """Why a person has to look at the line."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of a word, and the kind of quotes around it: `'`, `"`, or none."""

    text: str
    quote: str = ""


_Word = tuple[_Piece, ...]

_TOKEN = re.compile(
    r"(?P<blank>\s+)"
    r"|(?P<dropped>(?<!\S)2>\s*(?:/dev/null|&1)(?=[\s|]|$))"
    r"|'(?P<single>[^']*)'"
    r'|"(?P<double>(?:\\.|[^"\\])*)"'
    r"|\\(?P<escaped>.)"
    r"|(?P<substituted>\$\([^()]*\)|`[^`]*`)"
    r"|(?P<operator>\|\||\|&|&&|[|;&<>()])"
    r"|(?P<plain>[^\s'\"\\`|;&<>()]+)",
    re.DOTALL,
)

_IDENTITY = {
    "$USER": "{me}",
    "$LOGNAME": "{me}",
    "$HOME": "{home}",
    "$UID": "{uid}",
    "$PWD": "{cwd}",
    "$(whoami)": "{me}",
    "$(logname)": "{me}",
    "$(id -un)": "{me}",
    "$(id -u)": "{uid}",
    "$(pwd)": "{cwd}",
}
"""What the shell puts in place of these, by the placeholder that means the same."""
_EXPANSION = re.compile(r"\$\([^()]*\)|`[^`]*`|\$\{[^}]*\}?|\$\w+|\$[@*#?$!-]|\$\(")

_BUILTINS = re.compile(
    "alias|bg|bind|builtin|caller|cd|command|compgen|complete|declare|dirs|disown|eval|exec|exit|export|fc|fg"
    "|getopts|hash|help|history|jobs|let|local|logout|mapfile|popd|pushd|read|readonly|return|set|shift|shopt"
    "|source|suspend|times|trap|type|typeset|ulimit|umask|unalias|unset|wait|for|while|until|if|case|function"
    r"|select|[.:!{]"
)
_MODULE = {"module", "ml"}
_IN_FOLDER = {"ls", "du", "tree"}
"""Programs that look at the folder they are started in, unless they are told another."""
_ON_FILES = _IN_FOLDER | {"find", "df", "stat", "file", "cat", "head", "tail", "wc"}
_CHANGING = {
    "find": re.compile(r"-(exec|execdir|ok|okdir|delete|fprint\w*|fls)"),
    "pbsnodes": re.compile(r"-[^F\W]*[ocrC]\w*"),
    "sort": re.compile(r"-\w*[oT].*|--(o|co|t).*"),
    "tree": re.compile(r"-o.*"),
    "date": re.compile(r"-u?s.*|--s.*|\d{8,12}(\.\d\d)?"),
    "sdiag": re.compile(r"-r|--r.*"),
    "nvidia-smi": re.compile(r"-r|--gpu-reset"),
}
"""Programs that look things up, but for these words."""
_LOOKING = {
    "scontrol": re.compile(
        r"(?:(?:-[adhoQv]+|--(?:all|details|hide|oneliner|quiet|verbose))\n)*"
        r"(?:show|ping|listpids|pidinfo|version|write\nbatch_script\n[^\n]+\n-)(?:\n|$)"
    ),
    "sacctmgr": re.compile(
        r"(?:(?:-[nopPQsv]+|--(?:noheader|oneliner|parsable2?|quiet|associations|verbose))\n)*(?:show|list)(?:\n|$)"
    ),
}
"""How their arguments begin, a line each, where these only look things up. They take each of their words in
capitals and cut short, too: what changes something can't be listed."""


def read_line(text: str) -> Line | str:
    """The line as argument lists, or, as a text, why a person has to look at it."""
    try:
        stages, notes = _stages(text)
        if stages == [[]]:
            return "it is empty"
        argv = []
        for words in stages:
            if not words:
                return "a pipe has nothing on one of its sides"
            argv.append(_arguments(words))
        argv[0] = _placed(argv[0], notes)
        return Line(tuple(argv), tuple(notes))
    except _LeftError as left:
        return str(left)


def _stages(text: str) -> tuple[list[list[_Word]], list[str]]:
    """The words of each stage, and what was dropped."""
    stages: list[list[_Word]] = [[]]
    notes: list[str] = []
    pieces: list[_Piece] = []
    for kind, value in _tokens(text.strip()):
        if kind in ("blank", "operator", "dropped") and pieces:
            stages[-1].append(tuple(pieces))
            pieces = []
        if kind == "dropped":
            notes.append(f"{value} left out: error messages are kept apart in any case")
        elif kind == "operator":
            _refuse_operator(value)
            stages.append([])
        elif kind != "blank":
            quote = {"single": "'", "escaped": "'", "double": '"'}.get(kind, "")
            pieces.append(_Piece(value, quote))
    if pieces:
        stages[-1].append(tuple(pieces))
    return stages, notes


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    if "\0" in text or len(text.splitlines()) > 1:
        raise _LeftError("it has several lines")
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise _LeftError("a quote is opened and not closed")
        position = found.end()
        yield str(found.lastgroup), found[str(found.lastgroup)]


def _refuse_operator(operator: str) -> None:
    reasons = {
        "<": "it reads from a file by redirection; give the file's name as an argument where the program can",
        ">": "it redirects output to a file",
        "|&": "it pipes error messages into the next program",
        "&": "it starts something in the background",
        "(": "it starts a subshell",
        ")": "it starts a subshell",
    }
    if operator != "|":
        raise _LeftError(reasons.get(operator, f"it joins commands by `{operator}`; make one entry of each"))


def _arguments(words: list[_Word]) -> tuple[str, ...]:
    """A stage's arguments with placeholders for what the shell would fill in."""
    _refuse_assignment(words[0])
    program = _value(words[0])
    if program in _MODULE:
        raise _LeftError(
            "module is a shell function, no program; the catalogue's own modules.* entries do what it does"
        )
    if _BUILTINS.fullmatch(program):
        raise _LeftError(f"{program} is a part of the shell, no program, and tells about that shell alone")
    if "/" in program:
        raise _LeftError(
            f"{program} is named with its folder; write the program's name alone, and add the folder to "
            "policy.program_folders where only root can change it"
        )
    refused = why_not_allowed(program)
    if refused:
        raise _LeftError(refused)
    arguments = [program, *map(_value, words[1:])]
    changing, looking = _CHANGING.get(program), _LOOKING.get(program)
    if (changing and any(changing.fullmatch(argument) for argument in arguments[1:])) or (
        looking and not looking.match("\n".join(arguments[1:]))
    ):
        raise _LeftError(f"{program} with these arguments changes something; entries only look things up")
    return tuple(arguments)


def _refuse_assignment(word: _Word) -> None:
    if not word[0].quote and (found := re.match(r"(\w+)\+?=", word[0].text)):
        raise _LeftError(f"it sets the variable {found[1]}; use the program's option for it, if there is one")


def _value(word: _Word) -> str:
    """What the shell makes of a word. The result's placeholders are those that stand for the user."""
    parts = []
    for number, piece in enumerate(word):
        text = piece.text
        if not piece.quote:
            text = _unquoted(text, first=number == 0, last=number == len(word) - 1)
        elif piece.quote == '"':
            text = re.sub(r'\\([\\"$`])', lambda found: _MARKS.get(found[1], found[1]), text)
        parts.append(text if piece.quote == "'" else _EXPANSION.sub(_expanded, text))
    value = "".join(parts)
    if found := PLACEHOLDER.search(value):
        raise _LeftError(f"{found[0]} in an entry is a parameter, or stands for the user; word it otherwise")
    for meaning, mark in _MARKS.items():
        value = value.replace(mark, meaning)
    return value


_MARKS = {"$": "\0d", "`": "\0t", "{me}": "\0m", "{home}": "\0h", "{uid}": "\0u", "{cwd}": "\0c"}
"""What these stand as until the whole word is read, so that nothing in the line is taken for one of them. A
line holds no NUL."""


def _unquoted(text: str, *, first: bool, last: bool) -> str:
    """A part of a word that stands outside quotes, with its home directory."""
    if first and text.startswith("#"):
        raise _LeftError("it holds a comment")
    if text.endswith("$") and not last:
        raise _LeftError("it holds a text in $'...'; put it in plain quotes")
    if re.search(r"[*?\[]", re.sub(r"\$\{[^}]*\}|\$[*?]", "", text)):
        raise _LeftError(
            f"{text!r} is a file pattern for the shell; put it in quotes if the program reads it"
        )
    if re.search(r"(?<!\$)\{[^}]*(,|\.\.)", text):
        raise _LeftError(f"{text!r} is a list in braces for the shell; write its parts out")
    if first and text.startswith("~"):
        if not (text.startswith("~/") or (text == "~" and last)):
            raise _LeftError(f"{text!r} is another user's home directory")
        return _MARKS["{home}"] + text[1:]
    return text


def _expanded(found: re.Match[str]) -> str:
    name = found[0]
    if name.startswith("`"):
        name = f"$({name[1:-1]})"
    elif name.startswith("${"):
        name = f"${name[2:-1]}"
    name = re.sub(r"^\$\(\s*(.*?)\s*\)$", lambda inner: f"$({' '.join(inner[1].split())})", name)
    if name in _IDENTITY:
        return _MARKS[_IDENTITY[name]]
    if name.startswith("$("):
        raise _LeftError(
            f"{found[0]} runs another command inside; make it an entry of its own, or a parameter"
        )
    raise _LeftError(f"{found[0]} is a variable of the user's shell; write its value, or make it a parameter")


def _placed(arguments: tuple[str, ...], notes: list[str]) -> tuple[str, ...]:
    """The first stage with the user's folder named where a shell's is meant: entries are started in /."""
    program, *given = arguments
    if program == "pwd":
        if given:
            raise _LeftError("pwd tells the folder that it is started in, which for an entry is /; use {cwd}")
        notes.append("an entry is started in /, so the user's folder is printed")
        return ("echo", "{cwd}")
    if program not in _ON_FILES:
        return arguments
    rest = [re.sub(r"^\.(?=/|$)", "{cwd}", argument) for argument in given]
    operands = _operands(program, rest)
    for operand in operands:
        if not operand.startswith(("/", "{home}", "{cwd}")):
            raise _LeftError(
                f"{operand!r} may be a path in the user's folder, and entries are started in /; write the "
                "whole path, with {cwd} or {home} where it begins there"
            )
    if program in _IN_FOLDER and not operands:
        rest.append("{cwd}")
    if rest != given:
        notes.append("an entry is started in /, so the user's folder is named: {cwd}")
    return (program, *rest)


def _operands(program: str, arguments: Sequence[str]) -> list[str]:
    """The arguments that may be paths; numbers belong to options."""
    if program == "find":
        starts = itertools.takewhile(lambda argument: not argument.startswith("-"), arguments)
        return list(starts) or ["."]
    return [argument for argument in arguments if not argument.startswith("-") and not argument.isdecimal()]
