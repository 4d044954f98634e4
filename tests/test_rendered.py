"""Finished web pages whose markup doesn't say where their content is."""

from __future__ import annotations

import string
from pathlib import Path

import pytest

from hyce.parse import parse
from hyce.records import Document, Page

LAYOUTS = Path(__file__).parents[1] / "benchmarks" / "data" / "layouts"
CONTENT = """<p>Each job has a home.</p><h2>Limits</h2><table><tr><th>Queue</th><th>Hours</th></tr>
<tr><td>short</td><td>4</td></tr></table><pre>qsub -q short job.sh</pre>
<div class="admonition note"><p class="admonition-title">Note</p><p>Mind the footer of the file.</p></div>"""
UNITS = ["Each job has a home.", "short | 4", "qsub -q short job.sh", "Mind the footer of the file."]


def page(html: str) -> Page:
    return parse(Document("s", "page.html", "text/html", html, ""))


def units(html: str) -> list[str]:
    return [unit for s in page(html).sections for b in s.blocks for unit in b.units]


def in_layout(name: str) -> str:
    text = (LAYOUTS / f"{name}.html").read_text(encoding="utf-8")
    return string.Template(text).substitute(title="Job limits", content=CONTENT)


@pytest.mark.parametrize("name", ["confluence", "dokuwiki", "drupal", "mediawiki", "wordpress"])
def test_of_a_known_system_the_content_alone_is_read(name: str) -> None:
    assert units(in_layout(name)) == UNITS


@pytest.mark.parametrize("name", ["homemade", "plain"])
def test_of_an_unknown_one_nothing_is_lost(name: str) -> None:
    found = units(in_layout(name))
    assert [unit for unit in found if unit in UNITS] == UNITS


def test_what_is_called_header_menu_or_footer_goes_where_nothing_says_what_the_content_is() -> None:
    found = units(in_layout("homemade"))
    assert not [u for u in found for word in ("portal", "apprentice", "charity", "small files") if word in u]


def test_the_heading_above_the_content_names_the_page() -> None:
    assert page(in_layout("wordpress")).title == "Job limits"
    assert page(in_layout("mediawiki")).title == "Job limits"


def test_a_header_with_the_pages_heading_stays() -> None:
    text = '<body><div id="header"><h1>Quotas</h1><p>By storage.</p></div><p>Each home has one.</p></body>'
    assert units(text) == ["By storage.", "Each home has one."]


def test_a_part_with_half_of_the_page_stays_whatever_it_is_called() -> None:
    text = '<body><p>Short.</p><div class="sidebar"><p>All that matters about this cluster.</p></div></body>'
    assert units(text) == ["Short.", "All that matters about this cluster."]


def test_a_name_that_only_resembles_one_stays() -> None:
    text = (
        '<body><div class="header-format">File headers.</div><div id="menus-of-vim">Menus.</div><p>More.</p>'
    )
    assert units(text) == ["File headers.", "Menus.", "More."]


def test_where_main_content_is_marked_names_within_it_count_for_nothing() -> None:
    text = '<body><main><div class="menu">Kept.</div><p>This as well.</p></main></body>'
    assert units(text) == ["Kept.", "This as well."]


def test_of_several_articles_none_is_the_page() -> None:
    one = '<div class="entry-content"><p>{} news.</p></div>'
    assert units(f"<body>{one.format('Old')}{one.format('New')}</body>") == ["Old news.", "New news."]


def test_the_table_of_contents_beside_the_content_is_no_content() -> None:
    side = '<div class="bd-sidebar-secondary"><p>On this page</p><a>Show Source</a></div>'
    assert units(f"<body><main><article><p>Kept.</p></article>{side}</main></body>") == ["Kept."]
