# ruff: noqa: E501  (samples of markup read best as they stand)
"""HTML -> sections of blocks, and which pages are hidden."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyce.errors import SourceError
from hyce.parse import Hidden, paragraphs, parse
from hyce.records import Block, Document, Page


def document(
    text: str, media_type: str = "text/html", path: str = "guide/page.html", title: str | None = None
) -> Document:
    return Document("/nowhere", path, media_type, text, "", "https://docs.example.org/guide/page/", title)


def page_of(text: str, media_type: str = "text/html") -> Page:
    return parse(document(text, media_type))


def blocks(text: str) -> list[Block]:
    return [block for section in page_of(text).sections for block in section.blocks]


def units(text: str) -> list[str]:
    return [unit for block in blocks(text) for unit in block.units]


def shown(page: Page) -> str:
    parts = [page.title]
    for section in page.sections:
        parts += section.heading
        for block in section.blocks:
            parts += [block.head, *block.units]
    return "\n".join(parts)


# -- headings --------------------------------------------------------------------------------------------


def test_headings_make_paths_and_anchors() -> None:
    page = page_of(
        "<p>Before.</p><h1 id='t'>Title</h1><p>a</p><h2 id='x'>Two<a class='headerlink' href='#x'>¶</a></h2><p>b</p>"
        "<h4>Four</h4><p>c</p><h3><a name='y'></a>Three</h3><p>d</p><section id='z'><h2>Last</h2><p>e</p></section>"
    )
    assert page.title == "Title"
    assert [(section.heading, section.anchor) for section in page.sections] == [
        (("Title",), ""),
        (("Title",), "t"),
        (("Title", "Two"), "x"),
        (("Title", "Two", "Four"), ""),
        (("Title", "Two", "Three"), "y"),
        (("Title", "Last"), "z"),
    ]


@pytest.mark.parametrize(
    ("text", "media_type", "path", "known", "expected"),
    [
        ("<h1>Own</h1><p>x</p>", "text/html", "a.html", "Known", "Own"),
        ("---\ntitle: Front\n---\ntext", "text/markdown", "a.md", "Known", "Front"),
        ("title: Front\n\n<h2>Other</h2>text", "text/markdown", "a.md", "Known", "Front"),
        ("---\ntitle: Quotas\n---\n# Disk quotas\n\ntext", "text/markdown", "a.md", None, "Disk quotas"),
        (
            "<title>Guide : Jobs</title><h1><span id='title-text'>Guide : Jobs</span></h1>"
            "<div id='main-content'><h1>One</h1><p>x</p><h1>Two</h1><p>y</p></div>",
            "text/html",
            "a.html",
            None,
            "Jobs",
        ),
        ("text", "text/markdown", "a.md", "Known", "Known"),
        ("<title>Quotas - The Guide</title><p>x</p>", "text/html", "a.html", None, "Quotas"),
        ("text", "text/markdown", "storage/disk-quota_limits.md", None, "Disk quota limits"),
        ("text", "text/markdown", "storage/index.md", None, "Storage"),
        ("x", "text/x-script", "jobs/gpu.sh", "Known", "gpu.sh"),
    ],
)
def test_the_title_is_the_pages_own_if_it_has_one(
    text: str, media_type: str, path: str, known: str | None, expected: str
) -> None:
    page = parse(document(text, media_type, path, known))
    assert page.title == expected
    assert all(section.heading[0] == expected for section in page.sections)


def test_a_heading_that_repeats_the_title_is_not_in_the_path_again() -> None:
    page = page_of("---\ntitle: Storage\n---\n## storage\n\ntext\n\n## Quota\n\nmore", "text/markdown")
    assert [section.heading for section in page.sections] == [("Storage",), ("Storage", "Quota")]


# -- dates and hidden pages ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "media_type", "expected"),
    [
        ("---\ndate: 2024-03-05\n---\ntext", "text/markdown", "2024-03-05"),
        ("---\ndate: {created: 2020-01-01, updated: 2024-03-05}\n---\ntext", "text/markdown", "2024-03-05"),
        ("date: 2020-01-01\nlast_updated: 5 March 2024\n\ntext", "text/markdown", "2024-03-05"),
        (
            "<head><meta name='dcterms.modified' content='2024-03-05T10:00Z'></head><p>x",
            "text/html",
            "2024-03-05",
        ),
        ("<p>x <time datetime='2024-03-05'>March</time>", "text/html", "2024-03-05"),
        (
            "<p>x</p><div class='page-metadata'>Created 1 May 2020, last changed by N on Mar 05, 2024</div>",
            "text/html",
            "2024-03-05",
        ),
        (
            "<p>x</p><footer><span class='lastupdated'>Last updated: 2024-03-05</span>",
            "text/html",
            "2024-03-05",
        ),
        ("T\n=\n\n:date: 2024-03-05\n\ntext", "text/x-rst", "2024-03-05"),
        ("text", "text/markdown", None),
    ],
)
def test_the_date_of_the_last_change(text: str, media_type: str, expected: str | None) -> None:
    assert page_of(text, media_type).date == expected


@pytest.mark.parametrize(
    ("text", "media_type"),
    [
        ("---\nsearch:\n  exclude: true\n---\n# A\n\ntext", "text/markdown"),
        ("---\ndraft: true\n---\n# A\n\ntext", "text/markdown"),
        ("---\npublished: false\n---\n# A\n\ntext", "text/markdown"),
        ("---\nhidden: true\n---\n# A\n\ntext", "text/markdown"),
        ("---\nredirect_to: /other/\n---\n# A\n\ntext", "text/markdown"),
        ("# Old\n\nThis page has moved to [the new one](../new.md).", "text/markdown"),
        ("[This page has moved](../new.md)", "text/markdown"),
        ("# Old\n\nThe documentation of scratch is now located at [Storage](../s.md).", "text/markdown"),
        ("<head><meta http-equiv='refresh' content='0; url=/new/'></head><body><p>text", "text/html"),
        (":nosearch:\n\nT\n=\n\ntext", "text/x-rst"),
    ],
)
def test_hidden_pages_and_stubs(text: str, media_type: str) -> None:
    with pytest.raises(Hidden):
        page_of(text, media_type)


@pytest.mark.parametrize(
    "text",
    [
        "---\nhide: [toc, navigation]\n---\ntext",
        "---\ndraft: false\npublished: true\n---\ntext",
        "Your data has been moved to tape after 90 days; ask us to bring it back.",
        "This page has moved.\n\n" + "It says a lot more. " * 40,
    ],
)
def test_pages_that_are_not_hidden(text: str) -> None:
    assert page_of(text, "text/markdown").sections


@pytest.mark.parametrize("text", ["<html></html>", "<nav>Home</nav>", "<p> </p>", "<!-- only -->"])
def test_a_page_without_text_is_an_error(text: str) -> None:
    with pytest.raises(SourceError, match="no text"):
        page_of(text)


@pytest.mark.parametrize("text", ["<h1>Known issues</h1>", "<h1>Guide</h1><h2>Later</h2>"])
def test_a_page_of_headings_alone_is_left_out(text: str) -> None:
    with pytest.raises(Hidden, match="headings"):
        page_of(text)


def test_a_title_that_says_something_else_is_not_in_the_path() -> None:
    page = page_of("---\ntitle: Web access\n---\n# OnDemand\n\na\n\n## Log in\n\nb", "text/markdown")
    assert page.title == "Web access"
    assert [section.heading for section in page.sections] == [
        ("OnDemand",),
        ("OnDemand", "Log in"),
    ]


def test_a_section_kept_out_of_search_is_left_out() -> None:
    page = page_of(
        "# T\n\nIn.\n\n## Out { data-search-exclude }\n\nHidden words.\n\n### Below\n\nToo.\n\n## In\n\nAgain.",
        "text/markdown",
    )
    assert "Hidden words" not in shown(page)
    assert "Too." not in shown(page)
    assert "Again." in shown(page)


# -- chrome and hidden elements --------------------------------------------------------------------------

CHROME = """<!DOCTYPE html><html><head><title>T</title><style>x</style><script>var a</script></head><body>
<header><nav>Menu</nav>Header</header><div class="md-sidebar">Sidebar</div>
<main><article><nav class="breadcrumbs">Crumbs</nav><h1>Title<a class="headerlink" href="#t">¶</a></h1>
<p>Kept.</p><p hidden>Hidden1</p><p style="display: none">Hidden2</p><span aria-hidden="true">Hidden3</span>
<p style="font-size:0">Hidden4</p><span class="visually-hidden">Hidden5</span><!-- Comment -->
<aside class="admonition note"><p class="admonition-title">Note</p><p>Aside kept.</p></aside>
<aside class="sidebar">Aside</aside><button>Copy</button><form><input value="x"><button>Send</button></form>
<div class="toc"><ul><li>Contents</li></ul></div><svg><text>Drawn</text></svg></article>
<footer>Last changed</footer></main><footer>Footer</footer><noscript>Enable</noscript></body></html>"""


def test_the_page_around_the_content_is_dropped() -> None:
    assert units(CHROME) == ["Kept.", "Aside kept."]


def test_without_a_main_element_headers_navigation_and_footers_are_dropped() -> None:
    text = "<body><header>Head</header><nav>Menu</nav><div><h1>T</h1><p>Kept.</p></div><aside>Ad</aside><footer>Foot</footer>"
    assert units(text) == ["Kept."]


def test_invisible_and_reordering_characters_are_gone() -> None:
    assert units("<p>a\u200bb \u202ereversed\u202c \x07bell\u00ad</p>") == ["ab reversed bell"]


# -- blocks ----------------------------------------------------------------------------------------------


def test_sentences_are_the_units_of_a_paragraph() -> None:
    text = "<p>Use e.g. srun. It starts a job! See Fig. 3 of v. 2.1 (p. 4). Why? <br>New line. i.e. not a sentence</p>"
    assert blocks(text) == [
        Block("paragraph", ("Use e.g. srun.", "It starts a job!", "See Fig. 3 of v. 2.1 (p. 4).", "Why?", "New line. i.e. not a sentence"))
    ]  # fmt: skip


def test_nested_lists_stay_with_their_item() -> None:
    text = "<ul><li>a<ol><li>b</li><li>c</li></ol>after</li><li><p>d</p><pre>x\n  y</pre></li></ul>"
    assert blocks(text) == [Block("list", ("- a\n  1. b\n  2. c\n  after", "- d\n  x\n    y"))]


def test_a_long_item_is_the_head_of_what_it_holds() -> None:
    inner = "".join(f"<li>item {n} with quite a few words to make the list long</li>" for n in range(20))
    found = blocks(f"<ul><li>Short.</li><li>Queues that you can use:<ul>{inner}</ul></li><li>End.</li></ul>")
    assert [block.head for block in found] == ["", "- Queues that you can use:", ""]
    assert len(found[1].units) == 20


TABLE = """<table><caption>Limits</caption>
<tr><th rowspan=2>Queue</th><th colspan=2>Memory</th></tr><tr><th>min</th><th>max</th></tr>
<tr><td rowspan="2">short</td><td>1</td><td>2</td></tr><tr><td colspan="2">3<br>4</td></tr>
<tr><td colspan=3>All of them</td></tr><tr><td></td><td></td><td></td></tr><tr><td>x</td><td>✅</td><td>❌</td></tr></table>"""


def test_spans_are_resolved_and_headings_merged() -> None:
    assert blocks(TABLE) == [
        Block(
            "table",
            ("short | 1 | 2", "short | 3; 4 | 3; 4", "All of them", "x | yes | no"),
            "Limits\nQueue | Memory min | Memory max",
        )
    ]


def test_a_table_without_headings_and_one_with_row_headings() -> None:
    assert blocks("<table><tr><td>a</td><td>b</td></tr></table>") == [Block("table", ("a | b",), "")]
    assert blocks("<table><tr><th>a</th><td>b</td></tr><tr><th>c</th><td>d</td></tr></table>") == [
        Block("table", ("a | b", "c | d"), "")
    ]


def test_a_table_of_headings_alone_keeps_them() -> None:
    assert units("<table><thead><tr><th>a</th><th>b</th></tr></thead></table>") == ["a | b"]


def test_layout_tables_are_read_cell_by_cell() -> None:
    text = "<table><tr><td><h2>Left</h2><p>One.</p></td><td><table><tr><td>a</td><td>b</td></tr></table></td></tr></table>"
    assert units(text) == ["One.", "a | b"]


def test_code_keeps_lines_indentation_and_continuations() -> None:
    text = "<pre><code>\nfor x in 1; do\n\trun \\\n  --now\n\n\ndone  \n</code></pre>"
    assert blocks(text) == [Block("code", ("for x in 1; do", "    run \\\n  --now\n\n", "done"))]


def test_line_numbers_are_no_code() -> None:
    text = (
        '<table class="highlighttable"><tr><td class="linenos"><pre>1\n2</pre></td>'
        '<td class="code"><pre>a\nb</pre></td></tr></table>'
    )
    assert blocks(text) == [Block("code", ("a", "b"))]


@pytest.mark.parametrize(
    "text",
    [
        '<div class="sd-tab-set"><input type="radio"><label class="sd-tab-label">A</label><div class="sd-tab-content">'
        '<p>one</p></div><input><label class="sd-tab-label">B</label><div class="sd-tab-content"><p>two</p></div></div>',
        '<div class="sphinx-tabs"><div role="tablist"><button role="tab" id="t1">A</button><button role="tab" id="t2">B</button>'
        '</div><div role="tabpanel" aria-labelledby="t1"><p>one</p></div>'
        '<div role="tabpanel" aria-labelledby="t2" hidden><p>two</p></div></div>',
        '<div><ul class="nav nav-tabs"><li><a class="nav-link" href="#p">A</a></li><li><a class="nav-link" href="#q">B</a></li>'
        '</ul><div class="tab-content"><div class="tab-pane" id="p"><p>one</p></div><div class="tab-pane" id="q"><p>two</p></div></div></div>',
        '<div class="tabbed-set"><input><label>A</label><div class="tabbed-content"><p>one</p></div>'
        '<label>B</label><div class="tabbed-content"><p>two</p></div></div>',
    ],
)  # fmt: skip
def test_tabs_of_the_usual_site_builders(text: str) -> None:
    assert [(block.head, block.units) for block in blocks(text)] == [("A:", ("one",)), ("B:", ("two",))]


TABS_AMONG_TEXT = """<p>before</p><ul class="nav nav-tabs" role="tablist">
<li><a href="#lin" role="tab" data-toggle="tab">Linux</a></li><li><a href="#win" role="tab" data-toggle="tab">Windows</a></li></ul>
<div class="tab-content"><div role="tabpanel" class="tab-pane" id="lin"><p>rsync</p></div>
<div role="tabpanel" class="tab-pane" id="win" style="display:none"><p>WinSCP</p></div></div><p>after</p>"""


def test_text_around_tabs_stays_in_its_place() -> None:
    assert [(block.head, block.units) for block in blocks(TABS_AMONG_TEXT)] == [
        ("", ("before",)),
        ("Linux:", ("rsync",)),
        ("Windows:", ("WinSCP",)),
        ("", ("after",)),
    ]


@pytest.mark.parametrize(
    "text",
    [
        '<button class="accordion">More space?</button><div class="panel" style="display:none"><p>Ask.</p></div>',
        '<button aria-expanded="false" aria-controls="p">More space?</button><div id="p" hidden><p>Ask.</p></div>',
        '<a data-toggle="collapse" href="#p">More space?</a><div id="p" class="collapse hidden"><p>Ask.</p></div>',
        '<div class="expand-container"><div class="expand-control">More space?</div><div><p>Ask.</p></div></div>',
    ],
)
def test_accordions_are_open(text: str) -> None:
    assert blocks(text) == [Block("note", ("Ask.",), "More space?")]


def test_an_accordion_of_headings_is_a_list_of_sections() -> None:
    page = page_of(
        '<h2 id="q"><button data-bs-toggle="collapse" data-bs-target="#a" aria-expanded="false">More?</button></h2>'
        '<div id="a" class="collapse" hidden>Ask.</div>'
    )
    assert [(s.heading[-1], s.anchor, s.blocks[0].units) for s in page.sections] == [
        ("More?", "q", ("Ask.",))
    ]


def test_the_menus_of_a_site_stay_closed() -> None:
    text = '<nav><button aria-expanded="false" aria-controls="m">Menu</button></nav><div id="m" hidden>Home</div><p>x'
    assert units(text) == ["x"]


def test_a_button_in_a_sentence_is_a_word() -> None:
    assert units("<p>Press <button>Save</button> twice.</p><button>Copy</button>") == ["Press Save twice."]


def test_line_anchors_and_editing_links_are_no_words() -> None:
    text = (
        '<pre><a id="__codelineno-0-1" name="__codelineno-0-1" href="#__codelineno-0-1"></a>srun</pre>'
        '<p>a<span class="mw-editsection"><a href="/e">edit</a></span></p>'
    )
    assert units(text) == ["srun", "a"]


def test_an_endless_head_stands_once() -> None:
    columns = [f"column{i}" for i in range(100)]
    text = f"<table><tr><th>{'<th>'.join(columns)}</tr><tr><td>1<td>2</tr></table>"
    assert blocks(text) == [Block("table", (" | ".join(columns), "1 | 2"))]
    title = "Many words. " * 60
    found = blocks(f"<details><summary>{title}</summary><p>text</p></details>")
    assert [block.head for block in found] == ["", ""]
    assert " ".join(found[0].units) == title.strip()


def test_details_are_open() -> None:
    assert blocks("<details><summary>How long?</summary>A day.</details>") == [
        Block("note", ("A day.",), "How long?")
    ]


def test_links_images_and_marks() -> None:
    text = (
        '<p><a href="https://x.org/a">Form</a>, <a href="https://docs.example.org/b">page</a>, <a href="/c">c</a>, '
        '<a href="mailto:h@x.org?subject=s">us</a>, <a href="https://x.org">x.org</a>, <img src="a.png" alt="a.png">'
        "x<sup>2</sup>, <del>old</del>, <q>said</q>, <a href='javascript:x()'>run</a></p>"
    )
    assert units(text) == ['Form <https://x.org/a>, page, c, us <h@x.org>, x.org, x^2, ~~old~~, "said", run']


def test_paragraph_mode_is_the_text_of_p_elements_alone() -> None:
    page = paragraphs(
        document(
            "# T\n\nOne sentence. Two.\n\n- item\n\n| a |\n|---|\n| 1 |\n\n```\ncode\n```\n\nLast.",
            "text/markdown",
        )
    )
    assert page.title == "T"
    assert [block for section in page.sections for block in section.blocks] == [
        Block("paragraph", ("One sentence. Two.",)),
        Block("paragraph", ("Last.",)),
    ]


def test_paragraph_mode_leaves_out_a_page_without_any() -> None:
    with pytest.raises(Hidden, match="no <p> text"):
        paragraphs(document("<ul><li>a</li></ul>"))


# -- whatever a page holds -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "<div>" * 5000 + "deep" + "</div>" * 5000 + "<p>after</p>",
        "<ul><li>deep" * 3000 + "<p>after</p>",
        "<table><tr><td>deep" * 400 + "<p>after</p>",
        "<p><b><i>deep<p>after</b>",
        "<p>deep<table><p>after",
        "<?xml version='1.0' encoding='ascii'?><html><p>deep<p>after ä",
        "<p>deep \x00\x01 <p>after \ud800",
        "<table><tr><td colspan=99999 rowspan=0>deep</td></tr><tr><td colspan=x>after</td></tr></table>",
    ],
)
def test_broken_and_endless_markup_keeps_its_text(text: str) -> None:
    found = shown(page_of(text))
    assert "deep" in found
    assert "after" in found


WORD = st.from_regex(r"[a-z]{4,9}q[a-z]{2}", fullmatch=True)
WORDS = st.lists(WORD, min_size=1, max_size=6).map(" ".join)


def _list(items: list[str]) -> str:
    return "<ul>" + "".join(f"<li>{item}</li>" for item in items) + "</ul>"


def _table(rows: list[list[str]]) -> str:
    return (
        "<table>"
        + "".join("<tr>" + "".join(f"<td>{c}</td>" for c in row) + "</tr>" for row in rows)
        + "</table>"
    )


HTML = st.recursive(
    st.one_of(
        WORDS,
        WORDS.map("<p>{}</p>".format),
        WORDS.map("<pre>{}\n</pre>".format),
        WORDS.map("<h3>{}</h3>".format),
    ),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(" ".join),
        st.lists(inner, min_size=1, max_size=3).map(_list),
        st.lists(st.lists(inner, min_size=1, max_size=3), min_size=1, max_size=3).map(_table),
        st.tuples(WORDS, inner).map(lambda p: f"<details><summary>{p[0]}</summary>{p[1]}</details>"),
        st.tuples(WORDS, inner).map(
            lambda p: f'<div class="admonition tip"><p class="admonition-title">{p[0]}</p>{p[1]}</div>'
        ),
        st.tuples(WORDS, inner).map(lambda p: f"<dl><dt>{p[0]}</dt><dd>{p[1]}</dd></dl>"),
        st.tuples(WORDS, inner).map(
            lambda p: (
                f'<div class="tab-set"><label class="tab-label">{p[0]}</label><div class="tab-content">{p[1]}</div></div>'
            )
        ),
    ),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(HTML)
def test_no_word_of_a_page_is_lost(text: str) -> None:
    words = set(re.findall(r"[a-z]{4,9}q[a-z]{2}", re.sub(r"<[^>]*>", " ", text)))
    found = shown(page_of(f"<main><h1>T</h1><p>Words.</p>{text}</main>"))
    assert words <= set(re.findall(r"[a-z]+", found))


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200))
def test_any_text_is_read_without_an_accident(text: str) -> None:
    for media_type, source in (
        ("text/markdown", text),
        ("text/x-rst", text),
        ("text/plain", text),
        ("text/html", text),
        ("text/html", f"<p>{html.escape(text)}"),
    ):
        try:
            page = page_of(source, media_type)
        except SourceError:
            continue
        assert all(
            unit.strip() for section in page.sections for block in section.blocks for unit in block.units
        )


MARKUP_LINES = st.sampled_from(
    ["- alpha", "  - beta", "    - gamma", "1. delta", "   text", "```", "```bash", "    ```", "!!! note", "    kappa",
     '=== "Tab"', "| a | b |", "|---|---|", "# Head", "", "", "> quote", "<div>", "</div>", "<!--", "-->", ".. note:: lambda",
     "====", "* mu", ":::{tip}", ":::", "[a][b-c]", "word", "    .. code-block:: x", "  :opt: 1", "+---+", "__", "`` `"]
)  # fmt: skip


@settings(max_examples=120, deadline=None)
@given(st.lists(MARKUP_LINES, min_size=1, max_size=25), st.sampled_from(["text/markdown", "text/x-rst"]))
def test_markup_in_any_order_keeps_its_plain_words(lines: list[str], media_type: str) -> None:
    text = "\n".join(["first", "", *lines, "", "omega", ""])
    try:
        found = shown(page_of(text, media_type))
    except SourceError:
        found = ""
    if media_type == "text/markdown" and "<!--" not in lines:
        assert "first" in found
        assert "omega" in found
