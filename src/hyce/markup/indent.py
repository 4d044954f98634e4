"""Markdown as its author meant it, in the indentation that Python-Markdown understands.

Python-Markdown wants four spaces for each level of a list, an empty line before a list, and fences that
are closed where they were opened. Authors write two or three spaces, no empty line, and forget fences.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_ITEM = re.compile(r"^( *)([-*+]|\d{1,9}[.)])( +)(?=\S)")
_BOX = re.compile(r"^( *)(?:!!!|\?\?\?\+?|===[!+]{0,2})[ \t]*(?=[\w\"'-]).*$|^( *)///? ?[\w-].*$")
_UNQUOTED = re.compile(r"^( *(?:!!!|\?\?\?\+?) ?)([\w-]+) +(?!\"|(?:inline|end|left|right)\b)([^\"]+?) *$")
_NOTE = re.compile(r"^( *)(?:\[\^[^\]]+\]:|:(?= {2,}\S)|:   )")
_FENCE = re.compile(r"^( *)(`{3,}|~{3,})(.*)$")
_RULE = re.compile(r"^ {0,3}([-*_])(?: *\1){2,} *$")
_DELIMITER = re.compile(r"^ *\|?(?: *:?-{2,}:? *\|)+ *(?::?-+:?)? *\|? *$")
DEEPEST = 20
"""Lists within lists; deeper items stand beside each other, since the converter's time grows steeply."""


@dataclass(frozen=True, slots=True)
class _Container:
    """A list item or a box, whose content stands further right."""

    indent: int
    """Where its first line starts in the source."""
    least: int
    """Spaces from there at which a line belongs to it."""
    content: int
    """Where its content is to start in the result."""

    def holds(self, indent: int) -> bool:
        return indent >= self.indent + self.least

    def moved(self, indent: int) -> int:
        """Where a line of its content goes. Up to four spaces are the item's own indentation."""
        return self.content + max(0, indent - self.indent - 4)


class _Normaliser:
    def __init__(self, text: str) -> None:
        self.lines = [line.expandtabs(4) for line in text.split("\n")]
        self.out: list[str] = []
        self.stack: list[_Container] = []
        self.commented = "-->" in text
        """Whether a comment's end may still come: what never ends is none."""

    def run(self) -> str:
        i = 0
        while i < len(self.lines):
            self._drop_comments(i)
            line = self.lines[i]
            if not line.strip():
                self.out.append("")
                i += 1
                continue
            fence = _FENCE.match(line)
            if fence and not ("`" in fence[3] and fence[2][0] == "`"):
                i = self._fence(i, fence)
                continue
            self._line(line, self.lines[i + 1] if i + 1 < len(self.lines) else "")
            i += 1
        return "\n".join(self.out)

    def _drop_comments(self, i: int) -> None:
        """Take comments that begin in line `i` out of the text, however far they go: it is stale."""
        start = self.lines[i].find("<!--")
        while self.commented and start >= 0 and self.lines[i].count("`", 0, start) % 2 == 0:
            end, behind = i, self.lines[i].find("-->", start + 4)
            while behind < 0 and end + 1 < len(self.lines):
                end += 1
                behind = self.lines[end].find("-->")
            self.commented = behind >= 0
            if self.commented:
                self.lines[i : end + 1] = [self.lines[i][:start] + self.lines[end][behind + 3 :]]
                start = self.lines[i].find("<!--", start)

    def _pop(self, indent: int) -> None:
        while self.stack and not self.stack[-1].holds(indent):
            self.stack.pop()

    def _target(self, indent: int) -> int:
        return self.stack[-1].moved(indent) if self.stack else indent

    def _line(self, line: str, following: str) -> None:
        indent = len(line) - len(line.lstrip(" "))
        item = _ITEM.match(line)
        if item and _RULE.match(line):
            item = None
        previous = self.out[-1] if self.out else ""
        lazy = (
            bool(previous.strip())
            and not item
            and not _BOX.match(line)
            and not line.lstrip().startswith(("#", "|"))
        )
        left = bool(self.stack) and not self.stack[-1].holds(indent) and indent < 4
        if lazy and left and not _is_outside(previous, line):
            # A line right below goes on with the paragraph, however far left it stands.
            self.out.append(line if self.stack[-1].least == 2 else self._outdent(line, indent))
            return
        self._pop(indent)
        if item and (self.stack or indent < 4):
            self._list_item(line, item, previous)
            return
        target = self._target(indent)
        # `!!! note Some words`: they would be taken for names of styles.
        line = _UNQUOTED.sub(r'\1\2 "\3"', line)
        if self._starts_table(line, following, previous):
            self.out.append("")
        self.out.append(" " * target + line.lstrip(" "))
        if _BOX.match(line):
            self.stack.append(_Container(indent, 4 if not line.lstrip().startswith("///") else 0, target + 4))
            if line.lstrip().startswith("///"):
                self.stack.pop()
        elif _NOTE.match(line):
            self.stack.append(_Container(indent, 2, target + 4))

    def _outdent(self, line: str, indent: int) -> str:
        self._pop(indent)
        return " " * self._target(indent) + line.lstrip(" ")

    def _list_item(self, line: str, item: re.Match[str], previous: str) -> None:
        indent = len(item[1])
        while len(self.stack) > DEEPEST:
            self.stack.pop()
        inside = self.stack[-1] if self.stack else None
        target = inside.content if inside else 0
        if inside and inside.least == 4:
            # Within a box a list may stand a little to the right, too.
            extra = inside.moved(indent) - inside.content
            target = inside.content + (extra if extra >= 4 else 0)
        if previous.strip() and not _is_item(previous) and self._interrupts(item, previous, target):
            self.out.append("")
        self.out.append(f"{' ' * target}{item[2].replace(')', '.')} {line[item.end() :]}")
        self.stack.append(_Container(indent, 2, target + 4))

    def _interrupts(self, item: re.Match[str], previous: str, target: int) -> bool:
        """Whether a list starts right below a line of text that is no part of a list."""
        margin = len(previous) - len(previous.lstrip(" "))
        if margin >= target + 4:
            # The line above ends what stands further in: an item that goes on, or a box.
            return True
        if item[2][0].isdigit() and item[2][:-1] != "1":
            return False
        return margin <= target and not previous.lstrip().startswith(("#", "|", ">", "```"))

    @staticmethod
    def _starts_table(line: str, following: str, previous: str) -> bool:
        return bool("|" in line and previous.strip() and "|" not in previous and _DELIMITER.match(following))

    def _fence(self, start: int, fence: re.Match[str]) -> int:
        """Write the fenced block that opens at `start`, closed and aligned; the line after it."""
        indent, marks, info = len(fence[1]), fence[2], fence[3].strip()
        self._pop(indent)
        target = self._target(indent)
        if not self.stack and indent >= 4:
            target = indent
        close = re.compile(rf"^ *{re.escape(marks[0])}{{{len(marks)},}} *$")
        end = next((i for i in range(start + 1, len(self.lines)) if close.match(self.lines[i])), None)
        another = re.compile(rf"^ *{re.escape(marks)}[ \t]*\{{?\.?[A-Za-z]")
        stop = len(self.lines) if end is None else end
        # Only for pages of a usual size: the count is taken anew for each fence.
        rest = self.lines[start:] if len(self.lines) < 20_000 else []
        odd = sum(1 for line in rest if line.lstrip().startswith(marks)) % 2
        if end is None or odd or any(another.match(line) for line in self.lines[start + 1 : end]):
            # A fence that opens within the code, or one too many: this one may never have been closed.
            left = self._unclosed(start, indent)
            if left < stop:
                stop, end = left, None
        body = self.lines[start + 1 : stop]
        self.out.append(" " * target + marks + _info(info))
        for line in body:
            kept = min(indent, len(line) - len(line.lstrip(" ")))
            self.out.append((" " * target + line[kept:]).rstrip())
        self.out.append(" " * target + marks)
        return stop if end is None else stop + 1

    def _unclosed(self, start: int, indent: int) -> int:
        """Where code ends whose fence is never closed: at the next heading, or left of the fence."""
        for i in range(start + 1, len(self.lines)):
            line = self.lines[i]
            blank_before = i > start + 1 and not self.lines[i - 1].strip()
            left = bool(line.strip()) and len(line) - len(line.lstrip(" ")) < indent
            if blank_before and (left or re.match(r"^#{2,6} \S|^={3} \"|^(?:!!!|\?\?\?)", line)):
                return i
        return len(self.lines)


def _info(info: str) -> str:
    """The fence's info string with the language and the title alone, in the form that is always taken."""
    language = re.match(r"\{?\s*\.?([A-Za-z][\w#+-]*)(?![\w=])", info)
    title = re.search(r"""\btitle=(?:"([^"]*)"|'([^']*)')""", info)
    name = language[1] if language else ""
    if not title:
        return name
    words = (title[1] or title[2] or "").replace("\\", "/")
    return f'{{.{name or "text"} title="{words}"}}'


def _is_item(line: str) -> bool:
    return bool(_ITEM.match(line))


def _is_outside(previous: str, line: str) -> bool:
    """Whether the line can't go on with the paragraph above it."""
    return bool(re.match(r" *(?:</?\w|\[\^|```|~~~|>|:::)", line)) or previous.lstrip().startswith(
        ("```", "~~~", "!!!", "???", "===")
    )


def normalise(text: str) -> str:
    """The text with lists, boxes and fences indented in steps of four, and every fence closed."""
    return _Normaliser(text).run()
