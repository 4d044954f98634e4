"""Vectors of the catalogue's texts, made once for each catalogue and model, and kept as files."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hyce.embed import Embedder


def example_vectors(
    texts: Sequence[str],
    embedder: Embedder,
    caches: Sequence[Path],
    *,
    write: bool = True,
    report: Callable[[str], None] = lambda _: None,
) -> NDArray[np.float32]:
    """Shape (texts, dimensions), each row of length 1.

    caches: folders that may hold them; the first is written to, with `write`, when none does. A file that
    is damaged, or of another catalogue or model, is made anew; a folder that can't be written costs time,
    nothing else. report: is told before texts are embedded.
    """
    shape = (len(texts), embedder.dimensions)
    name = f"commands-{_fingerprint(texts, embedder)}.npy"
    for folder in caches:
        stored = _read(folder / name, shape)
        if stored is not None:
            return stored
    report("embedding what the commands tell, once for this catalogue and model")
    rows = embedder.embed(texts)
    vectors = np.stack([row.vector for row in rows]) if rows else np.empty(shape, np.float32)
    for folder in caches[:1] if write else ():
        with contextlib.suppress(OSError):
            _write(folder, name, vectors)
    return vectors


def remove_others(folder: Path, texts: Sequence[str], embedder: Embedder) -> None:
    """Remove what the folder keeps for earlier catalogues and models."""
    for file in folder.glob("commands-*.npy"):
        if file.name != f"commands-{_fingerprint(texts, embedder)}.npy":
            file.unlink(missing_ok=True)


def _fingerprint(texts: Sequence[str], embedder: Embedder) -> str:
    digest = hashlib.sha256(embedder.fingerprint.encode())
    for text in texts:
        digest.update(b"\0" + text.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:32]


def _read(file: Path, shape: tuple[int, int]) -> NDArray[np.float32] | None:
    try:
        vectors = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    whole = isinstance(vectors, np.ndarray) and vectors.shape == shape and vectors.dtype == np.float32
    return vectors if whole and bool(np.isfinite(vectors).all()) else None


def _write(folder: Path, name: str, vectors: NDArray[np.float32]) -> None:
    """Under another name first, so that nobody reads half a file."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=f".{name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            np.save(file, vectors, allow_pickle=False)
        # As readable as its folder: one beside a shared index is for everybody.
        Path(temporary).chmod(folder.stat().st_mode & 0o644)
        Path(temporary).replace(folder / name)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
