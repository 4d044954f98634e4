"""A page's HTML as a tree of its own content: chrome, hidden and active elements are gone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from lxml import etree

from hyce.content import main
from hyce.markup.words import words

Element = etree._Element

DEEPEST = 60
"""Elements nested deeper are flattened to their text: nobody reads them, and walking them would
exhaust the stack."""

_DROPPED = words(
    "script style template noscript iframe object embed video audio canvas svg select textarea head map "
    "link meta base dialog nav datalist"
)
_FRAMES = words("table thead tbody tfoot tr ul ol menu dl colgroup")
_TINY = re.compile(
    r"display:none|visibility:hidden|font-size:(?:0|1px)(?![.\d])|opacity:0(?![.\d])|clip:rect\(|text-indent:-\d{3,}"
)
_HIDDEN_CLASSES = words("sr-only visually-hidden screen-reader-text d-none is-hidden hidden katex-html")
_PERMALINK = words(
    "headerlink anchor-link header-anchor hash-link heading-anchor anchorlink footnote-backref "
    "fn-backref viewcode-link copybtn linenos lineno md-clipboard linenodiv hljs-ln-numbers "
    "mw-editsection mw-jump-link mw-cite-backlink"
)
_CHROME = re.compile(
    r"(?:^|\s)(?:toc|toctree-wrapper|table-of-contents|contents|breadcrumbs?|wy-breadcrumbs\S*|sphinxsidebar\S*|related|"
    r"prev-next\S*|edit-this-page|skip-?link|skip-to-content|md-source-file|md-feedback|md-sidebar\S*|md-header\S*|md-footer\S*|"
    r"md-tabs\S*|md-skip|rst-footer-buttons|rst-versions|navbar\S*|site-footer|site-header|theme-doc-footer\S*|"
    r"pagination-nav\S*|cookie\S*|searchbox|edit-page\S*|page-nav\S*|backlink|toc-macro|page-metadata|printfooter|"
    r"catlinks|breadcrumb-\S*|last-?updated|git-revision-date\S*|bd-sidebar\S*|sharedaddy|comments-area|mw-indicators)"
    r"(?=\s|$)",
    re.IGNORECASE,
)
_CHROME_ROLES = words("navigation search banner contentinfo complementary menu menubar dialog alertdialog")
_NOTE_CLASSES = re.compile(r"admonition|footnote|citation|topic|sidebar-title|callout|alert|aside")


def load(html: str) -> Element:
    """The tree of a page or a fragment; broken, endless or empty markup gives what can be read of it."""
    tree = _parse(html)
    if tree is None:
        # libxml2 gives up at 2048 levels: without the wrappers that nest so deep the text is still there.
        tree = _parse(
            re.sub(r"</?(?:div|span|section|font|center|b|i|em|strong|blockquote)\b[^>]*>", "\n", html)
        )
    if tree is None:
        tree = _parse(re.sub(r"</?(?!p\b)[a-zA-Z][^>]*>", "\n", html))
    if tree is None:
        tree = etree.Element("html")
    _flatten(tree)
    return tree


def _parse(html: str) -> Element | None:
    parser = etree.HTMLParser(huge_tree=True, remove_comments=True, remove_pis=True, encoding="utf-8")
    clean = re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f]", " ", html)
    data = clean.encode("utf-8", "replace")
    if not data.strip():
        return etree.Element("html")
    try:
        tree = etree.fromstring(data, parser)
    except etree.XMLSyntaxError:
        return None
    if tree is None or any("ERR_RESOURCE_LIMIT" in str(entry) for entry in parser.error_log):
        return None
    return tree


def _flatten(tree: Element) -> None:
    """Replace the children of elements at the greatest depth by their text."""
    depth = 0
    deep: list[Element] = []
    for event, element in etree.iterwalk(tree, events=("start", "end")):
        if event == "start":
            depth += 1
            if depth == DEEPEST and len(element):
                deep.append(element)
        else:
            depth -= 1
    for place in deep:
        element = place
        # Text right below a row or a list would not be read.
        while tag(element) in _FRAMES and (parent := element.getparent()) is not None:
            element = parent
        text = " ".join(_texts(element))
        tail = element.tail
        attributes: Any = {str(name): str(value) for name, value in element.attrib.items()}
        element.clear()
        element.attrib.update(attributes)
        element.text, element.tail = text, tail


def _texts(element: Element) -> Iterator[str]:
    return (str(text) for text in element.itertext())


def classes(element: Element) -> list[str]:
    return (element.get("class") or "").split()


def tag(element: Element) -> str:
    """The element's name in lower case; empty for a comment or processing instruction."""
    return element.tag.lower() if isinstance(element.tag, str) else ""


def clean(tree: Element, *, whole_page: bool) -> Element:
    """The element that holds the page's own content, after removing what a reader doesn't see or read.

    whole_page: the tree is a finished web page with navigation, header and footer around its content.
    """
    content = main.find(tree) if whole_page else tree
    if whole_page and tag(content) == "body":
        for element in list(main.surroundings(content)):
            remove(element)
    for element in list(content.iter()):
        if element is content:
            continue
        if not tag(element) or _hidden(element) or (whole_page and _is_chrome(element, content)):
            remove(element)
    return content


def _hidden(element: Element) -> bool:
    name = tag(element)
    names = classes(element)
    if name == "input":
        return (element.get("type") or "").lower() != "checkbox"
    if name in _DROPPED or _PERMALINK.intersection(names):
        return True
    if name == "button":
        return not _is_mentioned(element)
    if element.get("hidden") is not None or (element.get("aria-hidden") or "").lower() == "true":
        return True
    # `hidden md:block` is how a wide window shows what a narrow one doesn't.
    if _HIDDEN_CLASSES.intersection(names) and not any(":" in each for each in names):
        return True
    style = re.sub(r"\s+", "", element.get("style") or "").lower()
    return bool(style and _TINY.search(style))


def _is_mentioned(button: Element) -> bool:
    """Whether the button stands in a sentence: `Press [Save] to go on`."""
    parent = button.getparent()
    if parent is None or tag(parent) not in ("p", "li", "td", "dd"):
        return False
    return any(text and text.strip() for text in (parent.text, *(child.tail for child in parent)))


def _is_chrome(element: Element, content: Element) -> bool:
    name = tag(element)
    if name == "form" and not element.xpath(".//p | .//table | .//h2"):
        return True
    if name == "header" and tag(content) == "body":
        return not element.xpath(".//h1")
    if name == "footer":
        return True
    names = element.get("class") or ""
    if name == "aside":
        return not (_NOTE_CLASSES.search(names) or element.xpath("./*[contains(@class, 'sidebar-title')]"))
    if name in ("div", "section", "ul", "ol", "p", "a", "span") and _CHROME.search(names):
        return True
    return (element.get("role") or "") in _CHROME_ROLES


def remove(element: Element) -> None:
    """Take the element out of its tree; the text behind it stays."""
    parent = element.getparent()
    if parent is None:
        return
    before = element.getprevious()
    if before is not None:
        before.tail = (before.tail or "") + (element.tail or "")
    else:
        parent.text = (parent.text or "") + (element.tail or "")
    parent.remove(element)
