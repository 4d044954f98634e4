# mypy: disable-error-code="import-not-found"
"""The text of web pages as other readers give it, for extraction.py. Runs in an environment of its own.

Reads lines {"page", "html"} and writes lines {"page", "reader", "text"}. With --versions it says which
versions it has.
"""

import importlib.metadata
import json
import sys
from typing import Any

import lxml.html
import readability
import trafilatura
from resiliparse.extract.html2text import extract_plain_text


def by_readability(html: str) -> str:
    return "".join(
        str(part) for part in lxml.html.fromstring(readability.Document(html).summary()).itertext()
    )


READERS: dict[str, Any] = {
    "trafilatura": trafilatura.extract,
    "trafilatura, favor_recall": lambda html: trafilatura.extract(
        html, favor_recall=True, include_tables=True, include_comments=False
    ),
    "readability-lxml": by_readability,
    "resiliparse": lambda html: extract_plain_text(html, main_content=True),
}

if "--versions" in sys.argv:
    names = ["trafilatura", "readability-lxml", "resiliparse", "mkdocs", "mkdocs-material", "sphinx"]
    names += ["sphinx-rtd-theme", "furo", "pydata-sphinx-theme"]
    print(json.dumps({name: importlib.metadata.version(name) for name in names}))
else:
    for line in sys.stdin:
        page = json.loads(line)
        for name, reader in READERS.items():
            text = reader(page["html"]) or ""
            print(json.dumps({"page": page["page"], "reader": name, "text": text}))
