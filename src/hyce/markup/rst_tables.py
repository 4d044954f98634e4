"""Directives that make tables and lists of terms."""

from __future__ import annotations

import csv
import io
import re
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.parsers.rst.directives import tables
from docutils.statemachine import StringList

from hyce.markup.rst_base import AnyOptions, Base, captioned


class CsvTable(Base):
    """A table of comma-separated values, from its content or from a file below the root."""

    def run(self) -> list[nodes.Node]:
        text = "\n".join(self.content)
        if self.options.get("file"):
            place = self.place()
            path = place.find(str(self.options["file"])) if place else None
            text = place.read(path) if place and path else ""
        delimiter = {"tab": "\t", "space": " "}.get(
            str(self.options.get("delim", ",")), str(self.options.get("delim", ","))
        )
        quote = str(self.options.get("quote", '"'))
        try:
            rows = list(
                csv.reader(
                    io.StringIO(text), delimiter=delimiter[:1], quotechar=quote[:1], skipinitialspace=True
                )
            )
            header = list(
                csv.reader(
                    [str(self.options.get("header", ""))], delimiter=delimiter[:1], skipinitialspace=True
                )
            )
        except (csv.Error, ValueError, TypeError):
            return captioned(text, self.title())
        count = str(self.options.get("header-rows", "0"))
        heads = [row for row in header if row] + rows[: int(count) if count.isdecimal() else 0]
        body = rows[int(count) if count.isdecimal() else 0 :]
        if not heads and not body:
            return []
        return [self.table([row for row in heads if row], [row for row in body if row])]

    def table(self, heads: list[list[str]], body: list[list[str]]) -> nodes.Node:
        width = max(len(row) for row in [*heads, *body])
        group = nodes.tgroup("", *(nodes.colspec("", colwidth=1) for _ in range(width)), cols=width)
        parts: tuple[tuple[list[list[str]], nodes.Element], ...] = (
            (heads, nodes.thead()),
            (body, nodes.tbody()),
        )
        for rows, holder in parts:
            for row in rows:
                cells = [nodes.entry("", *self.cell(text)) for text in [*row, *[""] * (width - len(row))]]
                holder.append(nodes.row("", *cells))
            if len(holder):
                group.append(holder)
        title = [nodes.title("", "", *self.inline(self.title()))] if self.title() else []
        return nodes.table("", *title, group)

    def cell(self, text: str) -> list[nodes.Node]:
        holder = nodes.Element()
        self.state.nested_parse(StringList(text.split("\n"), source=""), self.content_offset, holder)
        return list(holder.children)


class ListTable(tables.ListTable):
    """docutils' list-table; a broken one is the list that it is written as, rather than nothing."""

    option_spec: ClassVar[Any] = AnyOptions({**tables.ListTable.option_spec, "class": directives.unchanged})

    def run(self) -> list[Any]:
        found: list[Any]
        try:
            found = list(super().run())
        except Exception:
            # docutils counts on a list of equal lists.
            found = []
        if not found or isinstance(found[0], nodes.system_message):
            holder = nodes.Element()
            self.state.nested_parse(self.content, self.content_offset, holder)
            return list(holder.children)
        return found


class Glossary(Base):
    """Terms (several may share a definition) and their definitions."""

    def run(self) -> list[nodes.Node]:
        holder = nodes.definition_list()
        terms: list[str] = []
        lines: list[str] = []

        def flush() -> None:
            if not terms:
                return
            body = nodes.definition()
            text = StringList([line[self.margin(lines) :] for line in lines], source="")
            self.state.nested_parse(text, self.content_offset, body)
            term = nodes.term("", "", *self.inline(", ".join(terms)))
            holder.append(nodes.definition_list_item("", term, body))

        for line in self.body():
            if line.strip() and not line[0].isspace():
                if line.startswith(".. "):
                    continue
                if any(each.strip() for each in lines):
                    flush()
                    terms, lines = [], []
                terms.append(re.sub(r"\s+:\s+\S+$", "", line.strip()))
            else:
                lines.append(line)
        flush()
        return [holder]

    @staticmethod
    def margin(lines: list[str]) -> int:
        return min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)


class Described(Base):
    """`option:: --time`, `envvar:: PATH`, `py:function:: f(x)`: a term and its description."""

    def run(self) -> list[nodes.Node]:
        terms = ", ".join(line.strip() for line in (self.arguments[0] if self.arguments else "").split("\n"))
        item = nodes.definition_list_item("", nodes.term("", terms), nodes.definition("", *self.parsed()))
        return [nodes.definition_list("", item)]
