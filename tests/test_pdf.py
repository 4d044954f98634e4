"""PDF files -> passages with their pages; what can't be read ends with a clear line."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import zlib
from pathlib import Path

import pdf_pages
import pytest
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.pdfbase.pdfmetrics import registerFont
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import PageBreak, Paragraph
from word_embedder import WordEmbedder

from hyce.config import load
from hyce.context import passage_label
from hyce.errors import SourceError
from hyce.index.embedded import open_index, open_writer
from hyce.indexing import index_sources, passage_settings
from hyce.parse import parse
from hyce.records import Document, Failure, Hit, Page, Unchanged
from hyce.sources import files, pdf


def page(data: bytes, name: str = "a.pdf") -> Page:
    text = pdf.to_html(data, path=name)
    return parse(Document("/docs", name, "application/pdf", text, "digest"))


def text(data: bytes) -> str:
    return "\n".join(unit for s in page(data).sections for b in s.blocks for unit in b.units)


@pytest.fixture(scope="module")
def handbook() -> Page:
    return page(pdf_pages.handbook(title="Kestrel handbook"))


def test_each_section_leads_to_its_page_and_names_it(handbook: Page) -> None:
    assert handbook.title == "Kestrel handbook"
    full = [(section.heading, section.anchor) for section in handbook.sections if section.blocks]
    assert full == [
        (("Kestrel handbook", "1 Storage", "page 1"), "page=1"),
        (("Kestrel handbook", "2 Jobs", "page 2"), "page=2"),
        (("Kestrel handbook", "2 Jobs", "page 3"), "page=3"),
    ]


def test_paragraphs_lists_tables_and_code_come_out_as_that(handbook: Page) -> None:
    storage, jobs, _ = [section.blocks for section in handbook.sections if section.blocks]
    assert [block.kind for block in storage] == ["paragraph", "table", "paragraph", "list"]
    assert storage[0].units == (pdf_pages.QUOTA.strip(),) * 4
    assert storage[1].head == "Space | Size | Files"
    assert storage[1].units == ("home | 50 GB | 500,000", "scratch | 10 TB | 2,000,000")
    assert storage[3].units[1] == "- Home has snapshots of the last seven days."
    assert [block.kind for block in jobs] == ["paragraph", "code", "table"]
    assert jobs[1].units == ("#!/bin/bash", "#SBATCH --mem=4G", "if true; then", "    srun ./model", "fi")
    assert jobs[2].head == "Partition | Nodes | Longest job"
    assert jobs[2].units[1] == "large | 400 | 2 days"


def test_running_headers_footers_and_page_numbers_are_left_out(handbook: Page) -> None:
    words = str(handbook.sections)
    assert "version 3" not in words
    assert "of the handbook" not in words


def test_without_metadata_the_largest_first_heading_is_the_title() -> None:
    assert page(pdf_pages.handbook(title="Microsoft Word - draft_7.docx")).title == "Kestrel handbook"
    assert page(pdf_pages.lines(["Only running text, of one size, without any heading at all."])).title == "A"


def test_columns_are_read_one_after_the_other() -> None:
    numbers = re.findall(r"(left|right)(\d+) ", text(pdf_pages.two_columns()))
    assert numbers == [("left", str(n)) for n in range(60)] + [("right", str(n)) for n in range(60)]


def test_words_that_are_parted_at_a_line_end_are_put_together() -> None:
    found = text(
        pdf_pages.lines(
            [
                "The scheduler is back-filled, which means that short jobs may over-",
                "take long ones. A job is back-",
                "filled where it fits. Ask for memory with --mem-per-",
                "cpu and for a node of the CPU-",
                "GPU partition with -p.",
            ]
        )
    )
    assert "may overtake long" in found
    assert "is back-filled where" in found
    assert "--mem-per-cpu and" in found
    assert "CPU-GPU partition" in found


def test_a_sentence_that_goes_on_upon_the_next_page_stays_one() -> None:
    first = Paragraph("Some text on top. The limit of this partition is", pdf_pages.BODY)
    second = Paragraph("twelve hours for everybody. Then the job ends.", pdf_pages.BODY)
    found = page(pdf_pages.build([first, PageBreak(), second]))
    assert [(s.anchor, s.blocks[0].units[1]) for s in found.sections] == [
        ("page=1", "The limit of this partition is twelve hours for everybody.")
    ]


def test_ligatures_become_letters() -> None:
    registerFont(TTFont("Vera", "Vera.ttf"))
    assert "of the file system" in text(
        pdf_pages.lines(["The size of the \ufb01le system is shown by this program."], font="Vera")
    )


# -- what can't be read ----------------------------------------------------------------------------------


def encrypted() -> bytes:
    data = io.BytesIO()
    canvas = Canvas(data, encrypt=StandardEncryption("secret"))
    canvas.drawString(60, 700, "The contents of this page are for those who know the password.")
    canvas.save()
    return data.getvalue()


def with_content(stream: bytes, filters: str = "/FlateDecode") -> bytes:
    """A file with one page, whose content is the (packed) stream."""
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d/Filter %s>>stream\n%s\nendstream" % (len(stream), filters.encode(), stream),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    body = b"%PDF-1.4\n" + b"".join(b"%d 0 obj%s endobj\n" % (n, o) for n, o in enumerate(objects, 1))
    return body + b"trailer<</Root 1 0 R/Size 6>>\n%%EOF"


def zeros(count: int) -> bytes:
    """So many MB of spaces, packed, without ever being in memory together."""
    packer = zlib.compressobj(9)
    block = b" " * 1_000_000
    first = packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH)
    again = packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH)
    checksum = 1
    for _ in range(count):
        checksum = zlib.adler32(block, checksum)
    return first + again * (count - 1) + b"\x03\x00" + checksum.to_bytes(4)


def circle() -> bytes:
    """A tree of pages that holds itself."""
    return (
        b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n"
        b"2 0 obj<</Type/Pages/Kids[2 0 R]/Count 1>>endobj\ntrailer<</Root 1 0 R/Size 3>>\n%%EOF"
    )


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (pdf_pages.scan(), "ocrmypdf"),
        (encrypted(), "without a password"),
        (b"", "print or export"),
        (b"%PDF-1.7 and then nothing of the kind", "print or export"),
        (pdf_pages.handbook()[:2000], "print or export|no text"),
        (circle(), "print or export|no text"),
        (with_content(zlib.compress(b"[" * 300_000)), "print or export|no text"),
    ],
    ids=["scan", "encrypted", "empty", "garbage", "cut", "circle", "nested"],
)
def test_what_can_not_be_read_ends_with_one_line_that_says_what_to_do(data: bytes, words: str) -> None:
    with pytest.raises(SourceError, match=words) as refused:
        pdf.to_html(data, path="x.pdf")
    assert str(refused.value).startswith("x.pdf: ")
    assert "\n" not in str(refused.value)


def test_a_bomb_of_memory_ends_at_the_limit() -> None:
    data = with_content(zlib.compress(zeros(1600)), "[/FlateDecode/FlateDecode]")
    assert len(data) < 100_000
    with pytest.raises(SourceError, match="GB of memory"):
        pdf.to_html(data, path="x.pdf")


def test_a_page_that_never_ends_is_ended() -> None:
    data = with_content(zlib.compress(b"BT /F1 9 Tf " + b"(abcdefgh) Tj " * 3_000_000 + b"ET"))
    with pytest.raises(SourceError, match="too long"):
        pdf.to_html(data, path="x.pdf", seconds=3)


def test_without_the_library_the_remedy_is_said(tmp_path: Path) -> None:
    script = (
        "import sys; sys.modules['pdfplumber'] = None; from hyce.sources import pdf\n"
        "try: pdf.to_html(b'', path='x.pdf')\nexcept Exception as error: print(error)"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "pip install 'hyce[pdf]'" in run.stdout


# -- as a source -----------------------------------------------------------------------------------------


class Known:
    """An index that has these pages."""

    def __init__(self, memos: dict[str, str]) -> None:
        self.memos = memos

    def paths(self, source: str) -> list[str]:
        return list(self.memos)

    def memo(self, source: str, path: str) -> str:
        return self.memos.get(path, "")


def test_a_file_that_the_index_has_is_not_read_again(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    file = tmp_path / "sub" / "handbook.PDF"
    file.write_bytes(pdf_pages.handbook())
    (tmp_path / "scan.pdf").write_bytes(pdf_pages.scan())
    failure, document = files.read(str(tmp_path), max_page_bytes=10**6)
    assert isinstance(failure, Failure)
    assert failure.path == "scan.pdf"
    assert failure.reason.startswith("holds no text")
    assert isinstance(document, Document)
    assert (document.path, document.media_type) == ("sub/handbook.PDF", "application/pdf")
    known = Known({document.path: document.memo})
    assert list(files.read(str(tmp_path), max_page_bytes=10**6, known=known))[1:] == [
        Unchanged(document.path)
    ]
    file.write_bytes(pdf_pages.two_columns())
    again = list(files.read(str(tmp_path), max_page_bytes=10**6, known=known))[1]
    assert isinstance(again, Document)
    assert again.digest != document.digest


def test_a_found_passage_shows_its_page(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "handbook.pdf").write_bytes(pdf_pages.handbook(title="Kestrel handbook"))
    embedder, config = WordEmbedder(), load(site_file=tmp_path / "none")
    for unchanged in (0, 1):
        with open_writer(
            tmp_path / "index",
            embedder=embedder.fingerprint,
            dimensions=embedder.dimensions,
            passages=passage_settings(config),
            token_vectors=True,
        ) as writer:
            report = index_sources([str(tmp_path / "docs")], writer, embedder, config, lambda *_: None)
        assert (report.documents, report.unchanged, report.failed) == (1, unchanged, ())
    with open_index(tmp_path / "index") as index:
        (found,) = index.passages([index.lexical("longest job large", 1)[0][0]])
    assert passage_label(Hit(1, 1.0, found)) == "Kestrel handbook > 2 Jobs > page 2"
    assert "large | 400 | 2 days" in found.body
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", found.date or "")
