"""PDF files for tests, as word processors and typesetters make them."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from reportlab.lib import colors
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import (
    BaseDocTemplate,
    Frame,
    PageBreak,
    PageTemplate,
    Paragraph,
    Preformatted,
    Table,
    TableStyle,
)

BODY = ParagraphStyle("body", fontName="Times-Roman", fontSize=10, leading=12.5, spaceAfter=7)
TITLE = ParagraphStyle("title", fontName="Helvetica-Bold", fontSize=20, leading=24, spaceAfter=12)
SECTION = ParagraphStyle(
    "section", fontName="Helvetica-Bold", fontSize=14, leading=18, spaceBefore=8, spaceAfter=6
)
CODE = ParagraphStyle("code", fontName="Courier", fontSize=9, leading=11, spaceAfter=7)
BULLET = ParagraphStyle("bullet", parent=BODY, leftIndent=14, bulletIndent=2, spaceAfter=2)

QUOTA = "Each account has a quota for space and another one for the number of files on this file system. "
WAIT = "A job waits in the queue until the nodes that it asks for are free at the same moment. "


def ruled(rows: Sequence[Sequence[str]]) -> Table:
    lines = TableStyle([("GRID", (0, 0), (-1, -1), 0.5, colors.black)])
    return Table([list(row) for row in rows], style=lines, hAlign="LEFT")


def plain(rows: Sequence[Sequence[str]]) -> Table:
    """A table without a single drawn line."""
    return Table([list(row) for row in rows], colWidths=[120, 120, 120], hAlign="LEFT")


def build(story: Sequence[Any], *, running: bool = True, columns: int = 1, title: str = "") -> bytes:
    """The pages of a story, with a header and a footer on each."""
    data = io.BytesIO()
    width, height = A4

    def decorate(canvas: Canvas, document: Any) -> None:
        if running:
            canvas.setFont("Helvetica", 8)
            canvas.drawString(60, height - 40, "Kestrel HPC Handbook, version 3")
            canvas.drawCentredString(width / 2, 30, f"Page {document.page} of the handbook")

    wide = (width - 120 - 20 * (columns - 1)) / columns
    frames = [Frame(60 + i * (wide + 20), 60, wide, height - 130, 0, 0, 0, 0) for i in range(columns)]
    template = BaseDocTemplate(data, pagesize=A4, title=title)
    template.addPageTemplates([PageTemplate("all", frames, onPage=decorate)])
    template.build(list(story))
    return data.getvalue()


def handbook(title: str = "") -> bytes:
    """Three pages: title, sections, a list, tables and code."""
    return build(
        [
            Paragraph("Kestrel handbook", TITLE),
            Paragraph("1 Storage", SECTION),
            Paragraph(QUOTA * 4, BODY),
            ruled(
                [("Space", "Size", "Files"), ("home", "50 GB", "500,000"), ("scratch", "10 TB", "2,000,000")]
            ),
            Paragraph("Keep in mind:", BODY),
            Paragraph(
                "Scratch is cleaned every month without a word of warning.", BULLET, bulletText="\u2022"
            ),
            Paragraph("Home has snapshots of the last seven days.", BULLET, bulletText="\u2022"),
            PageBreak(),
            Paragraph("2 Jobs", SECTION),
            Paragraph(WAIT * 3, BODY),
            Preformatted("#!/bin/bash\n#SBATCH --mem=4G\nif true; then\n    srun ./model\nfi", CODE),
            plain(
                [
                    ("Partition", "Nodes", "Longest job"),
                    ("small", "40", "12 hours"),
                    ("large", "400", "2 days"),
                    ("gpu", "12", "1 day"),
                ]
            ),
            PageBreak(),
            Paragraph("The queue is looked at every thirty seconds. " * 3, BODY),
        ],
        title=title,
    )


def two_columns() -> bytes:
    left = " ".join(f"left{number} words of the first column run here." for number in range(60))
    right = " ".join(f"right{number} words of the second column run here." for number in range(60))
    return build([Paragraph(left, BODY), Paragraph(right, BODY)], columns=2, running=False)


def lines(texts: Sequence[str], *, font: str = "Times-Roman", size: float = 10) -> bytes:
    """One page with these lines as they stand."""
    data = io.BytesIO()
    canvas = Canvas(data, pagesize=A4)
    canvas.setFont(font, size)
    for number, text in enumerate(texts):
        canvas.drawString(60, 700 - 1.25 * size * number, text)
    canvas.save()
    return data.getvalue()


def scan() -> bytes:
    """A page with a picture and no letter."""
    data = io.BytesIO()
    canvas = Canvas(data, pagesize=A4)
    canvas.rect(60, 60, 400, 600, fill=1)
    canvas.showPage()
    canvas.save()
    return data.getvalue()
