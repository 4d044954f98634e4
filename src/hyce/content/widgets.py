"""Tabs and accordions that need a script -> the labelled boxes that boxes.py reads.

The first step on a page's tree, before tree.clean: what a reader has to click for is hidden in the HTML,
and the button beside it is all that names it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy

from lxml import etree

from hyce.content.tree import Element, classes, remove, tag
from hyce.markup.words import words

_PANELS = words("tab-pane tabcontent sphinx-tabs-panel")
_FOLDS = re.compile(r"accordion|collaps|toggle|expand")
_CHROME = words("navbar-toggler navbar-toggle menu-toggle sidebar-toggle")
_HEADINGS = words("h1 h2 h3 h4 h5 h6")


def label_panels(tree: Element) -> None:
    """Show every panel, below the name of the tab or the button that opens it."""
    elements = [e for e in tree.iter() if tag(e)]
    by_id = {e.get("id") or "": e for e in reversed(elements)}
    panels = [e for e in elements if _is_panel(e)]
    by_label = {e.get("aria-labelledby") or "": e for e in panels}
    for panel in panels:
        _show(panel)
    tabs = {e: _target(e, by_id, by_label) for e in elements if _is_tab(e)}
    _fill_by_order(tabs)
    for tab, opened in tabs.items():
        if opened is not None and _is_panel(opened):
            _box(opened, tab, "hyce-tabs", "hyce-tab-label")
    for button in (e for e in elements if _is_fold(e)):
        part = _target(button, by_id, by_label)
        part = part if part is not None else _next(button)
        if part is not None and tag(part) not in ("nav", "body") and part not in button.iterancestors():
            _fold(part, button)


def _is_panel(element: Element) -> bool:
    return element.get("role") == "tabpanel" or bool(_PANELS.intersection(classes(element)))


def _is_tab(element: Element) -> bool:
    return (
        element.get("role") == "tab"
        or _toggles(element) in ("tab", "pill")
        or "tablinks" in classes(element)
        or ("nav-link" in classes(element) and (element.get("href") or "").startswith("#"))
    )


def _is_fold(element: Element) -> bool:
    """Whether it is a button that opens a part of the text (and not the site's menu)."""
    if _is_tab(element) or tag(element) not in ("button", "a", "div", "span"):
        return False
    names = classes(element)
    if _CHROME.intersection(names) or any(tag(e) in ("nav", "header") for e in element.iterancestors()):
        return False
    if tag(element) == "button":
        return element.get("aria-expanded") is not None or any(_FOLDS.search(name) for name in names)
    return _toggles(element) == "collapse"


def _toggles(element: Element) -> str:
    return element.get("data-bs-toggle") or element.get("data-toggle") or ""


def _target(
    element: Element, by_id: Mapping[str, Element], by_label: Mapping[str, Element]
) -> Element | None:
    """What the tab or button opens, where one of the two names the other."""
    for name in ("aria-controls", "data-bs-target", "data-target", "href"):
        found = by_id.get((element.get(name) or "").lstrip("#") or "-")
        if found is not None:
            return found
    # onclick="openTab(event, 'gpu')"
    quoted = re.search(r"""["']([\w-]+)["']""", element.get("onclick") or "")
    return by_id.get(quoted[1]) if quoted else by_label.get(element.get("id") or "-")


def _fill_by_order(tabs: dict[Element, Element | None]) -> None:
    """Pair the tabs of a list that names no panels with the panels beside the list, one by one."""
    groups: dict[Element, list[Element]] = {}
    for tab in tabs:
        if (holder := _tab_list(tab)) is not None:
            groups.setdefault(holder, []).append(tab)
    for holder, group in groups.items():
        if all(tabs[tab] is None for tab in group):
            tabs.update(zip(group, _panels_beside(holder), strict=False))


def _tab_list(tab: Element) -> Element | None:
    above = [e for e in tab.iterancestors() if e.get("role") == "tablist" or "nav-tabs" in classes(e)]
    return above[0] if above else tab.getparent()


def _panels_beside(holder: Element) -> Iterator[Element]:
    """The panels next to a list of tabs, or in the element next to it; not those within other panels."""
    for sibling in holder.itersiblings():
        if _is_panel(sibling):
            yield sibling
        elif any(_is_panel(e) for e in sibling):
            yield from (e for e in sibling if _is_panel(e))
        elif tag(sibling) in _HEADINGS:
            return


def _next(button: Element) -> Element | None:
    """The part right below the button, or below the heading that the button is."""
    place = button
    parent = button.getparent()
    if parent is not None and tag(parent) in _HEADINGS:
        place = parent
    following = place.getnext()
    return following if following is not None and tag(following) in ("div", "section") else None


def _fold(panel: Element, button: Element) -> None:
    _show(panel)
    if any(tag(e) in _HEADINGS for e in (*button.iterancestors(), *button.iterdescendants())):
        # A heading leads to the text already.
        button.tag = "span"
        button.attrib.clear()
    elif "".join(str(text) for text in button.itertext()).strip():
        _box(panel, button, "admonition details", "hyce-title")


def _box(panel: Element, label: Element, kind: str, label_kind: str) -> None:
    """Put the panel into a box of its own, below a copy of the label."""
    parent = panel.getparent()
    if parent is None or panel in label.iter():
        return
    name = deepcopy(label)
    name.tag, name.tail = "div", None
    name.attrib.clear()
    name.set("class", label_kind)
    box = etree.Element("div", {"class": kind})
    box.tail, panel.tail = panel.tail, None
    parent.replace(panel, box)
    box.append(name)
    box.append(panel)
    remove(label)


def _show(panel: Element) -> None:
    for name in {"hidden", "aria-hidden", "style"}.intersection(map(str, panel.attrib)):
        del panel.attrib[name]
    kept = [name for name in classes(panel) if name not in ("hidden", "d-none", "is-hidden", "collapse")]
    panel.set("class", " ".join(kept))
