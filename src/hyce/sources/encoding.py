"""Bytes of a page -> text."""

from __future__ import annotations

import codecs
import re

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([A-Za-z0-9_:.-]{2,40})""", re.IGNORECASE)
_CODE_PAGE = re.compile(
    r"(?:us-)?ascii|utf[-_]?(?:8|16|32)(?:[-_]?[bl]e)?"
    r"|(?:iso|latin|windows|x-mac|mac|cp|koi8|gb|big5|euc|shift|ks_c)[a-z0-9_:.-]*",
    re.IGNORECASE,
)
"""Python knows codecs that are no encodings of pages, and slow: a page can't ask for those."""


def decode(data: bytes, *, html: bool = False, declared: str = "") -> str | None:
    """The text, with line ends as `\\n`; None for what is no text (NUL bytes).

    A byte order mark decides, then the encoding that the server declared, then an HTML page's own charset,
    then UTF-8, then Windows' western code page (of which Latin-1 is the part that every byte has a
    character in).
    """
    encodings = []
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            encodings.append(encoding)
            break
    if not encodings and b"\0" in data:
        return None
    own = _CHARSET.search(data[:4096]) if html else None
    said = (declared, own[1].decode("ascii") if own else "")
    encodings += [name for name in said if _CODE_PAGE.fullmatch(name)]
    for encoding in (*encodings, "utf-8", "cp1252", "latin-1"):
        try:
            text = data.decode(encoding)
        except (UnicodeDecodeError, LookupError):
            continue
        if "\0" not in text:
            return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    return None
