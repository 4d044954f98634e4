"""Where a finished web page holds its own content, and what stands around it where nothing says so."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lxml import etree

from hyce.markup.words import words

Element = etree._Element


def _with_class(name: str) -> str:
    return f"//*[contains(concat(' ', normalize-space(@class), ' '), ' {name} ')]"


_PLACES = (
    ("//main", False),
    ("//*[@role='main']", False),
    ("//article", True),
    (_with_class("md-content"), False),
    ("//div[contains(concat(' ', @class, ' '), ' documentwrapper ')]//div[@class='body']", False),
    ("//*[@id='mw-content-text']", False),  # MediaWiki
    ("//*[@id='dokuwiki__content']//div[contains(concat(' ', @class, ' '), ' page ')]", False),
    ("//*[@id='main-content']", False),
    (_with_class("wiki-content"), True),  # Confluence
    (_with_class("entry-content"), True),  # WordPress
    (_with_class("field-name-body"), True),  # Drupal 7
    (_with_class("field--name-body"), True),  # Drupal 8 and later
    ("//*[@itemprop='articleBody']", True),
    ("//*[@id='content']", False),
    ("//*[@id='main']", False),
)
"""Where site builders put the content, the surest first; True where a list of articles has many of them:
then none is the page's content."""

_AROUND = re.compile(
    r"(?:site|page|main|top|global|primary|secondary)?[-_]?"
    r"(?:header|head|masthead|navigation|nav|navbar|menu|topbar|footer|foot|colophon|sidebar|breadcrumbs?|toolbar)"
    r"(?:[-_]?(?:wrapper|container|left|right|first|second|inner|\d))?"
    r"|(?:cookie|consent|gdpr)\S*|cc-(?:window|banner)|comments?-(?:area|section|list)|widget-area|social-links",
    re.IGNORECASE,
)
_FRAMES = words("div section ul ol form table td span")


def find(tree: Element) -> Element:
    """The element that holds the page's content; the body where the page doesn't say."""
    for path, alone in _PLACES:
        found = [e for e in _elements(tree, path) if _length(e)]
        if found and not (alone and len(found) > 1):
            return found[0]
    bodies = _elements(tree, "//body")
    return bodies[0] if bodies else tree


def surroundings(body: Element) -> Iterator[Element]:
    """Elements of a page without a known place for its content that are called header, menu, footer...

    None that holds a main heading, or half of the page: a name is less sure than a place.
    """
    most = _length(body) / 2
    for element in body.iter(*_FRAMES):
        names = f"{element.get('id') or ''} {element.get('class') or ''}".split()
        if not any(_AROUND.fullmatch(name) for name in names):
            continue
        if next(element.iter("h1"), None) is None and _length(element) < most:
            yield element


def _elements(tree: Element, path: str) -> list[Element]:
    found = tree.xpath(path)
    return [e for e in found if isinstance(e, etree._Element)] if isinstance(found, list) else []


def _length(element: Element) -> int:
    return len("".join(str(text) for text in element.itertext()).strip())
