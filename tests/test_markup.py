# ruff: noqa: E501  (samples of markup read best as they stand)
"""Markdown and its relatives -> HTML, read back by parse: what a reader sees is what is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from hyce import markup
from hyce.errors import SourceError
from hyce.markup import front, indent
from hyce.parse import parse
from hyce.records import Block, Document


def document(
    text: str, media_type: str = "text/markdown", folder: Path | None = None, path: str = "page.md"
) -> Document:
    place = str(folder or "/nowhere")
    return Document(place, path, media_type, text, "", root=place if folder else None)


def blocks(text: str, media_type: str = "text/markdown", folder: Path | None = None) -> list[Block]:
    page = parse(document(text, media_type, folder))
    return [block for section in page.sections for block in section.blocks]


def lines(text: str, media_type: str = "text/markdown", folder: Path | None = None) -> list[str]:
    return [
        line
        for block in blocks(text, media_type, folder)
        for unit in block.units
        for line in unit.split("\n")
    ]


def test_an_unknown_kind_of_page_is_refused() -> None:
    with pytest.raises(SourceError, match="application/msword"):
        markup.to_html(document("x", "application/msword"))


# -- lists, fences and their indentation -----------------------------------------------------------------


@pytest.mark.parametrize("step", [2, 3, 4])
def test_nested_lists_whatever_their_indentation(step: int) -> None:
    text = f"- a\n{' ' * step}- b\n{' ' * 2 * step}- c\n- d\n"
    (block,) = blocks(text)
    assert block.units == ("- a\n  - b\n    - c", "- d")


@pytest.mark.parametrize("step", [2, 3, 4])
def test_code_in_a_list_item_whatever_its_indentation(step: int) -> None:
    margin = " " * step
    text = f"1. first:\n\n{margin}```bash\n{margin}run\n{margin}  more\n{margin}```\n\n2. second\n"
    (block,) = blocks(text)
    assert block.units == ("1. first:\n  run\n    more", "2. second")


def test_an_item_of_several_paragraphs_ends_where_the_next_begins() -> None:
    [block] = blocks("- one\n\n  more\n- two\n\n  ```\n  code\n  ```\n- three")
    assert block.units == ("- one\n  more", "- two\n  code", "- three")
    [block] = blocks("1. one\n\n   more\n2. two")
    assert block.units == ("1. one\n  more", "2. two")


def test_a_list_right_below_its_sentence() -> None:
    assert lines("You need:\n- a key\n- a code\n") == ["You need:", "- a key", "- a code"]


def test_a_table_right_below_its_sentence() -> None:
    found = blocks("The limits:\n| a | b |\n|---|---|\n| 1 | 2 |\n")
    assert found[1] == Block("table", ("1 | 2",), "a | b")


def test_numbers_go_on() -> None:
    assert lines("3. three\n4. four\n") == ["3. three", "4. four"]


def test_an_unclosed_fence_ends_at_the_next_heading() -> None:
    page = parse(document("# T\n\n```bash\n# comment\nrun\n\n## Next\n\nText.\n\n```\ncode\n```\n"))
    assert [section.heading for section in page.sections] == [("T",), ("T", "Next")]
    assert page.sections[0].blocks[0].units == ("# comment", "run")


def test_an_unclosed_fence_at_the_end_keeps_its_code() -> None:
    assert lines("Do:\n\n```bash\nrun\n") == ["Do:", "run"]


def test_a_fence_keeps_what_looks_like_markup() -> None:
    (block,) = blocks("```\n# no heading\n- no list\n<name> **x** :material-key: {{ y }}\n```\n")
    assert block.units == ("# no heading", "- no list", "<name> **x** :material-key: {{ y }}")


def test_code_less_indented_than_its_fence_stays_code() -> None:
    text = "1. do:\n\n    ```bash\nrun\n  more\n    ```\n"
    assert "run" in lines(text)[1]
    assert not any("```" in line for line in lines(text))


def test_well_formed_markdown_is_left_alone() -> None:
    text = "# T\n\nText\nmore text.\n\n- a\n    - b\n\n        code\n\n```\nx\n```\n"
    assert indent.normalise(text) == text


@pytest.mark.parametrize(
    "info", ["bash", " bash", "{.bash}", '{.bash title="job.sh"}', 'bash hl_lines="1"', "c++", "bash {1}"]
)
def test_fences_with_any_info_string_are_code(info: str) -> None:
    assert [block.kind for block in blocks(f"```{info}\nrun\n```\n")] == ["code"]


def test_a_title_of_code_is_its_head() -> None:
    (block,) = blocks('```bash title="~/job.sh" linenums="1"\nrun\n```\n')
    assert block == Block("code", ("run",), "~/job.sh:")


# -- boxes -----------------------------------------------------------------------------------------------


def test_admonitions_three_deep() -> None:
    text = '!!! note\n    One.\n\n    !!! warning "Careful"\n        Two.\n\n        ??? tip "Hidden"\n            Three.\n'
    assert [(block.head, block.units) for block in blocks(text)] == [
        ("Note:", ("One.",)),
        ("Note:\nWarning: Careful", ("Two.",)),
        ("Note:\nWarning: Careful\nTip: Hidden", ("Three.",)),
    ]


def test_an_admonition_without_a_body_keeps_its_title() -> None:
    assert blocks('!!! danger "No jobs on the login nodes"\n') == [
        Block("note", ("Danger: No jobs on the login nodes",))
    ]


def test_a_title_without_quotes_is_a_title() -> None:
    assert blocks("!!! note The hub is read-only\n\n    Text.\n")[0].head == "Note: The hub is read-only"


def test_tabs_within_tabs_with_a_table() -> None:
    text = (
        '=== "Merlin"\n\n    Text.\n\n    === "GPU"\n\n        | a | b |\n        |---|---|\n        | 1 | 2 |\n\n'
        '=== "Osprey"\n\n    ```bash\n    qsub\n    ```\n'
    )
    assert [(block.kind, block.head, block.units) for block in blocks(text)] == [
        ("paragraph", "Merlin:", ("Text.",)),
        ("table", "Merlin > GPU:\na | b", ("1 | 2",)),
        ("code", "Osprey:", ("qsub",)),
    ]


def test_github_alerts_and_colon_fences() -> None:
    text = "> [!WARNING]\n> Careful.\n\n:::tip[Try this]\nWords.\n:::\n"
    assert [(block.head, block.units) for block in blocks(text)] == [
        ("Warning:", ("Careful.",)),
        ("Try this", ("Words.",)),
    ] or [block.units for block in blocks(text)] == [("Careful.",), ("Try this",), ("Words.",)]


# -- words -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Use `#!bash qsub` now.", "Use qsub now."),
        ("See [the quota][ref-storage-quota] page.", "See the quota page."),
        ("See [the `normal` queue][ref-queue] page.", "See the normal queue page."),
        ("See [](#home-quota) and [](){#ref-x}more.", "See home quota and more."),
        ("An array a[i][j] stays.", "An array a[i][j] stays."),
        ("Run ssh <username>@login <your project>.", "Run ssh <username>@login <your project>."),
        ("A {{ macro }} and {% x %}.", "A {{ macro }} and {% x %}."),
        (":material-server:{ .lg } Nodes", "Nodes"),
        ("Press ++ctrl+c++.", "Press Ctrl+C."),
        ("==marked== and {++new++}{--old--} text", "marked and new text"),
        ("10<sup>6</sup> files, H<sub>2</sub>O", "10^6 files, H2O"),
        ("Write to [us](mailto:help@example.org).", "Write to us <help@example.org>."),
        ("Write to <help@example.org>.", "Write to help@example.org."),
        ("See [the form](https://example.org/form).", "See the form <https://example.org/form>."),
        ("See <https://example.org/form>.", "See https://example.org/form."),
        ("See [other page](../other.md).", "See other page."),
        ("~/a,~/b and ~100 stay", "~/a,~/b and ~100 stay"),
        ("![Diagram of the network](x.png)", "[image: Diagram of the network]"),
        ("text ![logo](logo.png) more", "text more"),
        ("shown <!-- stale\n\nwords --> text", "shown text"),
        ("- [x] done", "- [x] done"),
        ("run`top` now", "run top now"),
    ],
)
def test_running_text(text: str, expected: str) -> None:
    assert " ".join(lines(text)) == expected


def test_comments_over_several_blocks_are_gone() -> None:
    assert lines("Kept.\n\n<!--\n| old | table |\n\nStale fact.\n-->\n\nAlso kept.\n") == [
        "Kept.",
        "Also kept.",
    ]


def test_an_abbreviation_is_explained_once() -> None:
    assert lines("HPC here, HPC there.\n\n*[HPC]: High Performance Computing\n") == [
        "HPC (High Performance Computing) here, HPC there."
    ]


def test_short_footnotes_stand_where_they_are_referred_to_and_long_ones_end_the_section() -> None:
    long = "word " * 60
    text = f"# T\n\nOne[^a] and two[^b].\n\n## N\n\nNext.\n\n[^a]: Only at night.\n[^b]: {long}end.\n"
    page = parse(document(text))
    first, second = page.sections
    assert first.blocks[0].units == ("One (Only at night) and two[2].",)
    assert first.blocks[1].units[0].startswith("[2] word word")
    assert second.blocks[0].units == ("Next.",)


def test_definitions() -> None:
    assert blocks("chunk\n:   A set of cores.\n\nqueue\npartition\n:   A waiting line.\n") == [
        Block("definition", ("chunk: A set of cores.", "queue, partition: A waiting line."))
    ]


def test_markdown_within_html() -> None:
    text = '<div class="grid cards" markdown>\n\n- **Storage**\n\n    ---\n\n    All of it.\n\n</div>\n'
    assert lines(text) == ["- Storage", "  All of it."]


# -- snippets --------------------------------------------------------------------------------------------


def test_snippets_come_from_below_the_root_only(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "parts").mkdir(parents=True)
    (tmp_path / "secret.md").write_text("SECRET", encoding="utf-8")
    (root / "parts" / "a.md").write_text('Snippet A.\n\n--8<-- "parts/b.md"\n', encoding="utf-8")
    (root / "parts" / "b.md").write_text(
        "# --8<-- [start:x]\nSnippet B.\n# --8<-- [end:x]\nrest\n", encoding="utf-8"
    )
    (root / "parts" / "link.md").symlink_to(tmp_path / "secret.md")
    text = (
        'Top.\n\n--8<-- "parts/a.md"\n\n--8<-- "../secret.md"\n\n--8<-- "parts/link.md"\n\n--8<-- "missing.md"\n\n'
        f'--8<-- "{tmp_path}/secret.md"\n\n--8<-- "https://example.org/x.md"\n\n```\n--8<-- "parts/b.md:x"\n```\n\nEnd.\n'
    )
    found = lines(text, folder=root)
    assert found == ["Top.", "Snippet A.", "Snippet B. rest", "Snippet B.", "End."]


def test_snippets_that_include_each_other_come_to_an_end(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text('A.\n\n--8<-- "a.md"\n\n--8<-- "a.md"\n', encoding="utf-8")
    assert "A." in lines('--8<-- "a.md"\n\nEnd.\n', folder=tmp_path)


def test_a_snippet_block_and_an_escaped_mention(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("1\n2\n3\n", encoding="utf-8")
    text = '--8<--\na.md:2:2\n; a.md\n--8<--\n\n```\n;--8<-- "a.md"\n```\n'
    assert lines(text, folder=tmp_path) == ["2", '--8<-- "a.md"']


# -- front matter ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "meta", "body"),
    [
        ("---\ntitle: A\n---\ntext", {"title": "A"}, "text"),
        ("title: A\ndate: 2024-01-02\n\ntext", {"title": "A", "date": "2024-01-02"}, "\ntext"),
        ("Title: A\n<h2>x</h2>", {"title": "A"}, "<h2>x</h2>"),
        ("Note: this is text\n\nmore", {}, "Note: this is text\n\nmore"),
        ("---\n\ntext\n\n---\n\nmore", {}, "---\n\ntext\n\n---\n\nmore"),
        ("---\ntitle: a: b: [\n---\ntext", {"title": "a: b: ["}, "text"),
        ("---\nx: !!python/name:os.system\ny: !ENV HOME\n---\ntext", {"x": None, "y": None}, "text"),
        ("---\n---\ntext", {}, "text"),
    ],
)
def test_front_matter(text: str, meta: dict[str, object], body: str) -> None:
    found, rest = front.split(text)
    assert dict(found) == meta
    assert rest == body


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2024-03-05", "2024-03-05"),
        ("2024-03-05T10:00:00Z", "2024-03-05"),
        ("5 March 2024", "2024-03-05"),
        ("March 5, 2024", "2024-03-05"),
        ("2024/03/05", "2024-03-05"),
        ("2024-13-05", None),
        ("soon", None),
        (None, None),
        (2024, None),
    ],
)
def test_dates(value: object, expected: str | None) -> None:
    assert front.iso_date(value) == expected


# -- MyST ------------------------------------------------------------------------------------------------

MYST = """(target)=
# Storage

% a comment
See {ref}`the quota <home-quota>` and {command}`lfs quota`.

```{note}
Words in a note.
```

::::{tab-set}
:::{tab-item} Merlin
```{code-block} bash
:caption: job.sh
sbatch job.sh
```
:::
:::{tab-item} Osprey
Use `qsub`.
:::
::::

```{list-table} Quotas
:header-rows: 1
* - Area
  - Limit
* - home
  - 10 GB
```

```{toctree}
other
```
"""


def test_myst() -> None:
    page = parse(document(MYST))
    assert page.title == "Storage"
    assert [(b.kind, b.head, b.units) for s in page.sections for b in s.blocks] == [
        ("paragraph", "", ("See the quota and lfs quota.",)),
        ("note", "Note:", ("Words in a note.",)),
        ("code", "Merlin:\njob.sh:", ("sbatch job.sh",)),
        ("paragraph", "Osprey:", ("Use qsub.",)),
        ("table", "Quotas\nArea | Limit", ("home | 10 GB",)),
    ]


# -- plain text and scripts ------------------------------------------------------------------------------


def test_plain_text_is_paragraphs_and_columns_stay() -> None:
    found = blocks("One sentence. Another\none.\n\nname     limit\nhome     10 GB\n\n<b> & c\n", "text/plain")
    assert [(block.kind, block.units) for block in found] == [
        ("paragraph", ("One sentence.", "Another one.")),
        ("code", ("name     limit", "home     10 GB")),
        ("paragraph", ("<b> & c",)),
    ]


def test_a_script_is_one_page_of_code() -> None:
    script = "#!/bin/bash\n#SBATCH --time=1\n\nsrun \\\n  ./a < in > out\n"
    page = parse(document(script, "text/x-script", path="jobs/mpi.slurm"))
    assert page.title == "mpi.slurm"
    (block,) = page.sections[0].blocks
    assert block.kind == "code"
    assert "\n".join(block.units) == script.rstrip("\n")
    assert "srun \\\n  ./a < in > out" in block.units
