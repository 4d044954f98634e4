"""Any markup -> HTML, without running or fetching anything a page names."""

from __future__ import annotations

from hyce.errors import SourceError
from hyce.records import Document


def to_html(document: Document) -> str:
    """The page as HTML: a fragment, or the page itself where it is HTML already.

    Raises SourceError for a media type that hyce doesn't know.
    """
    if document.media_type == "text/html":
        from hyce.markup.front import split

        return (
            split(document.text)[1]
            if document.text.lstrip("\ufeff \n\r").startswith("---")
            else document.text
        )
    if document.media_type == "text/markdown":
        from hyce.markup import markdown

        return markdown.render(document)
    if document.media_type == "text/x-rst":
        from hyce.markup import rst

        return rst.render(document)
    if document.media_type in ("text/plain", "text/x-script"):
        from hyce.markup import plain

        if document.media_type == "text/plain":
            return plain.text_html(document.text)
        return plain.script_html(document.text, document.path)
    if document.media_type in ("application/pdf", "text/troff"):
        return document.text
    raise SourceError(f"{document.path}: hyce reads no {document.media_type}; convert it to HTML or Markdown")
