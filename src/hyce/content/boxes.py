"""Labelled boxes: tabs, admonitions and collapsed parts, in the markup of the usual site builders."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hyce.content.inline import Inline
from hyce.content.text import one_line, visible
from hyce.content.tree import Element, classes, tag
from hyce.markup.words import words

_TAB_SETS = words("tabbed-set sd-tab-set tab-set sphinx-tabs hyce-tabs")
_TAB_LABELS = words("sd-tab-label tab-label hyce-tab-label")
_ADMONITION_TITLES = words("admonition-title hyce-title")
_WARNINGS = words("warning caution danger error important attention critical")
_PLAIN = words(
    "admonition docutils container dropdown sd-dropdown toggle details inline end left right alert "
    "collapsible"
)


@dataclass(frozen=True, slots=True)
class Label:
    """What is written above a box."""

    text: str
    is_tab: bool = False
    is_note: bool = False
    colon: bool = False

    @property
    def line(self) -> str:
        if (
            self.text
            and (self.is_tab or self.is_note or self.colon)
            and self.text[-1] not in ".:?!\u2026"
            and ": " not in self.text
        ):
            return f"{self.text}:"
        return self.text


def heads(context: list[Label]) -> str:
    """The labels as lines, outermost first; tabs within tabs on one line: `Merlin > GPU:`."""
    lines: list[str] = []
    previous: Label | None = None
    for label in context:
        if not label.text:
            continue
        if label.is_tab and previous is not None and previous.is_tab:
            lines[-1] = f"{lines[-1].rstrip(':')} > {label.line}"
        else:
            lines.append(label.line)
        previous = label
    return "\n".join(lines)


def is_box(element: Element) -> bool:
    name, names = tag(element), set(classes(element))
    return bool(name == "details" or names & _TAB_SETS or _is_admonition(names) or _panels(element))


def _is_admonition(names: set[str]) -> bool:
    return "admonition" in names or "theme-admonition" in names or "starlight-aside" in names


def parts(element: Element, inline: Inline) -> Iterator[tuple[Label, list[Element]]]:
    """(label, elements it stands above) for each tab, or for the one admonition."""
    if set(classes(element)) & _TAB_SETS or _panels(element):
        yield from _tabs(element, inline)
    else:
        yield _admonition(element, inline)


def _tabs(element: Element, inline: Inline) -> Iterator[tuple[Label, list[Element]]]:
    panels = _panels(element)
    if panels:
        yield from _aria_tabs(element, panels, inline)
        return
    labels = [e for e in element if "tabbed-labels" in classes(e)]
    contents = [e for e in element if "tabbed-content" in classes(e)]
    if labels and contents:
        names = [e for e in labels[0].iter() if tag(e) == "label"]
        blocks = [e for e in contents[0] if "tabbed-block" in classes(e)]
        for i, block in enumerate(blocks):
            yield _tab(names[i] if i < len(names) else None, inline), [block]
        return
    label: Label = Label("", is_tab=True)
    for child in element:
        if tag(child) == "label" or _TAB_LABELS & set(classes(child)):
            label = _tab(child, inline)
        elif tag(child) != "input":
            yield label, [child]


def _tab(element: Element | None, inline: Inline) -> Label:
    text = one_line(visible(inline.text(element))) if element is not None else ""
    return Label(text, is_tab=True)


def _panels(element: Element) -> list[Element]:
    """The tab panels right below an element that also holds the list of their names."""
    names = classes(element)
    if "sphinx-tabs" not in names and not any(_is_tab_list(e) for e in element):
        return []
    found = element.xpath(".//*[@role='tabpanel'] | .//div[contains(@class, 'tab-pane')]")
    return (
        [e for e in found if isinstance(e, type(element)) and not _within(e, element, found)]
        if isinstance(found, list)
        else []
    )


def _is_tab_list(element: Element) -> bool:
    return element.get("role") == "tablist" or "nav-tabs" in classes(element)


def _within(panel: Element, stop: Element, panels: Sequence[object]) -> bool:
    """Whether the panel lies within another panel (tabs within tabs)."""
    return any(ancestor in panels for ancestor in panel.iterancestors() if ancestor is not stop)


def _aria_tabs(
    element: Element, panels: list[Element], inline: Inline
) -> Iterator[tuple[Label, list[Element]]]:
    tab_list = next((e for e in element.iter() if _is_tab_list(e)), None)
    names = (
        []
        if tab_list is None
        else [e for e in tab_list.iter() if e.get("role") == "tab" or "nav-link" in classes(e)]
    )
    by_id = {e.get("id"): e for e in names if e.get("id")}
    by_panel = {(e.get("aria-controls") or e.get("href") or "").lstrip("#"): e for e in names}
    for i, panel in enumerate(panels):
        name = by_panel.get(panel.get("id") or "-")
        if name is None:
            name = by_id.get((panel.get("aria-labelledby") or "-").split(" ")[0])
        if name is None and i < len(names):
            name = names[i]
        yield _tab(name, inline), [panel]


def _admonition(element: Element, inline: Inline) -> tuple[Label, list[Element]]:
    title = next((e for e in element if _is_title(e)), None)
    text = ""
    if title is not None:
        text = one_line(visible(inline.text(title)))
        # The text behind the title belongs to the box.
        tail, parent = title.tail, title.getparent()
        before = title.getprevious()
        if tail and before is not None:
            before.tail = (before.tail or "") + tail
        elif tail:
            element.text = (element.text or "") + tail
        if parent is not None:
            parent.remove(title)
    return Label(_named(_kind(element), text), is_note=True), [element]


def _is_title(element: Element) -> bool:
    names = classes(element)
    return bool(
        tag(element) == "summary"
        or _ADMONITION_TITLES & set(names)
        or "starlight-aside__title" in names
        or any("admonitionHeading" in name for name in names)
    )


def _kind(element: Element) -> str:
    for name in classes(element):
        kind = name.removeprefix("theme-admonition-").removeprefix("starlight-aside--")
        if kind not in _PLAIN and not kind.startswith(
            ("admonition", "theme-", "sd-", "starlight", "alert", "is-", "md-")
        ):
            return kind.lower()
    return ""


def _named(kind: str, title: str) -> str:
    """`Warning: Scratch is purged`; the kind alone or the title alone where one says the other."""
    words = kind.replace("-", " ").replace("_", " ")
    if not title:
        return words.capitalize() if kind in _WARNINGS else ""
    if not words or title.lower().replace(" ", "").startswith(words.replace(" ", "")):
        return title
    return f"{words.capitalize()}: {title}"
