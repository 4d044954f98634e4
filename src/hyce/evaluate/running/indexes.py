"""The index that a variant needs: the configured one, or one of its own in the run's folder.

A variant with another embedding model or other passages than the configured index has gets an index of the
same sources. Variants that need the same share one.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hyce.config import Config, index_folder
from hyce.errors import SourceError
from hyce.evaluate.journal import write_whole
from hyce.evaluate.running.keys import counted
from hyce.evaluate.running.runs import digest
from hyce.evaluate.work import Show
from hyce.index.manifest import Manifest, NoIndexError, Settings, read_manifest

FOLDER = "indexes"
_MADE_FROM = "made-from"
"""File in an own index: which state of the configured index it belongs to."""
_BATCH = 2000


@dataclass(frozen=True, slots=True)
class Place:
    """Where a variant's index is."""

    folder: Path
    manifest: Manifest | None
    """None where it must be made first."""
    sources: tuple[str, ...] = ()
    """What it is made from; empty where it isn't ours to make."""
    made_from: str = ""
    """The state of the configured index whose sources these are."""


def find(config: Config, base: Config, run: Path, *, named: bool) -> Place:
    """The variant's index, or where to make it. Nothing is sent.

    base: the settings without the variant's. named: whether the variant itself says where its index is.
    Raises StoreError where there is no configured index to begin from, ModelError, ConfigError, PolicyError.
    """
    folder = index_folder(config)
    if named or _reading(config) == _reading(base):
        return Place(folder, read_manifest(folder / "current"))
    configured = read_manifest(folder / "current")
    if _fits(configured, config, base):
        return Place(folder, configured)
    sources = tuple(sorted(configured.sources))
    if not sources:
        raise SourceError(f"{folder}: doesn't say which sources it was made from; run `hyce index SOURCE`")
    own = run / FOLDER / digest([_reading(config), sources])[:16]
    # The time alone doesn't tell: an index can be published twice within a second.
    made_from = f"{configured.generation} {configured.written}"
    try:
        manifest = read_manifest(own / "current")
        fresh = (own / _MADE_FROM).read_text(encoding="utf-8") == made_from
    except (NoIndexError, FileNotFoundError):
        return Place(own, None, sources, made_from)
    return Place(own, manifest if fresh else None, sources, made_from)


def make(place: Place, config: Config, show: Show, warn: Callable[[str], None]) -> Place:
    """The index, made as `hyce index` makes one; what an interrupted run did of it is kept.

    Raises SourceError, StoreError, ModelError, EndpointError, PolicyError.
    """
    from hyce.embed import open_embedder
    from hyce.index.embedded import open_writer
    from hyce.indexing import index_sources, passage_settings

    place.folder.parent.mkdir(mode=0o700, exist_ok=True)
    embedder = open_embedder(config)
    with open_writer(
        place.folder,
        embedder=embedder.fingerprint,
        dimensions=embedder.dimensions,
        passages=passage_settings(config),
        token_vectors=config.index.token_vectors and embedder.token_vectors,
    ) as writer:
        report = index_sources(place.sources, writer, embedder, config, show.update)
    for failure in report.failed:
        warn(f"{failure.path}: {failure.reason}")
    write_whole(place.folder / _MADE_FROM, place.made_from)
    return dataclasses.replace(place, manifest=read_manifest(place.folder / "current"))


def content(folder: Path) -> str:
    """Digest of the passages that an index holds, however they came there."""
    from hyce.index.embedded import open_index

    found = hashlib.sha256()
    with open_index(folder) as index:
        found.update(repr(index.manifest.settings).encode())
        ids = index.ids()
        for start in range(0, len(ids), _BATCH):
            for each in index.passages(ids[start : start + _BATCH]):
                place = (each.source, each.path, each.position, each.text, each.url, each.date)
                found.update(repr(place).encode("utf-8", "replace"))
    return found.hexdigest()


def _reading(config: Config) -> dict[str, Any]:
    """The settings that the content of an index depends on."""
    from hyce.indexing import passage_settings

    model = {**counted(config.model)}
    if config.model.kind == "onnx":
        for name in ("base_url", "location", "input_type", "max_tokens", "tokenizer"):
            del model[name]
    else:
        for name in ("base_url", "location", "precision", "late_chunking"):
            del model[name]
    return {
        "model": model,
        "passages": passage_settings(config),
        "token_vectors": config.index.token_vectors,
        "max_page_mb": config.index.max_page_mb,
        "web": [list(config.web.exclude), config.web.pages],
    }


def _fits(configured: Manifest, config: Config, base: Config) -> bool:
    """Whether the configured index is one that the variant's settings would give."""
    from hyce.embed import open_embedder
    from hyce.indexing import passage_settings

    mine, theirs = _reading(config), _reading(base)
    if any(mine[name] != theirs[name] for name in ("max_page_mb", "web")):
        return False
    embedder = open_embedder(config)
    tokens = config.index.token_vectors and embedder.token_vectors
    # A served model says how long its vectors are only when it is asked.
    dimensions = embedder.dimensions if config.model.kind == "onnx" else configured.dimensions
    return configured.settings == Settings(embedder.fingerprint, dimensions, passage_settings(config), tokens)
