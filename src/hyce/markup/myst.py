"""MyST, GitHub alerts and Docusaurus boxes -> Markdown as MkDocs Material knows it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hyce.markup.includes import Place
from hyce.markup.words import words
from hyce.records import Document

_MYST = re.compile(
    r"^[ \t]*(?:`{3,}|:{3,}|~{3,})[ \t]*\{[A-Za-z]|\{[A-Za-z][\w:.+-]*\}`|^\([\w:. -]+\)=[ \t]*$",
    re.MULTILINE,
)
_BOXES = re.compile(r"^[ \t]*:{3,}[ \t]*[a-z]|^[ \t]*>[ \t]*\[![A-Za-z]+\]", re.MULTILINE)
_OPEN = re.compile(r"^( *)(`{3,}|:{3,}|~{3,})[ \t]*\{([A-Za-z][\w:.+-]*)\}[ \t]*(.*)$")
_PLAIN_BOX = re.compile(
    r"^( *)(:{3,})[ \t]*(note|tip|info|warning|danger|caution|important|success|details|hint)\b[ \t]*"
    r"(?:\[(.*)\]|(.*))$"
)
_FENCE = re.compile(r"^( *)(`{3,}|~{3,})")
_ALERT = re.compile(r"^( *)>[ \t]*\[!([A-Za-z]+)\][-+]?[ \t]*(.*)$")
_ROLE = re.compile(r"(?<![\\`])\{([A-Za-z][\w:.+-]*)\}(`+)(?!`)(.+?)(?<!`)\2(?!`)")

_NOTES = words("note warning attention caution danger error hint important tip seealso todo")
_FOLDED = words("dropdown collapse toggle details")
_TABS = words("tab tab-item group-tab tabbed")
_CODE = words("code code-block sourcecode code-cell console prompt mermaid graphviz parsed-literal terminal")
_DROPPED = words(
    "toctree contents tableofcontents index highlight autosummary automodule autoclass meta "
    "bibliography iframe youtube"
)
_RST = words("list-table csv-table glossary eval-rst table raw versionadded versionchanged deprecated only")


@dataclass(frozen=True, slots=True)
class _Directive:
    name: str
    title: str
    options: dict[str, str]
    lines: list[str]
    indent: str


def to_markdown(text: str, document: Document | None = None) -> str:
    """The text with MyST's directives, roles and targets turned into what the converter knows."""
    if not _MYST.search(text) and not _BOXES.search(text):
        return text
    return "\n".join(_convert(text.split("\n"), _place(document), bool(_MYST.search(text)), 0))


def _place(document: Document | None) -> Place | None:
    if document is None or document.root is None:
        return None
    page = Path(document.source)
    return Place((page / document.path).parent if page.is_dir() else page.parent, Path(document.root))


def _convert(lines: list[str], place: Place | None, myst: bool, depth: int) -> list[str]:
    out: list[str] = []
    i = 0
    while i < len(lines):
        line = lines[i]
        opening = _OPEN.match(line) or _PLAIN_BOX.match(line)
        if opening and depth < 20:
            end = _closing(lines, i, opening[2])
            title = next((part for part in opening.groups()[3:] if part), "")
            directive = _read(opening[3].lower(), title, lines[i + 1 : end], opening[1])
            out += ["", *_written(directive, place, depth), ""]
            i = end + 1
            continue
        fence = _FENCE.match(line)
        if fence:
            end = _closing(lines, i, fence[2])
            out += lines[i : end + 1]
            i = end + 1
            continue
        alert = _ALERT.match(line)
        if alert:
            i = _alert(lines, i, alert, out)
            continue
        if not (myst and re.match(r"\([\w:. -]+\)=[ \t]*$|%(?:\s|$)|\+{3}(?:\s|$)", line)):
            out.append(_ROLE.sub(_role, line) if myst else line)
        i += 1
    return out


def _closing(lines: list[str], start: int, marks: str) -> int:
    close = re.compile(rf"^\s*{re.escape(marks[0])}{{{len(marks)},}}\s*$")
    return next((i for i in range(start + 1, len(lines)) if close.match(lines[i])), len(lines))


def _alert(lines: list[str], start: int, alert: re.Match[str], out: list[str]) -> int:
    """A GitHub alert (`> [!NOTE]`) as an admonition; the number of the line after it."""
    title = f' "{alert[3]}"' if alert[3].strip() else ""
    out += ["", f"{alert[1]}!!! {alert[2].lower()}{title}"]
    i = start + 1
    while i < len(lines) and lines[i].lstrip().startswith(">"):
        out.append(alert[1] + "    " + re.sub(r"^\s*> ?", "", lines[i]))
        i += 1
    out.append("")
    return i


def _read(name: str, title: str, lines: list[str], indent: str) -> _Directive:
    """The directive with its options (`:key: value` lines, or YAML between `---`) taken off."""
    lines = [line.removeprefix(indent) for line in lines]
    options: dict[str, str] = {}
    if lines and lines[0].strip() == "---" and "---" in (line.strip() for line in lines[1:]):
        end = next(i for i, line in enumerate(lines[1:], 1) if line.strip() == "---")
        for line in lines[1:end]:
            key, _, value = line.partition(":")
            options[key.strip()] = value.strip()
        lines = lines[end + 1 :]
    while lines and (match := re.match(r"\s*:([\w-]+):[ \t]*(.*)$", lines[0])):
        options[match[1]] = match[2].strip()
        lines = lines[1:]
    return _Directive(name, title.strip(), options, lines, indent)


def _written(directive: _Directive, place: Place | None, depth: int) -> list[str]:
    """The directive's lines in the Markdown of MkDocs Material."""
    name, title = directive.name, directive.title
    if name in _DROPPED:
        return []
    if name in _CODE:
        lines = _code(directive.lines, directive.options.get("caption", ""))
    elif name in _RST:
        lines = _by_docutils(directive, place)
    elif name == "include":
        path = place.find(title) if place else None
        if path is None or place is None or depth > 8:
            return []
        lines = _convert(place.read(path).split("\n"), place.within(path.parent), True, depth + 4)
    elif name == "literalinclude":
        lines = _included_code(directive, place)
    else:
        lines = _boxed(directive, _convert(directive.lines, place, True, depth + 1))
    return [directive.indent + line for line in lines]


def _boxed(directive: _Directive, body: list[str]) -> list[str]:
    name, title = directive.name, directive.title
    if name in _NOTES or name in ("info", "success"):
        kind = {"seealso": "See also", "todo": "To do"}.get(name, name.capitalize())
        head = f'!!! {name} "{kind}"'
        return [head, *_shifted([title, "", *body] if title and name in _NOTES else body)]
    if name == "admonition":
        kind = (directive.options.get("class") or "note").split()[0]
        return [f"!!! {kind} {_quoted(title)}", *_shifted(body)]
    if name in _FOLDED:
        return [f"??? details {_quoted(title or 'Details')}", *_shifted(body)]
    if name in _TABS:
        return [f"=== {_quoted(title)}", *_shifted(body)]
    if name in ("figure", "image"):
        alt = directive.options.get("alt", "")
        return [f"![{alt}](x)" if alt else "", "", *body]
    shown = title if title and not re.fullmatch(r"[\d\s]+|\S*[/\\]\S*|\S+\.\w{2,4}", title) else ""
    return [*([f"**{shown}**", ""] if shown else []), *body]


def _quoted(title: str) -> str:
    return '"' + title.replace('"', "'") + '"'


def _shifted(lines: list[str]) -> list[str]:
    return ["    " + line if line.strip() else "" for line in lines]


def _code(lines: list[str], caption: str) -> list[str]:
    longest = max((len(match[0]) for line in lines if (match := re.match(r"\s*`{3,}", line))), default=2)
    marks = "`" * max(3, longest + 1)
    head = f'{marks}text title="{caption}"' if caption else marks
    return [head, *lines, marks]


def _included_code(directive: _Directive, place: Place | None) -> list[str]:
    from hyce.markup.rst_files import selected

    path = place.find(directive.title) if place else None
    if path is None or place is None:
        return []
    return _code(
        selected(place.read(path).rstrip("\n").split("\n"), dict(directive.options)),
        directive.options.get("caption", ""),
    )


def _by_docutils(directive: _Directive, place: Place | None) -> list[str]:
    """What is reStructuredText within, as HTML on one line: so it stays where it stands."""
    from hyce.markup import rst

    if directive.name == "eval-rst":
        source = "\n".join(directive.lines)
    else:
        options = [f"   :{key}: {value}" for key, value in directive.options.items()]
        body = [f"   {line}" for line in directive.lines]
        source = "\n".join([f".. {directive.name}:: {directive.title}", *options, "", *body])
    html = rst.to_html(source, place)
    return [re.sub(r"\s*\n\s*", " ", html)] if "<pre" not in html else html.split("\n")


def _role(match: re.Match[str]) -> str:
    from hyce.markup.rst_roles import shown

    name, text = match[1].lower(), match[3]
    literal: Callable[[str], str] = "`{}`".format
    if name in ("octicon", "fa", "fas", "fab", "far") or name.startswith("material-"):
        return ""
    if name in ("command", "program", "file", "code", "option", "envvar", "kbd", "samp"):
        return literal(shown(name, text))
    return shown(name, text)
