"""Documentation as popular chat servers cut it: windows of 1000 characters, 100 shared with the next; for
retrieval.py. What is found is what is nearest by meaning, nothing else.

windows.py FOLDER MODELS-FOLDER < QUESTIONS.jsonl: prints what `hyce search - --json` would, and on stderr
the number of windows.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import environment
import numpy as np

from hyce.embed import OnnxEmbedder
from hyce.errors import SourceError
from hyce.models import find
from hyce.parse import parse
from hyce.records import Document, Page
from hyce.sources import files

SIZE, OVERLAP = 1000, 100
HITS = 60
BATCH = 256


def main() -> None:
    folder, models = sys.argv[1], Path(sys.argv[2])
    embedder = OnnxEmbedder(find(environment.NAME, "fp32", models))
    cut = list(windows(folder))
    texts = [text for _, text in cut]
    vectors = np.concatenate(
        [
            [embedding.vector for embedding in embedder.embed(texts[start : start + BATCH])]
            for start in range(0, len(texts), BATCH)
        ]
    )
    for line in sys.stdin:
        question = json.loads(line)["question"]
        best = np.argsort(-(vectors @ embedder.embed([question])[0].vector))[:HITS]
        hits = [{"path": cut[i][0], "text": cut[i][1]} for i in best]
        print(json.dumps({"question": question, "hits": hits, "windows": len(cut)}))


def windows(folder: str) -> Iterator[tuple[str, str]]:
    """(path, text) of each window of each page."""
    for document in files.read(folder, max_page_bytes=10_000_000):
        if not isinstance(document, Document):
            continue
        try:
            text = plain(parse(document))
        except SourceError:
            continue
        for start in range(0, max(1, len(text) - OVERLAP), SIZE - OVERLAP):
            yield document.path, text[start : start + SIZE]


def plain(page: Page) -> str:
    """The page's text with its headings where they stand."""
    lines: list[str] = []
    for section in page.sections:
        lines += section.heading[-1:]
        lines += ["\n".join(block.units) for block in section.blocks]
    return "\n\n".join(lines)


if __name__ == "__main__":
    main()
