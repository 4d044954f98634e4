"""The three reports of a run, on what strangers' text may do in them, and the command that writes them."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import lxml.html
import markdown as python_markdown
import pytest
from hyce_home import Home
from small_run import BASE, HYCE, QUESTIONS, ROWS, RUN, SET, result, results, verdict, write

from hyce.evaluate.records import Evidence, Given, Question, Result, Run
from hyce.evaluate.report import report_json
from hyce.evaluate.report.compare import Comparison, compare
from hyce.evaluate.report.markdown import inline, markdown
from hyce.evaluate.report.page import page
from hyce.evaluate.report.plots import plots
from hyce.evaluate.report.summary import summarise

GOLDEN = Path(__file__).with_name("golden") / "report.md"
WORSE = replace(
    RUN,
    results=results("base", {**BASE, "q1": ((0, 0), (0, 1)), "q3": ((1, 1), (1, 1))})
    + results("+hyce", HYCE),
)


def page_of(run: Run, comparison: Comparison | None = None) -> str:
    return page(run, summarise(run), comparison)


def parsed(text: str) -> Any:
    """The page as a browser would read it."""
    return lxml.html.document_fromstring(text)


# -- figures ---------------------------------------------------------------------------------------------


def test_the_markdown_is_what_it_was() -> None:
    """To renew it: python -c "from test_report import *; GOLDEN.write_text(golden())" in tests."""
    assert golden() == GOLDEN.read_text(encoding="utf-8")


def golden() -> str:
    return markdown(summarise(WORSE), compare(RUN, WORSE))


def numbers(value: Any) -> Iterator[float]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for each in value:
            yield from numbers(each)
    elif isinstance(value, float):
        yield value


@pytest.mark.parametrize("run", [RUN, WORSE, replace(RUN, results=()), replace(RUN, results=RUN.results[:1])])
def test_the_json_is_finite_and_has_what_came_of_each_question(run: Run) -> None:
    content = report_json(run, summarise(run), compare(RUN, run))
    assert all(map(math.isfinite, numbers(content)))
    again = json.loads(json.dumps(content, allow_nan=False))
    assert again["format"] == 1
    assert [variant["name"] for variant in again["variants"]] == ["base", "+hyce", "+big"]
    assert [question["id"] for question in again["questions"]] == [question.id for question in QUESTIONS]
    statuses = Counter(
        each["status"] for question in again["questions"] for each in question["variants"]["base"]
    )
    counts = again["variants"][0]["counts"]
    assert (statuses["judged"], statuses["failed"], statuses["missing"]) == (
        counts["judged"],
        counts["failed"],
        counts["missing"],
    )


def test_json_has_the_scores_of_each_pass() -> None:
    content = report_json(RUN, summarise(RUN))
    assert content["questions"][1]["variants"]["base"] == [
        {"status": "judged", "correctness": 1, "faithfulness": 0, "right": 0},
        {"status": "judged", "correctness": 1, "faithfulness": 1, "right": 1},
    ]
    assert content["questions"][3]["variants"]["base"] == [{"status": "failed"}, {"status": "unparseable"}]
    assert content["comparison"] is None


# -- the page --------------------------------------------------------------------------------------------


def test_the_page_needs_nothing_else() -> None:
    text = page_of(WORSE, compare(RUN, WORSE))
    tree = parsed(text)
    policy = tree.xpath("//meta[@http-equiv='Content-Security-Policy']/@content")
    assert "default-src 'none'" in policy[0] and "script" not in policy[0]
    assert not tree.xpath("//script | //link | //iframe | //object | //embed | //form | //base | //svg")
    assert all(str(name).startswith("data:image/svg+xml;base64,") for name in tree.xpath("//@src"))
    assert all(str(name).startswith("#") for name in tree.xpath("//@href"))
    assert not [name for element in tree.iter() for name in element.attrib if str(name).startswith("on")]
    assert "url(" not in text and "@import" not in text
    for plot in plots(summarise(WORSE)):
        assert b"<script" not in plot.svg and b'href="http' not in plot.svg


def test_the_page_can_be_found_ones_way_in() -> None:
    tree = parsed(page_of(WORSE, compare(RUN, WORSE)))
    assert tree.get("lang") == "en"
    assert tree.xpath("//title/text()") == ["A small run"]
    assert [str(element.text) for element in tree.xpath("//h1")] == ["A small run"]
    for table in tree.xpath("//table"):
        assert table.xpath("caption/text()")
        assert set(table.xpath("thead//th/@scope")) == {"col"}
        assert set(table.xpath("tbody//th/@scope")) == {"row"}
    assert all(tree.xpath("//img/@alt")) and len(tree.xpath("//img[@alt]")) == 5
    ids = [str(each) for each in tree.xpath("//@id")]
    assert len(ids) == len(set(ids))
    assert {str(each)[1:] for each in tree.xpath("//@href")} <= set(ids)
    headings = [int(element.tag[1]) for element in tree.iter("h1", "h2", "h3", "h4")]
    assert all(after <= before + 1 for before, after in pairwise(headings))


def test_a_question_unfolds_to_all_there_is() -> None:
    tree = parsed(page_of(RUN))
    found = {
        str(each.xpath("string(p[last()])")).split()[1].rstrip(","): each
        for each in tree.xpath("//details[@class='question']")
    }
    assert set(found) == {question.id for question in QUESTIONS}
    mine = found["q3"].text_content()
    for told in (
        "How many jobs do I have?",
        "+hyce on q3, pass 1",
        "right in 2 of 2 judged passes",
        "reasons for (0, 1)",
        "Output of a command: squeue --me (may not leave the site)",
        "Commands: my_jobs",
        "Pass 2: correctness 0, faithfulness 0",
    ):
        assert told in mine
    assert "+hyce on q3, pass 2" not in mine  # of further passes, the verdict alone
    lost = found["q4"].text_content()
    assert "No answer in pass 1: http://127.0.0.1:1/v1: no reply" in lost
    assert "Pass 2: the judge's reply held no verdict: no JSON object" in lost
    assert "Pass 2: missing" in lost
    # The same source of two variants is there once, and both lead to it.
    assert lost.count("Home has 50 GB.") == 2  # as a source, and as the evidence
    assert len(found["q1"].xpath(".//pre[@id]")) == 1
    assert len(found["q1"].xpath(".//a[@href='#q1s1']")) == 2


def test_questions_that_call_for_a_look_come_first() -> None:
    text = page_of(RUN)
    titles = re.findall(r"<h3>(Questions .*?)</h3>", text)
    assert titles[-3:] == [
        "Questions that some variant didn&#39;t get right (3)",
        "Questions that every variant got right (1)",
        "Questions outside the Eval Score (2)",
    ]


def test_a_run_without_a_single_verdict_is_a_page_too() -> None:
    text = page_of(replace(RUN, results=()))
    assert "nan" not in text.lower().split() and "None" not in parsed(text).text_content()


def test_a_long_run_stays_a_usable_page() -> None:
    long = ("word " * 300).strip()
    given = tuple(Given(n, "passage", f"Page {n}", f"{n} {long}") for n in range(1, 6))
    questions = tuple(Question(f"q{n}", f"Number {n}?", "document", "x") for n in range(100))
    rows = tuple(replace(ROWS[0], name=f"v{n}", key=f"k{n}") for n in range(5))
    made = tuple(
        replace(
            result("base", "q1", attempt, (1, 1)),
            variant=row.name,
            question=each.id,
            given=given,
            answer=long,
        )
        for row in rows
        for each in questions
        for attempt in (1, 2, 3)
    )
    run = replace(RUN, passes=3, rows=rows, results=made, set=replace(SET, questions=questions))
    # 1500 answers with five sources each are 13 MB; of those 500 answers and 500 sources are shown.
    assert len(page_of(run)) < 3_000_000


# -- strangers' text -------------------------------------------------------------------------------------

HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)><svg onload=alert(3)></svg></pre></details></table>"
    "<a href='javascript:alert(4)'>x</a>\"' onmouseover=\"alert(5)\" {{ 7*7 }} {% raw %} <!-- --> ]]>"
    " &lt;b&gt; | a | b |\n\n# heading\n\n```\n![i](http://192.0.2.1/i.png) [l](javascript:alert(6)) $x$ \\ "
    "\x1b]0;t\x07\x1b[31m\x00\u202e\u2066\u200b\ud800 `code` <iframe srcdoc='<script>'>"
)


def hostile() -> Run:
    """The run with hostile text wherever strangers, files or models have a say."""
    questions = tuple(
        replace(each, question=HOSTILE, answer=HOSTILE, evidence=(Evidence(HOSTILE, HOSTILE),))
        for each in QUESTIONS
    )
    bad = tuple(
        replace(
            each,
            variant=f"{each.variant}{HOSTILE}",
            answer=HOSTILE,
            error=HOSTILE,
            reasons=HOSTILE,
            given=(Given(1, "passage", HOSTILE, HOSTILE), Given(2, "command", HOSTILE, HOSTILE)),
            commands=(HOSTILE,),
            notices=(HOSTILE,),
            verdicts=tuple(
                replace(v, model=HOSTILE, reasons=HOSTILE, error=HOSTILE)
                for v in (*each.verdicts, verdict("failed", repeat=2), verdict((1, 1), "second_judge"))
            ),
        )
        for each in RUN.results
    )
    rows = tuple(
        replace(
            row,
            name=f"{row.name}{HOSTILE}",
            description=HOSTILE,
            model=HOSTILE,
            settings={HOSTILE: HOSTILE},
            unavailable=row.unavailable and HOSTILE,
        )
        for row in ROWS
    )
    kinds = tuple(
        replace(each, kind=f"{HOSTILE}{each.kind}") if each.id == "q4" else each for each in questions
    )
    return replace(
        RUN,
        title=HOSTILE,
        judge=HOSTILE,
        second_judge=HOSTILE,
        results=bad,
        rows=rows,
        set=replace(SET, questions=kinds),
    )


def swapped(run: Run) -> Run:
    """The run with other verdicts, so that there are changes to show."""
    other = tuple(replace(each, verdicts=(verdict((0, 0)),)) for each in run.results if each.question != "u1")
    return replace(run, results=other)


def shape(text: str) -> Counter[tuple[str, tuple[str, ...]]]:
    """The page's elements, each with the names of its attributes."""
    tree = parsed(text)
    return Counter((str(each.tag), tuple(sorted(map(str, each.attrib)))) for each in tree.iter())


def test_strangers_text_makes_no_element_and_no_attribute_of_the_page() -> None:
    """The same run with harmless text has the same elements with the same attributes."""
    bad = hostile()
    text = page_of(bad, compare(bad, swapped(bad)))
    harmless = _with_text(bad, HOSTILE, ("harmless " * 60)[: len(HOSTILE)])
    assert shape(text) == shape(page_of(harmless, compare(harmless, swapped(harmless))))
    tree = parsed(text)
    allowed = {"class", "id", "href", "src", "alt", "scope", "role", "tabindex", "aria-hidden", "aria-label"}
    body = tree.find("body")
    assert body is not None
    assert {str(name) for element in body.iter() for name in element.attrib} <= allowed
    assert all(re.fullmatch(r"#[a-z0-9]+", str(link)) for link in tree.xpath("//@href"))
    assert "<script>alert(1)" in tree.xpath("string(//pre)")  # it is there to be read
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069\u200b]", text)
    assert "{{ 7*7 }}" in text and "\ud800" not in text


def _with_text(value: Any, old: str, new: str) -> Any:
    """The same run with another text in each place."""
    if isinstance(value, str):
        return value.replace(old, new)
    if isinstance(value, tuple):
        return tuple(_with_text(each, old, new) for each in value)
    if isinstance(value, dict):
        return {_with_text(k, old, new): _with_text(each, old, new) for k, each in value.items()}
    if hasattr(value, "__dataclass_fields__"):
        return replace(
            value, **{name: _with_text(getattr(value, name), old, new) for name in value.__dataclass_fields__}
        )
    return value


def test_strangers_text_makes_no_markup_of_the_markdown() -> None:
    bad = hostile()
    text = markdown(summarise(bad), compare(bad, swapped(bad)))
    # Outside fences nothing that a viewer would take for HTML, a link, a picture or a heading of its own.
    outside = re.sub(r"(?ms)^(`{3,})text\n.*?^\1$", "", text)
    assert "<" not in outside and not re.search(r"(?<!\\)[\[`]", outside)
    html = python_markdown.markdown(outside, extensions=["tables"])
    tree: Any = lxml.html.fragment_fromstring(html, create_parent="div")
    assert not tree.xpath(".//script | .//img | .//a | .//svg | .//iframe | .//code")
    assert len(tree.xpath(".//h1")) == 1
    rows = {len(row) for table in tree.xpath(".//table")[:1] for row in table.xpath(".//tr")}
    assert len(rows) == 1  # no cell was torn in two
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", text)


@pytest.mark.parametrize(
    "text", ["a|b", "`x`", "<b>", "*x*", "_x_", "[x](y)", "a\nb", "# x", "&lt;", "\\|", "$x$"]
)
def test_inline_text_is_shown_as_it_is(text: str) -> None:
    html = python_markdown.markdown(f"| a |\n| --- |\n| {inline(text)} |", extensions=["tables"])
    made: Any = lxml.html.fragment_fromstring(html)
    cell = made.xpath("//td")[0]
    assert len(cell) == 0
    # What this reader of Markdown doesn't know as an escape keeps its backslash.
    assert cell.text_content().replace("\\$", "$").split() == text.split()


def test_names_are_drawn_as_they_are() -> None:
    names = ("$\\frac{1}{2}$", "_hidden", "名前", "x" * 200)
    rows = tuple(replace(ROWS[0], name=name) for name in names)
    made: tuple[Result, ...] = tuple(
        replace(each, variant=name) for name in names for each in results("base", BASE)
    )
    assert len(plots(summarise(replace(RUN, rows=rows, results=made)))) == 5


# -- the command -----------------------------------------------------------------------------------------


def hyce(*arguments: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a call. It needs neither a model nor an index."""
    with TemporaryDirectory() as folder:
        call = Home(Path(folder), Path(folder)).hyce(*arguments)
    return call.code, call.out, call.err


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / "run")


def test_the_command_writes_three_files_and_prints_the_table(folder: Path) -> None:
    code, out, err = hyce("evaluate", "report", str(folder))
    assert (code, "Traceback" in err) == (0, False)
    lines = [line.split() for line in out.splitlines()]
    assert ["base", "50.0%", "[0.0,", "100.0]", "66.7%", "66.7%", "-", "-", "2", "of", "12"] in lines
    assert any(line[:2] == ["+hyce", "87.5%"] and "+37.5" in line for line in lines)
    assert "+big     not available: llm: no such endpoint" in out
    assert re.search(r"report\.md, report\.json, report\.html \(\d\.\d MB\)", err)
    for name in ("report.md", "report.json", "report.html"):
        assert (folder / name).stat().st_mode & 0o777 == 0o600
    content = json.loads((folder / "report.json").read_text())
    assert content["variants"][1]["scores"]["score"]["value"] == 0.875


def test_json_goes_elsewhere_and_to_stdout(folder: Path, tmp_path: Path) -> None:
    code, out, _ = hyce("evaluate", "report", str(folder), "--out", str(tmp_path / "a" / "b"), "--json")
    assert code == 0
    assert json.loads(out) == json.loads((tmp_path / "a" / "b" / "report.json").read_text())
    assert not (folder / "report.json").exists()


def test_two_runs_are_compared_in_all_three(folder: Path, tmp_path: Path) -> None:
    now = write(tmp_path / "now", WORSE)
    code, out, _ = hyce("evaluate", "report", str(now), "--compare", str(folder))
    assert code == 0
    assert out.index("Regressions: 1\n  base: q1: How big is home?") < out.index(
        "Improvements: 1\n  base: q3"
    )
    for name in ("report.md", "report.html"):
        text = (now / name).read_text()
        assert text.index("Regressions: right before, wrong now") < text.index("Improvements: wrong before")
    changes = json.loads((now / "report.json").read_text())["comparison"]
    assert [each["question"] for each in changes["regressions"]] == ["q1"]
    other = write(tmp_path / "other", replace(RUN, set=replace(SET, questions=QUESTIONS[:5])))
    code, _, err = hyce("evaluate", "report", str(other), "--compare", str(folder))
    assert (code, "different questions" in err) == (2, True)


def test_a_sheet_is_written_filled_in_and_read(folder: Path, tmp_path: Path) -> None:
    sheet = tmp_path / "sheet.csv"
    assert hyce("evaluate", "report", str(folder), "--sheet", str(sheet))[0] == 0
    text = sheet.read_text()
    sheet.write_text(text.replace(',"","",', ',"1","1",'))
    assert hyce("evaluate", "report", str(folder), "--labels", str(sheet))[0] == 0
    agreed = json.loads((folder / "report.json").read_text())["reliability"]
    assert {(each["between"], each["answers"]) for each in agreed} == {("people", 16)}
    code, _, err = hyce("evaluate", "report", str(folder), "--sheet", str(sheet))
    assert (code, "exists, and may be filled in" in err) == (2, True)
    sheet.write_text(sheet.read_text().replace('"1","1","q1"', '"1","maybe","q1"'))
    before = (folder / "report.json").read_bytes()
    code, _, err = hyce("evaluate", "report", str(folder), "--labels", str(sheet))
    assert code == 2
    assert len(re.findall(r'line \d+: faithfulness is "maybe"', err)) == 4  # q1 has four answers
    assert (folder / "report.json").read_bytes() == before


@pytest.mark.parametrize("missing", ["jinja2", "matplotlib"])
def test_without_the_extra_all_but_the_page_is_written(folder: Path, tmp_path: Path, missing: str) -> None:
    script = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "from hyce.cli import main; from pathlib import Path\n"
        "sys.exit(main(['evaluate', 'report', sys.argv[1]], Path(sys.argv[1], 'no-site.toml')))"
    )
    run = subprocess.run(
        [sys.executable, "-c", script, str(folder)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={"XDG_CONFIG_HOME": str(tmp_path), "HOME": str(tmp_path), "PATH": ""},
    )
    assert run.returncode == 1
    assert "pip install 'hyce[report]'" in run.stderr and run.stderr.count("pip install") == 1
    assert "87.5%" in run.stdout
    assert (folder / "report.md").exists() and (folder / "report.json").exists()
    assert not (folder / "report.html").exists()


def test_a_folder_without_a_run(tmp_path: Path) -> None:
    code, _, err = hyce("evaluate", "report", str(tmp_path))
    assert code == 1
    assert "no run here" in err and "Traceback" not in err
