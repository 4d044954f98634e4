"""How much of a page's own text is read from finished web pages, and how much of what is read is its own.

The sample documentation is rendered by MkDocs and Sphinx with several themes, and put into layouts of wikis
and content management systems (data/layouts). What must be kept is known from the source: every sentence,
list item, table row, line of code, tab and admonition. Everything else on the page is navigation, footer,
banner.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import string
import subprocess
import sys
import tempfile
import venv
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import environment
import lxml.html
import report

from hyce.errors import HyceError
from hyce.markup import to_html
from hyce.parse import parse
from hyce.records import Document
from hyce.sources.files import read

EXAMPLES = environment.REPOSITORY / "examples" / "kestrel"
LAYOUTS = Path(__file__).parent / "data" / "layouts"
PACKAGES = ["mkdocs", "mkdocs-material", "sphinx", "sphinx-design", "sphinx-rtd-theme", "furo"]
PACKAGES += ["pydata-sphinx-theme", "trafilatura", "readability-lxml", "resiliparse"]
KINDS = ("text", "headings", "tables", "code", "tabs", "admonitions")
ENOUGH = 0.8
"""Share of a unit's pairs of neighbouring words that must be found for the unit to count as kept."""
BANNER = (
    '<div class="cc-window" id="consent"><p>This website stores small files on your device in order to '
    "count visits. Choose what you agree to.</p><button>Agree to all</button></div>"
)
FOOTER = (
    '<div class="bottom"><p>University of Northmoor is an exempt charity. Read our accessibility statement.'
    "</p></div>"
)
CRUMBS = '<div class="path"><a href="/">Home</a> » <a href="/h">Handbook of the centre</a></div>'
FOREIGN = (
    "files on your device",
    "exempt charity",
    "edit on github",
    "edit this page",
    "handbook of the centre",
)
"""Words of what must go, which no page of the documentation has."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """A finished web page, and the document it was made from."""

    site: str
    path: str
    html: str
    source: Document


# -- pages -----------------------------------------------------------------------------------------------


def stack(given: str | None) -> str:
    """A Python that has MkDocs, Sphinx and the other readers; made on the first run."""
    if given:
        return given
    folder = environment.CACHE / "extraction"
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        print(f"making {folder}", file=sys.stderr)
        venv.create(folder, with_pip=True, clear=True)
        for packages in (["--upgrade", "pip"], PACKAGES):
            subprocess.run([str(python), "-m", "pip", "install", "--quiet", *packages], check=True)
        (folder / "complete").touch()
    return str(python)


def documents(folder: Path, kind: str) -> list[Document]:
    """The pages of a folder that hyce would index."""
    found = []
    for item in read(str(folder), max_page_bytes=10**7):
        if isinstance(item, Document) and item.media_type == kind:
            try:
                parse(item)
            except HyceError:
                continue
            found.append(item)
    return found


def by_mkdocs(python: str, theme: str, work: Path) -> Iterator[Rendered]:
    config, site = work / f"{theme}.yml", work / theme
    config.write_text(
        f"INHERIT: {EXAMPLES / 'mkdocs.yml'}\ntheme:\n  name: {theme}\nuse_directory_urls: false\n"
        f"docs_dir: {EXAMPLES / 'docs'}\nsite_dir: {site}\nrepo_url: https://github.com/kestrel/docs\n"
        "edit_uri: edit/main/docs/\n",
        encoding="utf-8",
    )
    environment.run([python, "-m", "mkdocs", "build", "--quiet", "-f", str(config)], cwd=EXAMPLES)
    for document in documents(EXAMPLES / "docs", "text/markdown"):
        yield from _rendered(f"MkDocs, {theme}", site, document)


def by_sphinx(python: str, theme: str, work: Path) -> Iterator[Rendered]:
    site, source = work / theme, EXAMPLES / "osprey"
    environment.run([python, "-m", "sphinx", "-q", "-D", f"html_theme={theme}", str(source), str(site)])
    for document in documents(source, "text/x-rst"):
        yield from _rendered(f"Sphinx, {theme}", site, document)


def _rendered(site: str, folder: Path, document: Document) -> Iterator[Rendered]:
    file = folder / Path(document.path).with_suffix(".html")
    if file.exists():
        html = re.sub(r"(<body[^>]*>)", rf"\1{BANNER}{CRUMBS}", file.read_text(encoding="utf-8"), count=1)
        yield Rendered(site, document.path, html.replace("</body>", f"{FOOTER}</body>"), document)


def by_layout(file: Path) -> Iterator[Rendered]:
    """The documentation's own content in a layout without <main> and <article>."""
    layout = string.Template(file.read_text(encoding="utf-8"))
    for document in documents(EXAMPLES / "docs", "text/markdown"):
        html = layout.substitute(title=parse(document).title, content=to_html(document))
        yield Rendered(f"layout: {file.stem}", document.path, html, document)


def pages(python: str) -> list[Rendered]:
    found: list[Rendered] = []
    with tempfile.TemporaryDirectory() as folder:
        for theme in ("material", "mkdocs", "readthedocs"):
            found += by_mkdocs(python, theme, Path(folder))
        for theme in ("sphinx_rtd_theme", "furo", "pydata_sphinx_theme"):
            found += by_sphinx(python, theme, Path(folder))
    for file in sorted(LAYOUTS.glob("*.html")):
        found += by_layout(file)
    return found


# -- what must be kept -----------------------------------------------------------------------------------

_BOXES = {"tabbed-set": "tabs", "hyce-tabs": "tabs", "admonition": "admonitions"}
_BLOCKS = {"p", "li", "dt", "dd", "div", "section", "ul", "ol", "dl", "table", "pre", "details", "blockquote"}
_BLOCKS |= {"h1", "h2", "h3", "h4", "h5", "h6", "summary", "label", "tr", "aside", "figure", "caption"}


def units(document: Document) -> list[tuple[str, str]]:
    """(kind, text) of everything that the source says. The source's own HTML is read, not hyce's blocks."""
    tree = lxml.html.fromstring(f"<div>{to_html(document)}</div>")
    found = ((kind, re.sub(r":[a-z]+-[a-z0-9-]+:", "", text)) for kind, text in _walk(tree, ""))  # emoji
    return [(kind, text) for kind, text in found if words(text)]


def _walk(element: lxml.html.HtmlElement, box: str) -> Iterator[tuple[str, str]]:
    name = element.tag if isinstance(element.tag, str) else ""
    for marker in (element.get("class") or "").split():
        box = box or _BOXES.get(marker, "")
    box = box or ("admonitions" if name == "details" else "")
    if name == "pre":
        yield from ((box or "code", line) for line in element.text_content().splitlines())
    elif name == "tr":
        yield box or "tables", " ".join(cell.text_content() for cell in element)
    elif re.fullmatch("h[1-6]", name):
        yield box or "headings", element.text_content()
    elif name not in ("script", "style"):
        yield from ((box or "text", part) for part in _sentences(_own(element)))
        for child in element:
            if _is_block(child):
                yield from _walk(child, box)


def _is_block(element: lxml.html.HtmlElement) -> bool:
    return any(e.tag in _BLOCKS for e in element.iter())


def _own(element: lxml.html.HtmlElement) -> str:
    """The element's running text, without that of blocks within it."""
    parts = [element.text or ""]
    for child in element:
        parts += ["\n" if _is_block(child) else child.text_content(), child.tail or ""]
    return "".join(parts)


def _sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.?!:])\s+|\n{2,}", text)


# -- scoring ---------------------------------------------------------------------------------------------


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def pairs(text: str) -> set[tuple[str, ...]]:
    """Neighbouring words; a single word is a pair by itself."""
    found = words(text)
    return set(itertools.pairwise(found)) or {tuple(found)}


def score(text: str, page: Rendered) -> Counter[str]:
    """Units kept and wanted by kind, words read and those that belong, whether anything foreign is read."""
    wanted = units(page.source)
    read_pairs, read_words = pairs(text), words(text)
    singles = {(word,) for word in read_words}
    counted: Counter[str] = Counter()
    for kind, unit in wanted:
        own = pairs(unit)
        kept = len(own & (read_pairs | singles)) >= ENOUGH * len(own)
        counted.update({f"{kind} wanted": 1, f"{kind} kept": int(kept)})
    belongs = pairs(" ".join(unit for _, unit in wanted)).union(*(pairs(unit) for _, unit in wanted))
    belongs |= pairs(parse(page.source).title)
    around = zip(["", *read_words], read_words, [*read_words[1:], ""], strict=False)
    counted["read"] = len(read_words)
    counted["own"] = sum(
        (before, word) in belongs or (word, after) in belongs or (word,) in belongs
        for before, word, after in around
    )
    counted["foreign"] = any(phrase in " ".join(read_words) for phrase in FOREIGN)
    counted["pages"] = 1
    return counted


def by_hyce(page: Rendered) -> str:
    """All that hyce reads of the page, headings and labels of boxes said once."""
    document = replace(page.source, media_type="text/html", text=page.html, path=f"{page.path}.html")
    parsed = parse(document)
    lines = [parsed.title]
    for section in parsed.sections:
        lines += section.heading[-1:]
        for block in section.blocks:
            lines += [block.head, *block.units]
    return "\n".join(lines)


def row(site: str, reader: str, counted: Counter[str]) -> dict[str, report.Cell]:
    shares: dict[str, report.Cell] = {
        kind: round(counted[f"{kind} kept"] / counted[f"{kind} wanted"], 3)
        if counted[f"{kind} wanted"]
        else "-"
        for kind in KINDS
    }
    own = round(counted["own"] / counted["read"], 3) if counted["read"] else 0.0
    return {
        "pages": site,
        "reader": reader,
        **shares,
        "precision": own,
        "with foreign text": counted["foreign"],
    }


def readings(python: str, found: Sequence[Rendered]) -> Iterator[tuple[Rendered, str, str]]:
    """(page, reader, text)."""
    for page in found:
        yield page, "hyce", by_hyce(page)
    with tempfile.TemporaryDirectory() as folder:
        given = Path(folder) / "pages"
        lines = (json.dumps({"page": number, "html": page.html}) for number, page in enumerate(found))
        given.write_text("\n".join(lines), encoding="utf-8")
        script = str(Path(__file__).with_name("extract_readers.py"))
        for line in environment.run([python, script], stdin=given).stdout.decode().splitlines():
            said = json.loads(line)
            yield found[said["page"]], said["reader"], said["text"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stack", metavar="PYTHON", help="a Python that has what PACKAGES names")
    options = parser.parse_args()
    python = stack(options.stack)
    found = pages(python)
    sites: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    groups: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for page, reader, text in readings(python, found):
        counted = score(text, page)
        sites[page.site, reader].update(counted)
        group = (
            "layouts of wikis and content management" if page.site.startswith("layout") else "MkDocs, Sphinx"
        )
        groups[group, reader].update(counted)
    versions = json.loads(
        environment.run([python, str(Path(__file__).with_name("extract_readers.py")), "--versions"]).stdout
    )
    notes = [
        "Text to admonitions: the share that is kept of sentences and list items, headings, table rows, "
        f"lines of code. One is kept when {ENOUGH:.0%} of its pairs of neighbouring words are found in what "
        "was read. What stands in a tab or an admonition counts there, whatever it is.",
        "Precision: the share of the words read that stand beside the same neighbour in the source.",
        "With foreign text: pages of which a banner, footer, breadcrumb or edit link was read.",
        "The layouts were written for this measurement, with the names that such systems give to the parts "
        "of a page. `homemade` and `plain` follow no such names; hyce keeps there what it doesn't know.",
        "To repeat: `python benchmarks/extraction.py`.",
    ]
    title = "Reading finished web pages"
    report.write("extraction", title, [row(*key, groups[key]) for key in sorted(groups)], notes, versions)
    rows = [row(*key, sites[key]) for key in sorted(sites)]
    print(
        report.write("extraction_sites", f"{title}: by site", rows, notes, versions).read_text(
            encoding="utf-8"
        )
    )


if __name__ == "__main__":
    main()
