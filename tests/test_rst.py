# ruff: noqa: E501  (samples of markup read best as they stand)
"""reStructuredText with Sphinx's directives and roles, read back by parse."""

from __future__ import annotations

from pathlib import Path

import pytest

from hyce.parse import Hidden, parse
from hyce.records import Block, Document, Page


def page_of(text: str, folder: Path | None = None) -> Page:
    place = str(folder or "/nowhere")
    return parse(Document(place, "page.rst", "text/x-rst", text, "", root=place if folder else None))


def blocks(text: str, folder: Path | None = None) -> list[Block]:
    return [block for section in page_of(text, folder).sections for block in section.blocks]


def test_sections_titles_anchors_and_page_fields() -> None:
    page = page_of(
        ":orphan:\n\n.. _top:\n\n=======\nStorage\n=======\n\n:date: 2024-03-05\n\nIntro.\n\n"
        ".. _home-quota:\n\nQuota\n-----\n\nTen.\n\nInner\n^^^^^\n\nText.\n"
    )
    assert page.title == "Storage"
    assert page.date == "2024-03-05"
    assert [(s.heading, s.anchor) for s in page.sections] == [
        (("Storage",), "storage"),
        (("Storage", "Quota"), "quota"),
        (("Storage", "Quota", "Inner"), "inner"),
    ]
    assert [block.units for section in page.sections for block in section.blocks] == [
        ("Intro.",),
        ("Ten.",),
        ("Text.",),
    ]


def test_a_page_kept_out_of_search_is_hidden() -> None:
    with pytest.raises(Hidden):
        page_of(":nosearch:\n\nTitle\n=====\n\nText.\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("See :ref:`quota-limits`.", "See quota limits."),
        ("See :ref:`the limits <quota-limits>`.", "See the limits."),
        ("See :doc:`/guide/storage`.", "See storage."),
        ("A :term:`chunk`, :term:`chunks <chunk>`.", "A chunk, chunks."),
        ("Run :command:`squeue` in :file:`{home}/x`.", "Run squeue in home/x."),
        ("Press :kbd:`Ctrl+C`, :guilabel:`&Save`.", "Press Ctrl+C, Save."),
        (":menuselection:`File --> Open`", "File → Open"),
        ("An :unknown:role:`text <target>` here.", "An text here."),
        ("A reference_ and `another one`_ lead nowhere.", "A reference and another one lead nowhere."),
        ("A |missing| substitution.", "A missing substitution."),
        ("Version |v|.\n\n.. |v| replace:: 1.2", "Version 1.2."),
        ("A `link <https://example.org/a>`_.", "A link <https://example.org/a>."),
        ("H\\ :sub:`2`\\ O and ``ssh <user>@host``.", "H2O and ssh <user>@host."),
        (":octicon:`gear` Settings", "Settings"),
        ("A note [#f]_.\n\n.. [#f] Only at night.", "A note (Only at night)."),
    ],
)
def test_roles_and_references(text: str, expected: str) -> None:
    assert " ".join(unit for block in blocks(text) for unit in block.units) == expected


def test_a_reference_within_the_page_has_the_title_of_its_section() -> None:
    text = "T\n=\n\nSee :ref:`lim`.\n\n.. _lim:\n\nLimits of home\n--------------\n\nTen.\n"
    assert blocks(text)[0].units == ("See Limits of home.",)


def test_notes() -> None:
    text = (
        ".. note:: Starts here\n   and goes on.\n\n   More.\n\n.. warning::\n   Right below.\n\n"
        ".. admonition:: Own title\n   :class: tip\n\n   Words.\n\n.. seealso:: There.\n\n.. versionadded:: 2.1\n   New.\n"
    )
    assert [(block.kind, block.head, block.units) for block in blocks(text)] == [
        ("note", "Note:", ("Starts here and goes on.",)),
        ("note", "Note:", ("More.",)),
        ("note", "Warning:", ("Right below.",)),
        ("note", "Tip: Own title", ("Words.",)),
        ("note", "See also:", ("There.",)),
        ("paragraph", "", ("New in version 2.1: New.",)),
    ]


@pytest.mark.parametrize(
    ("outer", "inner"),
    [("tabs", "tab"), ("tabs", "group-tab"), ("tab-set", "tab-item"), (None, "tab"), (None, "tabbed")],
)
def test_tabs_of_every_extension(outer: str | None, inner: str) -> None:
    margin = "   " if outer else ""
    lines = [f".. {outer}::", ""] if outer else []
    for name in ("Merlin", "Osprey"):
        lines += [f"{margin}.. {inner}:: {name}", "", f"{margin}   Text of {name}.", ""]
    assert [(block.head, block.units) for block in blocks("\n".join(lines))] == [
        ("Merlin:", ("Text of Merlin.",)),
        ("Osprey:", ("Text of Osprey.",)),
    ]


def test_code_tabs_and_dropdowns() -> None:
    text = ".. tabs::\n\n   .. code-tab:: bash Shell\n\n      echo hi\n\n.. dropdown:: More\n   :open:\n\n   Words.\n"
    assert [(block.kind, block.head, block.units) for block in blocks(text)] == [
        ("code", "Shell:", ("echo hi",)),
        ("note", "More:", ("Words.",)),
    ]


TABLES = """
.. list-table:: Quotas
   :header-rows: 1
   :unknown-option: x

   * - Area
     - Limit
   * - home
     - - 10 GB
       - 100k files

.. csv-table:: Queues
   :header: "Queue", "Time"

   short, "1 h, or less"

+------+------+
| A    | B    |
+======+======+
| 1    | 2    |
+      +------+
|      | 3    |
+------+------+

===  ===
x    y
===  ===
1    2
===  ===
"""


def test_tables() -> None:
    assert [(block.head, block.units) for block in blocks(TABLES)] == [
        ("Quotas\nArea | Limit", ("home | 10 GB; 100k files",)),
        ("Queues\nQueue | Time", ("short | 1 h, or less",)),
        ("A | B", ("1 | 2", "1 | 3")),
        ("x | y", ("1 | 2",)),
    ]


def test_a_broken_table_keeps_its_words() -> None:
    text = ".. list-table::\n\n   * - a\n     - b\n   * - c\n"
    words = " ".join(unit for block in blocks(text) for unit in block.units).split()
    assert {"a", "b", "c"} <= set(words)


def test_code_in_its_forms() -> None:
    text = (
        ".. code-block:: bash\n   :caption: job.sh\n   :linenos:\n\n   #SBATCH -N 1\n   srun \\\n     x\n\n"
        "Like this::\n\n   literal *text*\n\n.. prompt:: bash $\n\n   ls\n\n.. code:: \n\n   plain\n"
    )
    assert [(block.kind, block.head, block.units) for block in blocks(text)] == [
        ("code", "job.sh:", ("#SBATCH -N 1", "srun \\\n  x")),
        ("paragraph", "", ("Like this:",)),
        ("code", "", ("literal *text*",)),
        ("code", "", ("$ ls",)),
        ("code", "", ("plain",)),
    ]


def test_glossary_options_and_lists() -> None:
    text = (
        ".. glossary::\n\n   chunk\n   block\n      A set of cores.\n\n.. option:: --time <t>\n\n   Sets the time.\n\n"
        "-a  all of it\n\n:Host: login1\n\nterm\n   words\n\n#. one\n#. two\n\n   * in\n"
    )
    assert [unit for block in blocks(text) for unit in block.units] == [
        "chunk, block: A set of cores.", "--time <t>: Sets the time.", "-a: all of it", "Host: login1", "term: words",
        "1. one", "2. two\n  - in",
    ]  # fmt: skip


def test_what_is_dropped_and_what_is_kept() -> None:
    text = (
        ".. toctree::\n   :maxdepth: 2\n\n   other\n\n.. contents::\n\n.. only:: latex\n\n   PDF.\n\n.. only:: html\n\n   Web.\n\n"
        ".. |x| image:: y.png\n\n.. figure:: a.png\n   :alt: Map of the nodes\n   :bogus: 1\n\n   A caption.\n\n"
        ".. raw:: latex\n\n   \\page\n\n.. raw:: html\n\n   <p>Raw <b>words</b></p><script>no</script>\n\n.. a comment\n"
    )
    assert [unit for block in blocks(text) for unit in block.units] == [
        "Web.", "[image: Map of the nodes]", "A caption.", "Raw words",
    ]  # fmt: skip


def test_unknown_directives_keep_title_and_content(capfd: pytest.CaptureFixture[str]) -> None:
    text = (
        ".. strange:: A title\n   :option: 1\n\n   Content with :odd:`role`.\n\n   .. nested-strange::\n      Right below.\n\n"
        ".. grid:: 1 2 3\n\n   .. grid-item-card:: Card\n      :link: x\n\n      In the card.\n\n.. image::\n\n.. math:: a^2\n\nEnd.\n"
    )
    assert [unit for block in blocks(text) for unit in block.units] == [
        "A title", "Content with role.", "Right below.", "Card", "In the card.", "a^2", "End.",
    ]  # fmt: skip
    assert capfd.readouterr() == ("", "")


def test_malformed_text_is_kept_and_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    text = "Title\n==\n\nAn *open emphasis, a ``literal and |this.\n\n   indented\nback\n\n* a\nb\n\n.. note::\n\nLast words.\n"
    words = " ".join(unit for block in blocks(text) for unit in block.units)
    for word in ("open", "emphasis", "literal", "this", "indented", "back", "Last words."):
        assert word in words
    assert capfd.readouterr() == ("", "")


def test_includes_stay_below_the_root(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "docs").mkdir(parents=True)
    (tmp_path / "secret.txt").write_text("SECRET", encoding="utf-8")
    (root / "docs" / "conf.py").write_text("project = 'x'", encoding="utf-8")
    (root / "docs" / "part.txt").write_text(
        "Inner title\n-----------\n\nIncluded :odd:`words`.\n\n.. include:: deep/x.txt\n"
    )
    (root / "docs" / "deep").mkdir()
    (root / "docs" / "deep" / "x.txt").write_text(
        "Deep.\n\n.. literalinclude:: run.sh\n   :lines: 2-\n", encoding="utf-8"
    )
    (root / "docs" / "deep" / "run.sh").write_text("#!/bin/sh\nsrun x\n", encoding="utf-8")
    (root / "docs" / "t.csv").write_text("k,v\na,1\n", encoding="utf-8")
    (root / "docs" / "link.txt").symlink_to(tmp_path / "secret.txt")
    text = (
        "Title\n=====\n\n.. include:: /part.txt\n\n.. include:: ../../secret.txt\n\n.. include:: link.txt\n\n"
        f".. literalinclude:: {tmp_path}/secret.txt\n\n.. csv-table::\n   :file: t.csv\n   :header-rows: 1\n\n"
        f".. csv-table::\n   :file: ../../secret.txt\n\n.. raw:: html\n   :file: {tmp_path}/secret.txt\n\nEnd.\n"
    )
    page = parse(Document(str(root / "docs"), "page.rst", "text/x-rst", text, "", root=str(root)))
    found = [unit for section in page.sections for block in section.blocks for unit in block.units]
    assert found == ["Included words.", "Deep.", "srun x", "a | 1", "End."]
    assert page.sections[-1].heading == ("Title", "Inner title")


def test_files_that_include_each_other_come_to_an_end(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Alpha.\n\n.. include:: b.txt\n", encoding="utf-8")
    (tmp_path / "b.txt").write_text("Beta.\n\n.. include:: a.txt\n", encoding="utf-8")
    found = [unit for block in blocks(".. include:: a.txt\n\nEnd.\n", tmp_path) for unit in block.units]
    assert found[:2] == ["Alpha.", "Beta."]
    assert found[-1] == "End."


def test_without_a_root_nothing_is_included() -> None:
    assert [
        b.units for b in blocks(".. include:: /etc/hostname\n\n.. literalinclude:: /etc/hostname\n\nEnd.\n")
    ] == [("End.",)]


def test_the_class_of_a_term_stands_behind_it() -> None:
    assert blocks("Backfill : algorithm\n    Small jobs run in gaps.\n")[0].units == (
        "Backfill (algorithm): Small jobs run in gaps.",
    )
