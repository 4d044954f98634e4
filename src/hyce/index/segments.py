"""Vectors on disk: append-only files, a segment for each run of the writer.

    N.vectors   float32 (rows, dimensions)
    N.tokens    for each passage that has token vectors, at a byte offset that the database knows:
                int32 (n,) vocabulary ids, float32 (n,) scales, int8 (n, dimensions)

A passage's token record is contiguous, so that reading it is one read on a shared file system.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hyce.errors import StoreError
from hyce.index.manifest import REBUILD, segment_file

Tokens = tuple[NDArray[np.int8], NDArray[np.float32], NDArray[np.int32]]
"""int8 (n, dimensions), the scale (n,) that each row is to be multiplied with, vocabulary ids (n,)."""


def quantize(vectors: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """int8 (n, d) and scales (n,): each row's largest absolute value becomes 127."""
    if not len(vectors):
        return vectors.astype(np.int8), np.zeros(0, np.float32)
    scales = np.abs(vectors).max(axis=1) / np.float32(127)
    divisors = np.where(scales > 0, scales, 1)
    return np.rint(vectors / divisors[:, None]).astype(np.int8), scales.astype(np.float32)


def token_bytes(count: int, dimensions: int) -> int:
    """Size of the record of `count` token vectors."""
    return count * (4 + 4 + dimensions)


def pack_tokens(vectors: NDArray[np.float32], ids: Sequence[int]) -> bytes:
    values, scales = quantize(vectors)
    known = np.asarray(ids if len(ids) == len(vectors) else [-1] * len(vectors), dtype=np.int32)
    return known.tobytes() + scales.tobytes() + values.tobytes()


def unpack_tokens(record: bytes, count: int, dimensions: int) -> Tokens:
    ids = np.frombuffer(record, np.int32, count)
    scales = np.frombuffer(record, np.float32, count, offset=4 * count)
    values = np.frombuffer(record, np.int8, count * dimensions, offset=8 * count)
    return values.reshape(count, dimensions), scales, ids


class SegmentWriter:
    """Appends to one segment, from a given end: what a crash left behind that end is cut off."""

    def __init__(self, index: Path, number: int, rows: int, tokens_end: int, dimensions: int) -> None:
        self.number = number
        self.rows = rows
        self.tokens_end = tokens_end
        self._dimensions = dimensions
        self._vectors = _open_at(segment_file(index, number, "vectors"), rows * 4 * dimensions)
        try:
            self._tokens = _open_at(segment_file(index, number, "tokens"), tokens_end)
        except BaseException:
            os.close(self._vectors)
            raise

    def append(self, vector: bytes, tokens: bytes) -> tuple[int, int]:
        """(row, byte offset of the token record). Both are safe on the disk only after sync()."""
        _write(self._vectors, vector)
        _write(self._tokens, tokens)
        place = (self.rows, self.tokens_end)
        self.rows += 1
        self.tokens_end += len(tokens)
        return place

    def sync(self) -> None:
        os.fsync(self._vectors)
        os.fsync(self._tokens)

    def close(self) -> None:
        for descriptor in (self._vectors, self._tokens):
            if descriptor >= 0:
                os.close(descriptor)
        self._vectors = self._tokens = -1


def _open_at(file: Path, end: int) -> int:
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT, 0o666)
    try:
        if os.fstat(descriptor).st_size < end:
            raise StoreError(f"{file}: damaged (shorter than {end} bytes); {REBUILD}")
        os.ftruncate(descriptor, end)
        os.lseek(descriptor, end, os.SEEK_SET)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


class SegmentReader:
    """One segment, opened for reading. Vectors are memory-mapped; token records are read one by one.

    Reads, not a mapping, for token records: a search needs a few of very many, and a file that goes away
    on a network file system becomes an error message rather than the end of the process.
    """

    def __init__(self, index: Path, number: int, dimensions: int, tokens: bool) -> None:
        self._dimensions = dimensions
        self._token_file = segment_file(index, number, "tokens")
        self.vectors = _map_vectors(segment_file(index, number, "vectors"), dimensions)
        self._tokens = os.open(self._token_file, os.O_RDONLY) if tokens else -1

    def prefetch(self, start: int, count: int) -> None:
        """Have the system begin to read a record, so that many are read from the disk side by side."""
        os.posix_fadvise(self._tokens, start, token_bytes(count, self._dimensions), os.POSIX_FADV_WILLNEED)

    def token_record(self, start: int, count: int) -> bytes:
        size = token_bytes(count, self._dimensions)
        record = os.pread(self._tokens, size, start)
        while len(record) < size:
            more = os.pread(self._tokens, size - len(record), start + len(record))
            if not more:
                raise StoreError(f"{self._token_file}: damaged (it ends too early); {REBUILD}")
            record += more
        return record

    def close(self) -> None:
        if self._tokens >= 0:
            os.close(self._tokens)
            self._tokens = -1
        self.vectors = np.zeros((0, self._dimensions), np.float32)  # lets go of the mapping


def _map_vectors(file: Path, dimensions: int) -> NDArray[np.float32]:
    """(rows, dimensions), memory-mapped; a last row that isn't complete is left out."""
    with file.open("rb") as stream:
        rows = os.fstat(stream.fileno()).st_size // (4 * dimensions)
        if not rows:
            return np.zeros((0, dimensions), np.float32)
        mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    return np.frombuffer(mapped, np.float32, rows * dimensions).reshape(rows, dimensions)
