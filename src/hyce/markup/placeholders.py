"""`ssh <username>@login`: in Markdown a tag that no browser knows. A reader is meant to see it."""

from __future__ import annotations

import re

from hyce.markup.words import words

_HTML = words(
    "a abbr acronym address applet area article aside audio b base basefont bdi bdo big blink "
    "blockquote body br button canvas caption center cite code col colgroup data datalist dd del "
    "details dfn dialog dir div dl dt em embed fieldset figcaption figure font footer form frame "
    "frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html i iframe img input ins kbd label legend li "
    "link main map mark marquee math menu menuitem meta meter nav nobr noframes noscript object ol "
    "optgroup option output p param picture pre progress q rp rt ruby s samp script search section "
    "select slot small source span strike strong style sub summary sup svg table tbody td template "
    "textarea tfoot th thead time title tr track tt u ul var video wbr"
)
_DRAWING = words(
    "path g circle rect line polygon polyline ellipse defs use symbol image text tspan lineargradient "
    "stop clippath mask filter pattern marker view desc animate mi mn mo mrow msup msub mfrac mtext "
    "msqrt semantics annotation mtable mtr mtd mover munder mstyle mspace"
)
_TAG = re.compile(r"<(/?)([A-Za-z][\w.:|-]*)((?:\s[^<>]*)?)>")
_DRAWN = re.compile(r"<(svg|math)\b.*?</\1\s*>", re.DOTALL | re.IGNORECASE)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


def escape_placeholders(html: str) -> str:
    """The HTML with its comments gone and tags that are no HTML (`<username>`) turned into text."""
    html = _COMMENT.sub("", html)
    out: list[str] = []
    start = 0
    for drawn in _DRAWN.finditer(html):
        out += [_escape(html[start : drawn.start()]), drawn.group()]
        start = drawn.end()
    return "".join([*out, _escape(html[start:])])


def _escape(html: str) -> str:
    return _TAG.sub(_one, html)


def _one(match: re.Match[str]) -> str:
    name = match[2].lower()
    if name in _HTML or (name in _DRAWING and "=" in match[3]):
        return match[0]
    if "-" in name and "=" in match[3]:
        # A web component: <sl-tab name="...">. Its content is what counts.
        return match[0]
    return f"&lt;{match[1]}{match[2]}{match[3]}&gt;"
