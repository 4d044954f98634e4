"""Document (any markup, by way of HTML) -> Page: title, sections with heading paths, blocks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from hyce.errors import SourceError
from hyce.records import Block, Document, Page, Section

if TYPE_CHECKING:
    from hyce.content.tree import Element

STUB_WORDS = 60
"""A page with more words says more than that it has moved."""

_MOVED = re.compile(
    r"\b(?:page|documentation|document|content|section|guide|article|information|tutorial|wiki)\b[^.]{0,60}?"
    r"\b(?:has|have|was|were|is|are)\s+(?:now\s+|been\s+|permanently\s+)*"
    r"(?:moved|relocated|redirected|merged into|replaced by|superseded by"
    r"|now (?:at|located|available at|found))"
    r"|\bthis page (?:redirects|moved)\b|\bredirecting\b|\byou (?:are being|will be) redirected\b",
    re.IGNORECASE,
)


class Hidden(SourceError):  # noqa: N818  (what it is, not what went wrong)
    """The page is hidden, kept out of search, or only says that it has moved: rightly left out."""


def parse(document: Document) -> Page:
    """The page's title, date and sections.

    Raises Hidden for a page that is not meant to be found, SourceError for one without any text.
    """
    from hyce.content.inline import Inline
    from hyce.content.notes import take_footnotes
    from hyce.content.sections import Reader

    content, titles, date, language = _load(document)
    short, long = take_footnotes(content)
    host = urlsplit(document.url or "").netloc.lower()
    reader = Reader(Inline(short, host), long)
    sections = reader.read(content)
    leftover = [
        *(f"{text}" for ident, text in short.items() if ident not in reader.inline.placed),
        *long.values(),
    ]
    title = _title(titles, reader.title, document)
    tops = {s.heading[0] for s in sections if s.heading}
    # Of several first headings none names the page.
    first = reader.title if tops == {reader.title} else ""
    sections = [Section(_path(title, first, s.heading), s.anchor, s.blocks) for s in sections]
    if leftover:
        sections.append(Section((title,), "", tuple(Block("paragraph", (text,)) for text in leftover)))
    if not any(section.blocks for section in sections):
        if reader.path:
            raise Hidden(f"{document.path}: has headings, but no text below them")
        raise SourceError(f"{document.path}: the page has no text; remove it, or look at its markup")
    words = " ".join(unit for s in sections for b in s.blocks for unit in b.units)
    if len(words.split()) <= STUB_WORDS and _MOVED.search(words):
        raise Hidden(f"{document.path}: only says that the page has moved")
    return Page(title, tuple(sections), date or document.date, language)


def paragraphs(document: Document) -> Page:
    """The page's <p> elements alone, each a block: what the published HyCE code keeps."""
    from hyce.content.inline import Inline
    from hyce.content.text import one_line, visible
    from hyce.content.tree import Element

    content, titles, date, language = _load(document)
    inline = Inline()
    found = content.xpath(".//p")
    elements = [e for e in found if isinstance(e, Element)] if isinstance(found, list) else []
    texts = [one_line(visible(inline.text(element))) for element in elements]
    headings = content.xpath("string(.//h1[1])")
    title = _title(titles, one_line(str(headings)), document)
    blocks = tuple(Block("paragraph", (text,)) for text in texts if text)
    if not blocks:
        raise Hidden(f"{document.path}: has no <p> text, which is all that passages.kind = paragraph reads")
    return Page(title, (Section((title,), "", blocks),), date or document.date, language)


@dataclass(frozen=True, slots=True)
class _Titles:
    """What a page is called outside of its content."""

    own: str
    """In its front matter, or in the heading that a site puts above the content."""
    tab: str
    """In the browser's tab."""


def _load(document: Document) -> tuple[Element, _Titles, str | None, str]:
    """(the page's own content, its titles from meta-data, its date, the language that it declares)."""
    from hyce.content import head
    from hyce.content.tree import clean, load
    from hyce.content.widgets import label_panels
    from hyce.markup import to_html
    from hyce.markup.front import facts

    known = facts(document)
    if known.hidden:
        raise Hidden(f"{document.path}: {known.hidden}")
    whole_page = document.media_type == "text/html"
    tree = load(to_html(document))
    found = head.read(tree)
    if found.redirect and whole_page:
        raise Hidden(f"{document.path}: only leads to another page")
    if found.hidden:
        raise Hidden(f"{document.path}: {found.hidden}")
    label_panels(tree)
    content = clean(tree, whole_page=whole_page)
    above = found.title if whole_page and head.names_page(tree, content) else ""
    titles = _Titles(known.title or above, found.title)
    return content, titles, known.date or found.date, found.language


def _title(titles: _Titles, h1: str, document: Document) -> str:
    """The page's title: its own one, where that says more than its first heading."""
    if titles.own and not (_words(titles.own) <= _words(h1)):
        return titles.own
    return h1 or titles.tab or document.title or _name(document.path)


def _path(title: str, h1: str, heading: tuple[str, ...]) -> tuple[str, ...]:
    """The heading path from the page's first heading, or else from its title, each said once.

    A title that says something else than the first heading is searched on its own: repeated in each
    passage it would take the place of the passage's words.
    """
    repeated = _words(h1) <= _words(title)
    if h1 and heading and heading[0] == h1 and not repeated:
        return heading
    rest = heading
    while rest and (rest[0].casefold() == title.casefold() or (h1 and rest[0] == h1 and repeated)):
        rest = rest[1:]
    return (title, *rest)


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold()))


def _name(path: str) -> str:
    """A title made from the file's name: `data-transfer.md` is `Data transfer`, an index its folder."""
    pure = PurePosixPath(path)
    name = pure.stem
    if name.lower() in ("index", "readme") and pure.parent.name not in ("", "docs", "."):
        name = pure.parent.name
    if pure.suffix in (".sh", ".slurm", ".pbs", ".sbatch"):
        return pure.name
    words = re.sub(r"[-_]+", " ", name).strip()
    return words[:1].upper() + words[1:] if words else path
