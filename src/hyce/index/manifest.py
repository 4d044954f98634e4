"""The layout of an index folder, and the small file that says which generation is the current one.

    INDEX/
      current                    JSON: the manifest of the published generation, replaced atomically
      lock                       held by the process that writes
      generations/7/passages.db  SQLite: documents, passages, their text and its full-text index
      generations/7/passages.ids int64: the passage of each vector, segment after segment; -1: dead
      generations/7/manifest.json  as `current` when this generation was published
      generations/8/staged.json  a generation being written; it counts only once `current` names it
      segments/3.vectors         float32 (rows, dimensions), only ever appended to, shared by generations
      segments/3.tokens          token vectors, see segments.py

Publishing is one os.replace of `current`: whatever happens before leaves the previous index in use.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hyce.errors import StoreError

FORMAT = 2
"""Version of everything below the index folder. Raise it with any change that old files don't follow."""

REBUILD = "run `hyce index` to build it again"


class NoIndexError(StoreError):
    """Nothing was ever published in this folder."""


class NewerIndexError(StoreError):
    """A newer version of hyce wrote this index: it may not be replaced by an older one."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What all passages of an index have in common; with other settings, everything is made anew."""

    embedder: str
    """Fingerprint of the model that made the vectors."""
    dimensions: int
    passages: str
    """Kind and size of the passages, such as structure/160."""
    token_vectors: bool


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a published generation is made of."""

    format: int
    embedder: str
    dimensions: int
    passages: str
    token_vectors: bool
    written: str
    """When it was published: ISO 8601 with the offset from UTC."""
    documents: int
    chunks: int
    generation: int
    segments: tuple[tuple[int, int], ...] = ()
    """(number, rows) of each segment, in the order of passages.ids."""
    files: Mapping[str, int] = field(default_factory=dict)
    """Size in bytes of each file, by its path below the index folder."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """When each source was last indexed, by the source (an absolute path or a URL)."""
    languages: Mapping[str, int] = field(default_factory=dict)
    """Pages in each language, by its code."""

    @property
    def settings(self) -> Settings:
        return Settings(self.embedder, self.dimensions, self.passages, self.token_vectors)


def generation_folder(index: Path, number: int) -> Path:
    return index / "generations" / str(number)


def segment_file(index: Path, number: int, kind: str) -> Path:
    """kind: vectors or tokens."""
    return index / "segments" / f"{number}.{kind}"


def numbers(folder: Path) -> set[int]:
    """The numbers by which the entries of generations/ or segments/ begin."""
    names = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
    return {int(stem) for stem in (name.partition(".")[0] for name in names) if stem.isdecimal()}


def read_manifest(file: Path) -> Manifest:
    """The manifest in `file`. Raises StoreError when it is missing, damaged, or of another format."""
    try:
        data = json.loads(file.read_bytes())
        if not isinstance(data, dict) or not isinstance(data.get("format"), int):
            raise ValueError("no format version")
    except FileNotFoundError:
        raise NoIndexError(f"{file.parent}: no index here; run `hyce index SOURCE` to build one") from None
    except ValueError as error:
        raise StoreError(f"{file}: damaged ({error}); {REBUILD}") from error
    except OSError as error:
        raise StoreError(f"{file}: can't be read: {error.strerror}") from error
    if data["format"] > FORMAT:
        raise NewerIndexError(
            f"{file.parent}: made by a newer hyce (format {data['format']}, this one reads {FORMAT}); "
            "update hyce or use another folder"
        )
    if data["format"] < FORMAT:
        raise StoreError(
            f"{file.parent}: made by an older hyce (format {data['format']}, this one reads {FORMAT}); "
            f"{REBUILD}"
        )
    return _manifest(file, data)


def _manifest(file: Path, data: dict[str, Any]) -> Manifest:
    kinds = {"embedder": str, "passages": str, "written": str, "token_vectors": bool}
    kinds |= {"dimensions": int, "documents": int, "chunks": int, "generation": int}
    kinds |= {"segments": list, "files": dict, "sources": dict, "languages": dict}
    for name, kind in kinds.items():
        if not isinstance(data.get(name), kind):
            raise StoreError(f"{file}: damaged ({name}); {REBUILD}")
    try:
        segments = tuple((int(number), int(rows)) for number, rows in data["segments"])
        sizes = {str(name): int(size) for name, size in data["files"].items()}
        languages = {str(code): int(pages) for code, pages in data["languages"].items()}
    except (TypeError, ValueError) as error:
        raise StoreError(f"{file}: damaged ({error}); {REBUILD}") from error
    known = {f.name: data[f.name] for f in dataclasses.fields(Manifest)}
    return Manifest(**known | {"segments": segments, "files": sizes, "languages": languages})


def write_manifest(file: Path, manifest: Manifest) -> None:
    write_json(file, dataclasses.asdict(manifest))


def check_files(index: Path, manifest: Manifest) -> None:
    """Raise StoreError when a file of the generation is missing or hasn't the size it was published with."""
    for name, size in manifest.files.items():
        try:
            found = (index / name).stat().st_size
        except FileNotFoundError:
            raise StoreError(f"{index / name}: missing; {REBUILD}") from None
        except OSError as error:
            raise StoreError(f"{index / name}: can't be read: {error.strerror}") from error
        if found != size:
            raise StoreError(f"{index / name}: damaged ({found} bytes, not {size}); {REBUILD}")


def write_json(file: Path, data: Mapping[str, Any]) -> None:
    """Replace `file` atomically: a reader sees the old content or the new, after a crash as well."""
    new = file.with_name(file.name + ".new")
    with new.open("w", encoding="ascii") as stream:
        json.dump(data, stream, indent=1)
        stream.flush()
        os.fsync(stream.fileno())
    new.replace(file)
    sync_folder(file.parent)


def sync(path: Path) -> None:
    """Put a file's content on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Put a folder's entries on the disk, where the file system knows how."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError:  # some network file systems refuse it for folders, and keep entries safe themselves
        pass
    finally:
        os.close(descriptor)


def estimate_bytes(chunks: int, mean_tokens: float, dimensions: int, token_vectors: bool) -> int:
    """Disk space that an index will take, in bytes, told before it is built.

    The database counts twice, because the previous generation stays until the next one is published.
    """
    database = chunks * (10 * mean_tokens + 350)
    vectors = chunks * 4 * dimensions
    tokens = chunks * mean_tokens * (dimensions + 8) if token_vectors else 0
    return int(2 * database + vectors + tokens)
