"""Manual pages by name and as files, rendered by the real groff."""

from __future__ import annotations

import bz2
import gzip
import lzma
import shutil
from pathlib import Path

import pytest

from hyce.errors import SourceError
from hyce.parse import parse
from hyce.records import Document, Failure, Page, Unchanged
from hyce.sources import files, man_page, manual
from hyce.sources.read import key

needs_groff = pytest.mark.skipif(shutil.which("groff") is None, reason="groff (groff-base) isn't installed")
needs_man = pytest.mark.skipif(shutil.which("man") is None, reason="man (man-db) isn't installed")

LIMIT = 1_000_000

PROBE = r""".TH PROBE 1 2024-03-05 "Kestrel 3" "Kestrel Commands"
.SH NAME
probe \- look at the nodes of a job
.SH SYNOPSIS
.B probe
[\fIoptions\fR] \fIjob\fR
.SH OPTIONS
.TP
\fB\-m\fR, \fB\-\-mem\-per\-cpu\fR=\fIsize\fR
Show processes that take more memory than this
for each processor.  It's in megabytes.
.IP
A second paragraph about the option.
.TP
.B \-n
Be short.
.TP
.B levels
One of these:
.RS
.TP
.B low
Few words.
.TP
.B high
Many words.
.RE
.IP \(bu 2
The first point.
.IP \(bu 2
The second point.
.SS Limits of nodes
.TS
allbox;
lb lb
l l.
Partition	Longest job
small	T{
twelve hours,
more at night
T}
.TE
.SH EXAMPLES
.nf
$ probe \-\-mem\-per\-cpu=4000 \e
    4711

$ probe \-n 4711
.fi
.PP
That is all.
"""

LAMP = """.Dd March 7, 2023
.Dt LAMP 8
.Os
.Sh NAME
.Nm lamp
.Nd light a rack
.Sh DESCRIPTION
The options are:
.Bl -tag -width indent
.It Fl r Ar rack
The rack to light.
.El
"""


def page(text: str, name: str = "man1/probe.1") -> Page:
    html = man_page.to_html(text.encode(), path=name, max_bytes=LIMIT)
    return parse(Document("man:probe", name, "text/troff", html, "digest"))


def units(found: Page) -> dict[str, tuple[str, ...]]:
    return {s.heading[-1]: tuple(u for b in s.blocks for u in b.units) for s in found.sections}


@needs_groff
def test_sections_options_and_examples_come_out_as_that() -> None:
    found = page(PROBE)
    assert (found.title, found.date) == ("probe(1)", "2024-03-05")
    text = units(found)
    assert text["NAME"] == ("probe - look at the nodes of a job",)
    assert text["SYNOPSIS"] == ("probe [options] job",)
    options = "\n".join(text["OPTIONS"])
    assert (
        "-m, --mem-per-cpu=size: Show processes that take more memory than this for each processor. "
        "It's in megabytes." in options.replace("\n", " ").replace("  ", " ")
    )
    assert "-n: Be short." in options
    assert "low: Few words." in options
    assert "- The second point." in options
    (limits,) = [s for s in found.sections if s.heading[-1] == "Limits of nodes"]
    assert limits.heading == ("probe(1)", "OPTIONS", "Limits of nodes")
    assert limits.anchor == "limits-of-nodes"
    assert limits.blocks[0].head == "Partition | Longest job"
    assert limits.blocks[0].units == ("small | twelve hours, more at night",)
    (examples,) = [s for s in found.sections if s.heading[-1] == "EXAMPLES"]
    assert [block.kind for block in examples.blocks] == ["code", "paragraph"]
    assert "\n".join(examples.blocks[0].units).splitlines() == [
        "$ probe --mem-per-cpu=4000 \\",
        "    4711",
        "",
        "$ probe -n 4711",
    ]


@needs_groff
def test_pages_in_the_bsd_macros_are_read_too() -> None:
    found = page(LAMP, "man8/lamp.8")
    assert (found.title, found.date) == ("lamp(8)", "2023-03-07")
    assert "-r rack: The rack to light." in units(found)["DESCRIPTION"]


@needs_groff
def test_a_long_paragraph_and_other_letters_stay_whole() -> None:
    sentence = "Jobs of the gr\u00fcne Gruppe wait. "
    found = page(f".TH X 1\n.SH TEXT\n{sentence * 400}\n")
    assert " ".join(units(found)["TEXT"]) == (sentence * 400).strip()


@needs_groff
def test_a_page_can_neither_read_files_nor_run_programs(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("the secret words\n", encoding="utf-8")
    canary = tmp_path / "canary"
    requests = [f".{name} {secret}" for name in ("so", "mso", "cf", "trf", "nx", "soquiet", "hpf")]
    evil = [
        "'\\\" pe",  # asks for the preprocessors pic and eqn
        '.TH EVIL 1 "" "" ""',
        ".SH TEXT",
        "Plain words.",
        *requests,
        f".do so {secret}",
        f".als other so\n.other {secret}",
        f".ds name so\n.\\*[name] {secret}",
        f".sy touch {canary}\n.pso touch {canary}\n.pi touch {canary}\n.open s {canary}\n.opena s {canary}",
        f'.PS\nsh X touch {canary} X\ncopy "{secret}"\n.PE',
        "Last words.",
    ]
    found = str(page("\n".join(evil) + "\n", "man1/evil.1"))
    assert "Plain words." in found
    assert "Last words." in found
    assert "secret words" not in found
    assert not canary.exists()


@needs_groff
def test_a_page_that_never_ends_is_ended() -> None:
    loop = b".TH LOOP 1\n.SH TEXT\n.while 1 \\{\\\n.nr x 1\n.\\}\n"
    with pytest.raises(SourceError, match="groff needs more than 1 s"):
        man_page.to_html(loop, path="man1/loop.1", max_bytes=LIMIT, seconds=1.0)


@needs_groff
def test_files_are_known_by_name_and_content_and_unpacked(tmp_path: Path) -> None:
    (tmp_path / "probe.1").write_text(PROBE, encoding="utf-8")
    (tmp_path / "a.1.gz").write_bytes(gzip.compress(PROBE.replace("probe", "a").encode()))
    (tmp_path / "b.1.xz").write_bytes(lzma.compress(PROBE.replace("probe", "b").encode()))
    (tmp_path / "c.8.bz2").write_bytes(bz2.compress(LAMP.encode()))
    (tmp_path / "alias.1").write_text(".so man1/probe.1\n", encoding="utf-8")
    (tmp_path / "broken.1.gz").write_bytes(b"\x1f\x8b no gzip")
    (tmp_path / "bomb.1.gz").write_bytes(gzip.compress(PROBE.encode() + b" " * 20_000_000))
    (tmp_path / "notes.1").write_text("Notes of the first meeting.\n", encoding="utf-8")
    (tmp_path / "libprobe.so.1").write_bytes(b"\x7fELF\0")
    found = {each.path: each for each in files.read(str(tmp_path), max_page_bytes=LIMIT)}
    assert {name for name, each in found.items() if isinstance(each, Document)} == {
        *("probe.1", "a.1.gz", "b.1.xz", "c.8.bz2"),
    }
    reasons = {name: (e.reason, e.skipped) for name, e in found.items() if isinstance(e, Failure)}
    assert reasons.keys() == {"alias.1", "broken.1.gz", "bomb.1.gz", "notes.1"}
    assert reasons["alias.1"] == ("only leads to man1/probe.1", True)
    assert reasons["notes.1"][1]
    assert "unpacked" in reasons["broken.1.gz"][0]
    assert "max_page_mb" in reasons["bomb.1.gz"][0]


def test_without_groff_the_remedy_is_said(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="install groff-base"):
        man_page.to_html(PROBE.encode(), path="probe.1", max_bytes=LIMIT, directories=(tmp_path,))


# -- by name ---------------------------------------------------------------------------------------------


@pytest.fixture
def pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A hierarchy of manual pages where man finds it."""
    for folder in ("man1", "man8"):
        (tmp_path / folder).mkdir()
    (tmp_path / "man1" / "kprobe.1.gz").write_bytes(gzip.compress(PROBE.encode()))
    (tmp_path / "man1" / "kother.1").write_text(".so man1/kprobe.1\n", encoding="utf-8")
    (tmp_path / "man8" / "klamp.8").write_text(LAMP, encoding="utf-8")
    tmp_path.chmod(0o755)
    monkeypatch.setenv("MANPATH", str(tmp_path))
    return tmp_path


class Known:
    def __init__(self, memos: dict[str, str]) -> None:
        self.memos = memos

    def paths(self, source: str) -> list[str]:
        return list(self.memos)

    def memo(self, source: str, path: str) -> str:
        return self.memos.get(path, "")


def test_a_source_of_manual_pages_has_one_form() -> None:
    assert key("man:srun, 1/sbatch,srun,") == "man:sbatch(1),srun"
    assert key("man:sbatch(1),srun") == "man:sbatch(1),srun"


@needs_man
@needs_groff
def test_named_pages_are_found_and_read_once(pages: Path) -> None:
    found = list(manual.read("man:kprobe,8/klamp,nosuchpage,kother,-x", max_page_bytes=LIMIT))
    documents = {each.path: each for each in found if isinstance(each, Document)}
    assert set(documents) == {"man1/kprobe.1", "man8/klamp.8"}
    assert {each.source for each in documents.values()} == {"man:-x,klamp(8),kother,kprobe,nosuchpage"}
    failures = {each.path: each for each in found if isinstance(each, Failure)}
    assert "MANPATH" in failures["nosuchpage"].reason
    assert set(failures) == {"-x", "nosuchpage", "kprobe"}
    assert failures["kprobe"].skipped  # kother leads to it
    known = Known({path: document.memo for path, document in documents.items()})
    again = list(manual.read("man:kprobe,klamp", max_page_bytes=LIMIT, known=known))
    assert again == [Unchanged("man8/klamp.8"), Unchanged("man1/kprobe.1")]


@needs_man
def test_no_page_at_all_is_an_error_before_the_first(pages: Path) -> None:
    for source in ("man:nosuchpage", "man:", "man:../../etc/passwd"):
        with pytest.raises(SourceError, match=r"^man:"):
            manual.read(source, max_page_bytes=LIMIT)


@needs_man
@needs_groff
def test_a_page_leads_nowhere_else_than_to_its_neighbours(pages: Path) -> None:
    outside = pages.parent / f"{pages.name}-outside.1"
    outside.write_text(PROBE, encoding="utf-8")
    (pages / "man1" / "kaway.1").write_text(f".so ../{outside.name}\n", encoding="utf-8")
    (pages / "man1" / "kcircle.1").write_text(".so man1/kcircle.1\n", encoding="utf-8")
    found = list(manual.read("man:kaway,kcircle,klamp", max_page_bytes=LIMIT))
    assert [type(each) for each in found].count(Failure) == 2


def test_without_man_the_remedy_is_said(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="install man-db"):
        manual.read("man:sbatch", max_page_bytes=LIMIT, directories=(tmp_path,))
