"""The generation that is being written: begun, resumed, merged, and cleaned up after."""

from __future__ import annotations

import dataclasses
import json
import shutil
import sqlite3
from pathlib import Path

import numpy as np

from hyce.errors import StoreError
from hyce.index import database as db
from hyce.index.manifest import (
    FORMAT,
    Manifest,
    NewerIndexError,
    NoIndexError,
    Settings,
    check_files,
    generation_folder,
    numbers,
    read_manifest,
    segment_file,
    sync,
    write_json,
)
from hyce.index.segments import SegmentReader, SegmentWriter, token_bytes

MARKER = "staged.json"
"""Written last when a generation is begun: with what settings, and what it was copied from."""

MOST_SEGMENTS = 8
MOST_DEAD = 0.3
"""More segments than that, or a larger share of dead rows in one, and they are merged when publishing."""


def base(index: Path, settings: Settings) -> tuple[Manifest | None, str | None]:
    """(the published manifest, why nothing of it can be kept). Raises StoreError for a newer hyce's index."""
    try:
        manifest = read_manifest(index / "current")
    except NoIndexError:
        return None, None
    except NewerIndexError:
        raise
    except StoreError as error:
        return None, str(error)
    if manifest.settings != settings:
        old, new = dataclasses.asdict(manifest.settings), dataclasses.asdict(settings)
        different = [f"{name} was {old[name]}, is {new[name]}" for name in new if old[name] != new[name]]
        return manifest, f"{index}: made with other settings: {'; '.join(different)}"
    try:
        check_files(index, manifest)
        with db.plain_errors(index):
            connection = db.open_read_only(generation_folder(index, manifest.generation) / "passages.db")
            try:
                _check_database(connection)
            finally:
                connection.close()
    except StoreError as error:
        return manifest, str(error)
    return manifest, None


def open_generation(
    index: Path, settings: Settings, published: Manifest | None, rebuilding: str | None
) -> tuple[int, sqlite3.Connection]:
    """(number, database) of the staged generation: resumed when it fits, otherwise begun anew."""
    identity = None if published is None else [published.generation, published.written]
    marker = {"format": FORMAT, "settings": dataclasses.asdict(settings), "base": identity}
    marker["rebuilding"] = rebuilding is not None
    existing = numbers(index / "generations")
    last = 0 if published is None else published.generation
    for number in sorted((number for number in existing if number > last), reverse=True):
        connection = _resume(index, settings, number, marker)
        if connection is not None:
            clean(index, number, connection)
            return number, connection
    clean(index, last, None)  # first: what a full disk stopped must not stand in the way of the next try
    number = max(existing | {last}) + 1
    folder = generation_folder(index, number)
    folder.mkdir()
    file = folder / "passages.db"
    if published is not None and rebuilding is None:
        shutil.copyfile(generation_folder(index, published.generation) / "passages.db", file)
        connection = db.open_staged(file)
        connection.execute("PRAGMA user_version = 0")
    else:
        connection = db.open_staged(file)
        db.create(connection)
    if published is not None:
        # Known from the manifest: a run that changed nothing else writes them there alone.
        rows = list(published.sources.items())
        connection.executemany("INSERT OR REPLACE INTO source(source, indexed) VALUES (?, ?)", rows)
    sync(file)
    write_json(folder / MARKER, marker)
    return number, connection


def _resume(
    index: Path, settings: Settings, number: int, marker: dict[str, object]
) -> sqlite3.Connection | None:
    """The staged database, if it was begun with the same marker and nothing that it names is lost."""
    folder = generation_folder(index, number)
    try:
        if json.loads((folder / MARKER).read_bytes()) != marker:
            return None
    except (OSError, ValueError):
        return None
    connection = db.open_staged(folder / "passages.db")
    try:
        _check_database(connection)
        for segment, rows, tokens_end in _committed(connection, settings):
            vectors = segment_file(index, segment, "vectors").stat().st_size
            tokens = segment_file(index, segment, "tokens").stat().st_size
            if vectors < rows * 4 * settings.dimensions or tokens < tokens_end:
                raise StoreError(f"{folder}: vectors are missing")
    except (StoreError, sqlite3.Error, OSError):
        connection.close()
        return None
    return connection


def _check_database(connection: sqlite3.Connection) -> None:
    result = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    if result != "ok":
        raise sqlite3.DatabaseError(result)


def _committed(connection: sqlite3.Connection, settings: Settings) -> list[tuple[int, int, int]]:
    """(segment, rows, end of the token records) that the database relies on."""
    found = connection.execute(
        "SELECT segment, max(row) + 1, max(token_start + tokens * ?) FROM chunk GROUP BY segment",
        (token_bytes(1, settings.dimensions),),
    )
    return [(segment, rows, end) for segment, rows, end in found]


def open_segment(
    index: Path, settings: Settings, published: Manifest | None, connection: sqlite3.Connection
) -> SegmentWriter:
    """The segment that this run appends to: its own, begun before a crash, or a new one."""
    old = {number for number, _ in published.segments} if published else set()
    staged = [place for place in _committed(connection, settings) if place[0] not in old]
    if staged:
        number, rows, end = max(staged)
        return SegmentWriter(index, number, rows, end, settings.dimensions)
    return SegmentWriter(index, _next_segment(index, old), 0, 0, settings.dimensions)


def _next_segment(index: Path, others: set[int]) -> int:
    return max(numbers(index / "segments") | others, default=0) + 1


def mark_changed(connection: sqlite3.Connection) -> None:
    """Remember, in the open transaction, that the staged generation differs from what it was copied from."""
    if not changed(connection):
        connection.execute("PRAGMA user_version = 1")


def changed(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute("PRAGMA user_version").fetchone()[0])


def merge_if_worthwhile(index: Path, settings: Settings, connection: sqlite3.Connection) -> None:
    """Copy the live rows of many small or mostly dead segments into one new segment."""
    live = dict(connection.execute("SELECT segment, count(*) FROM chunk GROUP BY segment"))
    row_bytes = 4 * settings.dimensions
    rows = {number: segment_file(index, number, "vectors").stat().st_size // row_bytes for number in live}
    chosen = choose_merge({number: (rows[number], live[number]) for number in live})
    if not chosen:
        return
    target = SegmentWriter(index, _next_segment(index, set(live)), 0, 0, settings.dimensions)
    sources = {number: SegmentReader(index, number, settings.dimensions, tokens=True) for number in chosen}
    try:
        connection.execute("BEGIN IMMEDIATE")
        last = 0
        # Walked by id, in batches: a table may not be changed while a statement still reads from it.
        while batch := connection.execute(
            "SELECT id, segment, row, token_start, tokens FROM chunk WHERE id > ? ORDER BY id LIMIT 1000",
            (last,),
        ).fetchall():
            last = batch[-1][0]
            moved = []
            for number, segment, row, start, count in batch:
                if segment in sources:
                    record = sources[segment].token_record(start, count)
                    place = target.append(sources[segment].vectors[row].tobytes(), record)
                    moved.append((target.number, *place, number))
            connection.executemany(
                "UPDATE chunk SET segment = ?, row = ?, token_start = ? WHERE id = ?", moved
            )
        target.sync()
        connection.execute("COMMIT")
    finally:
        target.close()
        for source in sources.values():
            source.close()


def choose_merge(segments: dict[int, tuple[int, int]]) -> list[int]:
    """Which of the segments, given as number: (rows, live rows), to merge into one; none is often right.

    The largest is left alone until the others together are half its size, so that a vector is copied
    a number of times that grows with the logarithm of the index only.
    """
    chosen = {number for number, (rows, live) in segments.items() if rows - live > MOST_DEAD * rows}
    if len(segments) > MOST_SEGMENTS:
        by_size = sorted(segments, key=lambda number: segments[number][1])
        others, largest = by_size[:-1], by_size[-1]
        chosen |= set(others)
        if 2 * sum(segments[number][1] for number in others) > segments[largest][1]:
            chosen.add(largest)
    return sorted(chosen)


def write_ids(
    index: Path, settings: Settings, connection: sqlite3.Connection, file: Path
) -> tuple[tuple[int, int], ...]:
    """Write the passage id of each vector; (number, rows) of the segments, in the order of the file."""
    segments = []
    with file.open("wb") as stream:
        used = [row[0] for row in connection.execute("SELECT DISTINCT segment FROM chunk ORDER BY segment")]
        for number in used:
            size = segment_file(index, number, "vectors").stat().st_size
            ids = np.full(size // (4 * settings.dimensions), -1, np.int64)
            for row, chunk in connection.execute("SELECT row, id FROM chunk WHERE segment = ?", (number,)):
                ids[row] = chunk
            stream.write(ids.tobytes())
            segments.append((number, len(ids)))
    return tuple(segments)


def finish_text(connection: sqlite3.Connection) -> None:
    """Make one piece of the full-text index, and count its frequent terms."""
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO text(text) VALUES ('optimize')")
    connection.execute("DELETE FROM frequent")
    connection.execute(
        "INSERT INTO frequent(term, passages) SELECT term, doc FROM vocabulary WHERE doc > ?", (db.FREQUENT,)
    )
    connection.execute("COMMIT")


def _published(index: Path) -> list[Manifest]:
    """The current manifest and the one before it, where there are any."""
    try:
        current = read_manifest(index / "current")
    except NoIndexError:
        return []
    for number in sorted(numbers(index / "generations"), reverse=True):
        if number < current.generation:
            try:
                return [current, read_manifest(generation_folder(index, number) / "manifest.json")]
            except StoreError:
                continue
    return [current]


def clean(index: Path, keep: int, connection: sqlite3.Connection | None) -> None:
    """Remove what neither the current generation, nor the published one before it, nor `keep` uses.

    connection: the staged database, whose segments are kept too. What can't be removed stays.
    """
    try:
        kept = _published(index)
    except StoreError:
        return  # nothing says what is in use
    generations = {manifest.generation for manifest in kept} | {keep}
    for number in numbers(index / "generations") - generations:
        shutil.rmtree(generation_folder(index, number), ignore_errors=True)
    segments = {number for manifest in kept for number, _ in manifest.segments}
    if connection is not None:
        segments |= {row[0] for row in connection.execute("SELECT DISTINCT segment FROM chunk")}
    for number in numbers(index / "segments") - segments:
        for kind in ("vectors", "tokens"):
            try:
                segment_file(index, number, kind).unlink(missing_ok=True)
            except OSError:  # another user's file in a folder with the sticky bit, or a busy one
                continue
