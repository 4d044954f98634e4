"""Vectors of the catalogue's texts, and what is learnt from them, kept as files.

A vector is kept for each text, so that who changes one entry waits for that entry's texts only. What is
learnt depends on all texts together, and is made anew for each catalogue.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hyce.embed import Embedder
from hyce.score import BALANCE, BEND, PENALTY, WORDS

Array = NDArray[np.float32]

_VECTORS = "commands-"
_WEIGHTS = "scores-"


def example_vectors(
    texts: Sequence[str],
    embedder: Embedder,
    caches: Sequence[Path],
    *,
    descriptions: int = 0,
    write: bool = True,
    report: Callable[[str], None] = lambda _: None,
) -> Array:
    """Shape (texts, dimensions), each row of length 1.

    descriptions: how many of the texts, the first ones, are descriptions; all others are questions.
    caches: folders that may hold them. What none holds is embedded and written to the first, with `write`.
    A file that is damaged counts as none; a folder that can't be written costs time, nothing else.
    report: is told before texts are embedded.
    """
    keys = [_digest(text).encode() for text in texts]
    known: dict[bytes, Array] = {}
    for folder in caches:
        known = _stored(folder, embedder) | known
        if all(key in known for key in keys):
            break
    new = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
    if new:
        report(f"embedding {len(new)} texts of the commands, once for this catalogue and model")
        described = set(keys[:descriptions])
        for query in (False, True):
            some = {key: text for key, text in new.items() if (key not in described) == query}
            embedded = embedder.embed(list(some.values()), query=query)
            known |= {key: each.vector for key, each in zip(some, embedded, strict=True)}
        if write:
            _store(caches[0], embedder, known)
    shape = (len(texts), embedder.dimensions)
    return np.stack([known[key] for key in keys]) if keys else np.empty(shape, np.float32)


def example_weights(
    texts: Sequence[str],
    answers: NDArray[np.int64],
    embedder: Embedder,
    caches: Sequence[Path],
    fit: Callable[[], Array],
    *,
    shape: tuple[int, int],
    write: bool = True,
) -> Array:
    """What fit() returns for these texts and their answers; kept for these and no others."""
    name = _weights_name(texts, answers, embedder)
    for folder in caches:
        stored = _read(folder / name)
        whole = stored is not None and stored.shape == shape and stored.dtype == np.float32
        if stored is not None and whole and np.isfinite(stored).all():
            return stored
    weights = fit()
    if write:
        _write(caches[0] / name, weights)
    return weights


def keep_vectors(folder: Path, texts: Sequence[str], vectors: Array, embedder: Embedder) -> None:
    """Leave in the folder the vectors of these texts, for this model, and no others."""
    wanted = {_digest(text).encode(): vector for text, vector in zip(texts, vectors, strict=True)}
    if _stored(folder, embedder).keys() != wanted.keys():
        _store(folder, embedder, wanted)
    _remove_others(folder, _VECTORS, _vectors_name(embedder))


def keep_weights(
    folder: Path, texts: Sequence[str], answers: NDArray[np.int64], weights: Array, embedder: Embedder
) -> None:
    """Leave in the folder what was learnt from these texts and answers, and nothing else."""
    name = _weights_name(texts, answers, embedder)
    if not (folder / name).exists():
        _write(folder / name, weights)
    _remove_others(folder, _WEIGHTS, name)


def _remove_others(folder: Path, kind: str, name: str) -> None:
    for file in folder.glob(f"{kind}*.npy"):
        if file.name != name:
            file.unlink(missing_ok=True)


def _vectors_name(embedder: Embedder) -> str:
    return f"{_VECTORS}{_digest(embedder.fingerprint)}.npy"


def _weights_name(texts: Sequence[str], answers: NDArray[np.int64], embedder: Embedder) -> str:
    """Another one for other texts, answers, constants of the method, or another model."""
    method = f"{BEND} {WORDS} {PENALTY} {BALANCE}"
    return f"{_WEIGHTS}{_digest(embedder.fingerprint, *texts, answers.tobytes().hex(), method)}.npy"


def _stored(folder: Path, embedder: Embedder) -> dict[bytes, Array]:
    """The vectors that the folder holds, by their texts' digests."""
    rows = _read(folder / _vectors_name(embedder))
    if rows is None or rows.dtype != _row(embedder) or not np.isfinite(rows["vector"]).all():
        return {}
    return dict(zip(rows["text"].tolist(), rows["vector"], strict=True))


def _store(folder: Path, embedder: Embedder, vectors: Mapping[bytes, Array]) -> None:
    rows = np.array([*vectors.items()], _row(embedder))
    _write(folder / _vectors_name(embedder), rows)


def _row(embedder: Embedder) -> np.dtype[Any]:
    return np.dtype([("text", "S32"), ("vector", np.float32, (embedder.dimensions,))])


def _digest(*texts: str) -> str:
    digest = hashlib.sha256()
    for text in texts:
        digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()[:32]


def _read(file: Path) -> NDArray[Any] | None:
    try:
        stored = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return stored if isinstance(stored, np.ndarray) else None


def _write(file: Path, rows: NDArray[Any]) -> None:
    """Under another name first, so that nobody reads half a file; not at all where there is no room."""
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
        try:
            with os.fdopen(handle, "wb") as stream:
                np.save(stream, rows, allow_pickle=False)
            # As readable as its folder: one beside a shared index is for everybody.
            Path(temporary).chmod(file.parent.stat().st_mode & 0o644)
            Path(temporary).replace(file)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
