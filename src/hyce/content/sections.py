"""The reader: walks a page's content and collects sections of blocks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from hyce.content import boxes, tables
from hyce.content.inline import BLOCKS, Inline
from hyce.content.lists import ItemText
from hyce.content.text import one_line, sentences, tidy, visible
from hyce.content.tree import Element, classes, tag
from hyce.records import Block, BlockKind, Section

_CODE_TITLES = frozenset(("filename", "code-block-caption", "code-block-title", "codeHeader"))
LONGEST_HEAD = 400
"""Characters, about 100 tokens, of what is repeated above each part of a block; more stands there once."""
_HEADINGS = {"h1": 1, "h2": 2, "h3": 3, "h4": 4, "h5": 5, "h6": 6}


@dataclass(slots=True)
class Reader:
    """Collects the sections of one page; `read` does the work."""

    inline: Inline
    long_notes: dict[str, str] = field(default_factory=dict)
    """Footnotes too long for the running text, by number; they end the section that refers to them."""
    sections: list[Section] = field(default_factory=list)
    path: list[tuple[int, str]] = field(default_factory=list)
    """Open headings with their levels."""
    anchor: str = ""
    title: str = ""
    """The first h1, once it was met."""
    blocks: list[Block] = field(default_factory=list)
    added: int = 0
    """Blocks added so far, in all sections."""
    context: list[boxes.Label] = field(default_factory=list)
    """The boxes (tabs, admonitions) around the current place, outermost first."""
    code_title: str = ""
    """The title (a file's name) met above code that is still to come."""
    excluded: int = 0
    """Level of the heading whose section is kept out of search; 0 for none."""

    def read(self, content: Element) -> list[Section]:
        self.flow(content)
        self._close_section()
        return self.sections

    # -- walking -----------------------------------------------------------------------------------------

    def flow(self, parent: Element, lead: str = "") -> None:
        """Read an element's content: running text becomes paragraphs, block elements what they are.
        `lead` is put before the first words (a list item's marker)."""
        words = [lead] if lead else []
        words.append(self.inline.node_text(parent.text, False))
        for child in parent:
            if self._is_inline(child):
                words.append(self.inline.child(child))
            else:
                if self._has_words(words, lead):
                    self._paragraph("".join(words))
                    lead = ""
                words = []
                if lead and tag(child) in ("p", "div"):
                    self.flow(child, lead)
                else:
                    self._block(child)
                lead = ""
            words.append(self.inline.node_text(child.tail, False))
        if self._has_words(words, ""):
            self._paragraph("".join(words))

    @staticmethod
    def _has_words(words: list[str], lead: str) -> bool:
        text = "".join(words).strip()
        return bool(text) and text != lead.strip()

    def _is_inline(self, element: Element) -> bool:
        if tag(element) in BLOCKS or boxes.is_box(element) or _is_code_title(element):
            return False
        return not any(tag(e) in BLOCKS for e in element.iterdescendants())

    def _block(self, element: Element) -> None:
        if element.get("data-search-exclude") is not None and tag(element) not in _HEADINGS:
            return
        name = tag(element)
        if _is_code_title(element):
            self._place_code_title()
            self.code_title = one_line(visible(self.inline.text(element))).rstrip(":")
        elif "line-block" in classes(element):
            self._paragraph(self.inline.text(element))
        elif name in _HEADINGS:
            self._heading(element, _HEADINGS[name])
        elif name == "pre":
            self._code(element)
        elif name in ("ul", "ol", "menu") and not boxes.is_box(element):
            self._list(element)
        elif name == "dl":
            self._definitions(element)
        elif name == "table":
            self._table(element)
        elif boxes.is_box(element):
            self._box(element)
        else:
            self.flow(element)

    # -- sections ----------------------------------------------------------------------------------------

    def _heading(self, element: Element, level: int) -> None:
        text = one_line(visible(self.inline.text(element))).rstrip("\u00b6 ").strip()
        if not text:
            return
        if self.excluded and level > self.excluded:
            return
        self._close_section()
        self.excluded = level if element.get("data-search-exclude") is not None else 0
        if level == 1 and not self.title:
            self.title = text
        while self.path and self.path[-1][0] >= level:
            self.path.pop()
        self.path.append((level, text))
        self.anchor = _anchor(element)

    def _close_section(self) -> None:
        self._place_code_title()
        self._place_notes()
        heading = tuple(text for _, text in self.path)
        if not self.excluded and (self.blocks or heading):
            self.sections.append(Section(heading, self.anchor, tuple(self.blocks)))
        self.blocks = []

    def _place_notes(self) -> None:
        """End the section with the long footnotes that it refers to."""
        words = "\n".join(unit for block in self.blocks for unit in block.units)
        for number in [n for n in self.long_notes if f"[{n}]" in words]:
            note = f"[{number}] {self.long_notes.pop(number)}"
            self.blocks.append(Block("paragraph", sentences(tidy(note))))

    # -- blocks ------------------------------------------------------------------------------------------

    def add(self, kind: BlockKind, units: tuple[str, ...], head: str = "") -> None:
        if kind != "code":
            self._place_code_title()
        units = tuple(unit for unit in (visible(u) if kind != "code" else u for u in units) if unit.strip())
        head = visible(head)
        if units and len(head) > LONGEST_HEAD:
            units, head = (*head.split("\n"), *units), ""
        lines = [line for line in (boxes.heads(self.context), head) if line]
        if units:
            if kind == "paragraph" and any(label.is_note for label in self.context):
                kind = "note"
            self.blocks.append(Block(kind, units, "\n".join(lines)))
            self.added += 1

    def _paragraph(self, text: str) -> None:
        self.add("paragraph", sentences(tidy(text)))

    def _code(self, element: Element) -> None:
        title, self.code_title = self.code_title, ""
        for each in (element, *element.iterchildren("code")):
            title = title or one_line(visible(each.get("title") or ""))
        self.add("code", code_units(self.inline.text(element, code=True)), f"{title}:" if title else "")

    def _place_code_title(self) -> None:
        """What looked like a title of code, but has no code below it, is text."""
        if self.code_title:
            title, self.code_title = self.code_title, ""
            self.add("paragraph", (title,))

    def _list(self, element: Element) -> None:
        """One block a list; an item that is long, or holds code, tables or boxes, is read on its own."""
        text_of = ItemText(self.inline)
        units: list[str] = []
        for marker, item in text_of.items(element):
            if text_of.is_simple(item):
                units.append(text_of.unit(item, marker))
                continue
            self.add("list", tuple(units))
            units = []
            self._item(item, marker, text_of)
        self.add("list", tuple(units))

    def _item(self, item: Element, marker: str, text_of: ItemText) -> None:
        """A long item: its own words, then what it holds, labelled with them when they are short."""
        label = text_of.label(item)
        if not label:
            self.flow(item, marker)
            return
        with self._within(boxes.Label(marker + label)):
            for child in text_of.rest(item):
                self._block(child)

    def _definitions(self, element: Element) -> None:
        text_of = ItemText(self.inline)
        units: list[str] = []
        for terms, bodies in text_of.definitions(element):
            if all(text_of.is_simple(body) for body in bodies):
                units.append(text_of.definition(terms, bodies))
                continue
            self.add("definition", tuple(units))
            units = []
            with self._within(boxes.Label(terms, colon=True)):
                for body in bodies:
                    self.flow(body)
        self.add("definition", tuple(units))

    def _table(self, element: Element) -> None:
        if tables.is_layout(element):
            for child in element:
                if tag(child) == "caption":
                    self.flow(child)
            for cell in tables.cells_in_order(element):
                self.flow(cell)
            return
        for part in tables.strays(element):
            if isinstance(part, str):
                self._paragraph(self.inline.node_text(part, False))
            else:
                self._block(part)
        grid = tables.read(element, self.inline.text)
        head = "\n".join(line for line in (grid.caption, grid.head) if line)
        if grid.rows:
            self.add("table", grid.rows, head)
        else:
            self.add("table", tuple(head.split("\n")))

    def _box(self, element: Element) -> None:
        """A tab set, an admonition or a collapsed part: its label stands above what it holds."""
        for label, parts in boxes.parts(element, self.inline):
            with self._within(label):
                for part in parts:
                    if part is element or (tag(part) == "div" and not boxes.is_box(part)):
                        self.flow(part)
                    else:
                        self._block(part)

    @contextmanager
    def _within(self, label: boxes.Label) -> Iterator[None]:
        """What is read within stands below the label; when it is nothing, the label is a block itself."""
        if len(boxes.heads([*self.context, label])) > LONGEST_HEAD:
            self.add("note", sentences(label.line))
            label = boxes.Label("")
        before = self.added
        self.context.append(label)
        try:
            yield
        finally:
            self.context.pop()
        if self.added == before and label.text:
            self.add("note", (label.line,))


def _is_code_title(element: Element) -> bool:
    return any(name in _CODE_TITLES or name.startswith("codeBlockTitle") for name in classes(element))


def code_units(text: str) -> tuple[str, ...]:
    """Lines of code; a line that goes on (`\\` at its end) stays with the next, an empty one with the
    one before it, so that no cut falls there."""
    lines = [line.rstrip() for line in text.expandtabs(4).strip("\n").split("\n")]
    units: list[str] = []
    for line in lines:
        if units and (not line.strip() or units[-1].endswith("\\")):
            units[-1] += "\n" + line
        elif line.strip() or units:
            units.append(line)
    return tuple(unit.rstrip("\n") if i == len(units) - 1 else unit for i, unit in enumerate(units))


def _anchor(element: Element) -> str:
    """The heading's id: its own, one within it, or that of the section it opens."""
    if element.get("id"):
        return str(element.get("id"))
    for inner in element.iter():
        if inner.get("id") or (tag(inner) == "a" and inner.get("name")):
            return str(inner.get("id") or inner.get("name"))
    parent = element.getparent()
    if parent is not None and tag(parent) in ("section", "div") and parent.get("id"):
        first = next((e for e in parent if tag(e) in _HEADINGS), None)
        if (first is element and tag(parent) == "section") or "section" in classes(parent):
            return str(parent.get("id"))
    return ""
