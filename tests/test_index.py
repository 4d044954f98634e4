"""The index: what is put in comes out, and searching finds it."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import index_run
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hyce.errors import StoreError
from hyce.index import lexical, staging
from hyce.index.database import storable
from hyce.index.embedded import IndexReader, estimate_bytes, open_index, open_writer
from hyce.index.lock import Lock
from hyce.index.segments import quantize
from hyce.records import Chunk, Document, Embedding

few = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


def document(path: str, digest: str = "1", source: str = "/docs") -> Document:
    return Document(source, path, "text/markdown", "", digest, url=f"https://docs.example/{len(path)}")


def build_texts(index: Path, texts: list[str]) -> IndexReader:
    with index_run.open_for_writing(index) as writer:
        for number, text in enumerate(texts):
            index_run.put(writer, document(f"{number:03}"), [Chunk(("Page", f"Part {number}"), "", text)])
        writer.publish()
    return open_index(index)


def found(reader: IndexReader, question: str) -> list[str]:
    return [p.body for p in reader.passages([number for number, _ in reader.lexical(question, 10)])]


# -- round trips -----------------------------------------------------------------------------------------

texts = st.text(max_size=30) | st.sampled_from(
    ["--mem-per-cpu", "a\x00b", "\ud800", "ünïcode\nlines", '"', "["]
)
chunks = st.lists(st.builds(Chunk, st.lists(texts, max_size=3).map(tuple), texts, texts), max_size=3)
names = st.sampled_from(["a.md", "b/c.md", "ü.rst", "not-utf8-\udcff.md"])
sources = st.sampled_from(["/docs", "https://site.example/"])
steps = st.one_of(
    st.tuples(st.just("put"), sources, names, st.sampled_from("123"), texts, chunks),
    st.tuples(st.just("unchanged"), sources, names, st.sampled_from("123")),
    st.tuples(st.just("seen"), sources, names),
    st.tuples(st.just("remove_unseen"), sources),
    st.tuples(st.just("remove_source"), sources),
    st.tuples(st.just("publish")),
    st.tuples(st.just("reopen")),
)
Stored = dict[tuple[str, str], tuple[str, str, list[Chunk]]]


def as_stored(chunk: Chunk) -> tuple[object, ...]:
    return tuple(map(storable, chunk.heading)), storable(chunk.body), storable(chunk.anchor)


def assert_holds(reader: IndexReader, stored: Stored) -> None:
    expected = sorted(
        (storable(source), storable(path), storable(title), *map(repr, as_stored(chunk)))
        for (source, path), (_, title, page_chunks) in stored.items()
        for chunk in page_chunks
    )
    ids = [number for number, _ in reader.dense(index_run.vector("x"), 10**6)]
    actual = sorted(
        (p.source, p.path, p.title, repr(p.heading), repr(p.body), repr((p.url or "").partition("#")[2]))
        for p in reader.passages(ids)
    )
    assert actual == expected
    assert reader.ids() == sorted(ids)
    assert reader.manifest.chunks == len(expected)
    assert reader.manifest.documents == len(stored)


@few
@given(st.lists(steps, max_size=25))
def test_an_index_holds_what_a_dict_would_hold(script: list[tuple[object, ...]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        index = Path(folder) / "index"
        stored: Stored = {}
        seen: set[tuple[str, str]] = set()
        writer = index_run.open_for_writing(index, commit_chunks=2)
        for name, *arguments in [*script, ("publish",)]:
            match (name, *arguments):
                case ("put", str(source), str(path), str(digest), str(title), list(page_chunks)):
                    page = document(path, digest, source)
                    writer.put(page, title, None, page_chunks, [index_run.embed(c) for c in page_chunks])
                    stored[source, path] = (digest, title, page_chunks)
                    seen.add((source, path))
                case ("unchanged", str(source), str(path), str(digest)):
                    same = (source, path) in stored and stored[source, path][0] == digest
                    assert writer.unchanged(document(path, digest, source)) == same
                    if same:
                        seen.add((source, path))
                case ("seen", str(source), str(path)):
                    writer.seen(source, path)
                    seen.add((source, path))
                case ("remove_unseen" | "remove_source", str(source)):
                    keep = seen if name == "remove_unseen" else set()
                    gone = [key for key in stored if key[0] == source and key not in keep]
                    assert getattr(writer, str(name))(source) == len(gone)
                    for key in gone:
                        del stored[key]
                        seen.discard(key)
                case ("publish" | "reopen",):
                    if name == "publish":
                        manifest = writer.publish()
                        assert not list((index / "generations" / str(manifest.generation)).glob("*.json.new"))
                        with open_index(index) as reader:
                            assert_holds(reader, stored)
                    else:
                        writer.__exit__(None, None, None)  # ends without publishing: all of it stays staged
                    seen = set()
                    writer = index_run.open_for_writing(index, commit_chunks=2)
        writer.close()


def test_vectors_and_token_vectors_come_back(tmp_path: Path) -> None:
    chunk = Chunk(("Page",), "", "some words here")
    embedding = index_run.embed(chunk)
    with index_run.open_for_writing(tmp_path) as writer:
        empty = Embedding(embedding.vector, embedding.tokens[:0])
        writer.put(document("a"), "Page", None, [chunk, chunk], [embedding, empty])
        writer.publish()
    with open_index(tmp_path) as reader:
        (first, score), (second, _) = reader.dense(embedding.vector, 2)
        assert score == pytest.approx(1.0, abs=1e-6)
        assert reader.similarity(-embedding.vector, [first]) == pytest.approx([-1.0], abs=1e-6)
        (values, scales, token_ids), nothing = reader.token_vectors([min(first, second), max(first, second)])
        assert values * scales[:, None] == pytest.approx(embedding.tokens, abs=1 / 250)
        assert token_ids.tolist() == [0, 1, 2]
        assert [len(part) for part in nothing] == [0, 0, 0]


def test_quantizing_keeps_zero_and_the_largest_value() -> None:
    values, scales = quantize(np.array([[0, 0, 0], [0.5, -1, 0.25]], np.float32))
    assert values.tolist() == [[0, 0, 0], [64, -127, 32]]
    assert scales == pytest.approx([0, 1 / 127])


@few
@given(st.integers(1, 60), st.integers(0, 70), st.integers(0, 2**32 - 1))
def test_dense_is_exact_over_segments_and_dead_rows(pages: int, k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    vectors: dict[str, np.ndarray[tuple[int], np.dtype[np.float32]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(3):
            with index_run.open_for_writing(Path(folder)) as writer:
                for number in rng.integers(0, pages, size=pages // 2 + 1):
                    vector = rng.normal(size=index_run.DIMENSIONS).astype(np.float32)
                    vector /= np.linalg.norm(vector)
                    embedding = Embedding(vector, np.zeros((0, index_run.DIMENSIONS), np.float32))
                    writer.put(document(str(number)), "P", None, [Chunk((), "", "text")], [embedding])
                    vectors[str(number)] = vector
                writer.publish()
        query = rng.normal(size=index_run.DIMENSIONS).astype(np.float32)
        with open_index(Path(folder)) as reader:
            hits = reader.dense(query, k)
            expected = sorted((float(v @ query) for v in vectors.values()), reverse=True)[:k]
            assert [score for _, score in hits] == pytest.approx(expected, abs=1e-5)
            ids = [number for number, _ in hits]
            assert reader.similarity(query, ids) == pytest.approx([score for _, score in hits], abs=1e-5)
            for passage, (_, score) in zip(reader.passages(ids), hits, strict=True):
                assert float(vectors[passage.path] @ query) == pytest.approx(score, abs=1e-5)


# -- words -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hpc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[IndexReader]:
    passages = [
        "Ask for memory with --mem-per-cpu=4G.",
        "The limit QOSMaxJobsPerUser was reached.",
        "Files on /scratch are removed after 30 days.",
        "SLURM_CPUS_PER_TASK holds the number of cores.",
        "module load python/3.11.4",
        "GPU nodes have four A100-80GB cards.",
        "Für Gäste: the café is closed.",
        "Jobs are running.",
        "memory memory memory",
    ]
    with build_texts(tmp_path_factory.mktemp("hpc") / "index", passages) as reader:
        yield reader


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("what does mem-per-cpu do", "Ask for memory"),
        ("--mem-per-cpu?", "Ask for memory"),
        ("mem per cpu", "Ask for memory"),
        ("it waits with (QOSMaxJobsPerUser)", "The limit"),
        ("qosmaxjobsperuser", "The limit"),
        ("is /scratch backed up", "Files on"),
        ("$SLURM_CPUS_PER_TASK", "SLURM_CPUS"),
        ("slurm cpus per task", "SLURM_CPUS"),
        ("python3.11", "module load"),
        ("python 3.11", "module load"),
        ("which node has an A100", "GPU nodes"),
        ("80GB gpus", "GPU nodes"),
        ("gaste cafe", "Für Gäste"),
        ("is my job still running", "Jobs are"),
    ],
)
def test_words_that_cluster_users_type(hpc: IndexReader, question: str, first: str) -> None:
    assert found(hpc, question)[0].startswith(first)


def test_a_compound_side_by_side_beats_its_parts_apart(tmp_path: Path) -> None:
    with build_texts(
        tmp_path, ["cpu time per mem unit " * 2, "use mem-per-cpu now please ok", "zzz"]
    ) as reader:
        assert found(reader, "mem-per-cpu")[0].startswith("use")


def test_scores_are_positive_and_ordered_and_k_holds(hpc: IndexReader) -> None:
    hits = hpc.lexical("memory jobs scratch python", 10)
    scores = [score for _, score in hits]
    assert len(hits) >= 4
    assert scores == sorted(scores, reverse=True)
    assert all(score > 0 for score in scores)
    assert hpc.lexical("memory jobs scratch python", 2) == hits[:2]
    assert hpc.lexical("memory", 0) == []


def test_stop_words_find_nothing_unless_they_are_the_question(tmp_path: Path) -> None:
    with build_texts(tmp_path, ["who is logged in", "the quota of a group"]) as reader:
        assert found(reader, "how do I do the walltime") == []
        assert found(reader, "who") == ["who is logged in"]


def test_column_weights_decide(tmp_path: Path) -> None:
    with index_run.open_for_writing(tmp_path) as writer:
        index_run.put(writer, document("a"), [Chunk(("Quota", "Other"), "", "plain words")])
        index_run.put(writer, document("b"), [Chunk(("Other", "Quota"), "", "plain words")])
        index_run.put(writer, document("c"), [Chunk(("Other", "Other"), "", "quota words")])
        writer.publish()
    with open_index(tmp_path) as reader:
        for weights, path in (((9, 1, 1), "a"), ((1, 9, 1), "b"), ((1, 1, 9), "c")):
            title, heading, body = map(float, weights)
            hits = reader.lexical("quota", 3, title=title, heading=heading, body=body)
            assert reader.passages([hits[0][0]])[0].path == path


SYNTAX = ['"', "OR", "NEAR(", ")", "*", "^", "{title}:", "-", "+", "mem", "AND", "\x00", "'", "a-b"]


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.text(max_size=60) | st.lists(st.sampled_from(SYNTAX)).map(" ".join))
def test_no_question_is_a_syntax_error(hpc: IndexReader, question: str) -> None:
    for rows in (0, 3, 10**6):
        hits = hpc.lexical(question, 5, rows=rows)
        assert len(hits) <= 5
        assert all(np.isfinite(score) for _, score in hits)


def test_a_question_of_a_thousand_words_is_answered(hpc: IndexReader) -> None:
    words = " ".join(f"word{i}-part{i}" for i in range(1000))
    assert [number for number, _ in hpc.lexical(f"{words} memory", 3)]


def test_the_most_frequent_words_are_left_out_of_large_indexes(tmp_path: Path) -> None:
    texts = [f"common word{i % 4} rare{i}" for i in range(300)]
    with build_texts(tmp_path, texts) as reader:
        question = "common word2 rare7"
        assert found(reader, question)[0] == texts[7]
        wanted = lexical.terms("common word2 rare7")
        database, stems = reader._database, reader._stems
        for rows, expected in (
            (1000, '"rare7" OR "word2" OR "common"'),
            (200, '"rare7" OR "word2"'),
            (60, '"rare7"'),
        ):
            assert lexical.affordable(database, stems, wanted, 300, rows) == expected
        assert lexical.affordable(database, stems, lexical.terms("common"), 300, 60) == '("common")'
        assert lexical.affordable(database, stems, [], 300, 60) == ""
        assert [reader.passages([n])[0].body for n, _ in reader.lexical("common", 3, rows=60)]
        both_frequent = lexical.terms("common word2")
        assert lexical.affordable(database, stems, both_frequent, 300, 60) == '("word2" AND "common")'
        both = reader.lexical("word2 common", 300, rows=60)
        assert len(both) == 75


def test_stems_are_those_of_the_index() -> None:
    stems = lexical.Stems()
    assert [sorted(parts) for parts in stems.of(["running jobs", "Größe", ""])] == [
        ["job", "run"],
        ["groß"],
        [],
    ]
    assert stems.of(["jobs"]) == [["job"]]
    stems.close()


# -- generations -----------------------------------------------------------------------------------------


def test_a_reader_keeps_its_generation(tmp_path: Path) -> None:
    index_run.build(tmp_path, 5)
    with open_index(tmp_path) as reader:
        before = index_run.content(reader)
        for last in (10, 12, 14):
            index_run.build(tmp_path, last)
            assert index_run.content(reader) == before
            assert reader.lexical("topic3", 3)
    with open_index(tmp_path) as reader:
        assert reader.manifest.documents == 14
        assert reader.manifest.generation == 4
    assert sorted(path.name for path in (tmp_path / "generations").iterdir()) == ["3", "4"]


def test_opening_while_another_publishes_never_fails(tmp_path: Path) -> None:
    index_run.build(tmp_path, 3)
    failures: list[Exception] = []

    def publish() -> None:
        try:
            for last in range(4, 14):
                index_run.build(tmp_path, last)
        except Exception as error:
            failures.append(error)

    writer = threading.Thread(target=publish)
    writer.start()
    generations = set()
    running = True
    while running:
        running = writer.is_alive()  # once more after its end
        with open_index(tmp_path) as reader:
            generations.add(reader.manifest.generation)
            passages = {path for path, _ in index_run.content(reader)}
            assert len(passages) == reader.manifest.documents
    writer.join()
    assert failures == []
    assert max(generations) == 11


def test_a_source_without_pages_stays_known(tmp_path: Path) -> None:
    index_run.build(tmp_path, 3)
    for _ in range(2):
        with index_run.open_for_writing(tmp_path) as writer:
            writer.seen("/unreadable", "a.md")
            writer.publish()
    with index_run.open_for_writing(tmp_path) as writer:
        assert writer.sources() == [index_run.SOURCE, "/unreadable"]
        writer.remove_source("/unreadable")
        writer.publish()
    with index_run.open_for_writing(tmp_path) as writer:
        assert writer.sources() == [index_run.SOURCE]


def test_a_run_without_changes_publishes_no_new_generation(tmp_path: Path) -> None:
    first = index_run.build(tmp_path, 10)
    before = sorted(tmp_path.rglob("*"))
    second = index_run.build(tmp_path, 10)
    assert dataclasses.replace(second, sources=first.sources) == first
    assert list(second.sources) == [index_run.SOURCE]
    assert sorted(tmp_path.rglob("*")) == before


def test_segments_are_merged_and_old_files_removed(tmp_path: Path) -> None:
    for last in range(1, 30):
        manifest = index_run.build(tmp_path, last)
        assert len(manifest.segments) <= staging.MOST_SEGMENTS
        live = {number for number, _ in manifest.segments}
        files = {int(path.stem) for path in (tmp_path / "segments").iterdir()}
        assert live <= files
        assert len(files) <= 2 * staging.MOST_SEGMENTS + 1
    index_run.build(tmp_path / "expected", 29)
    with open_index(tmp_path) as reader, open_index(tmp_path / "expected") as expected:
        assert index_run.content(reader) == index_run.content(expected)


def test_what_is_merged() -> None:
    assert staging.choose_merge({}) == []
    assert staging.choose_merge({1: (100, 71)}) == []
    assert staging.choose_merge({1: (100, 69), 2: (10, 10)}) == [1]
    small = dict.fromkeys(range(2, 10), (10, 10))
    assert staging.choose_merge(small) == []
    assert staging.choose_merge({1: (1000, 1000)} | small) == list(small)
    assert staging.choose_merge({1: (100, 100)} | small) == [1, *small]


def test_other_settings_start_anew_but_know_the_sources(tmp_path: Path) -> None:
    index_run.build(tmp_path, 5)
    with index_run.open_for_writing(tmp_path, embedder="other") as writer:
        assert writer.rebuilding is not None
        assert "embedder was model, is other" in writer.rebuilding
        assert writer.sources() == [index_run.SOURCE]
        assert not writer.unchanged(index_run.page(1)[0])
    with open_index(tmp_path) as reader:
        reader.check("model")
        with pytest.raises(StoreError, match=r"made with the model model, not other; run `hyce index`"):
            reader.check("other")
    with index_run.open_for_writing(tmp_path) as writer:
        assert writer.rebuilding is None
        assert writer.unchanged(index_run.page(1)[0])
    with index_run.open_for_writing(tmp_path, token_vectors=False) as writer:
        index_run.update(writer, 5)
        writer.publish()
    with open_index(tmp_path) as reader:
        assert reader.manifest.chunks == 15
        with pytest.raises(StoreError, match="has no token vectors"):
            reader.token_vectors([1])


@pytest.mark.parametrize(("version", "message"), [(0, "older hyce"), (99, "newer hyce")])
def test_other_formats_are_refused_with_the_remedy(tmp_path: Path, version: int, message: str) -> None:
    index_run.build(tmp_path, 5)
    current = tmp_path / "current"
    current.write_text(json.dumps(json.loads(current.read_text()) | {"format": version}))
    with pytest.raises(StoreError, match=message):
        open_index(tmp_path)
    if version == 0:
        assert index_run.build(tmp_path, 5).documents == 5
    else:
        with pytest.raises(StoreError, match=message):
            index_run.open_for_writing(tmp_path)


def test_no_index_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no index here; run `hyce index SOURCE`"):
        open_index(tmp_path / "nothing")


def test_an_empty_index_is_searched_without_a_find(tmp_path: Path) -> None:
    with index_run.open_for_writing(tmp_path) as writer:
        assert writer.publish().chunks == 0
    with open_index(tmp_path) as reader:
        assert reader.dense(index_run.vector("x"), 5) == []
        assert reader.lexical("anything", 5) == []
        assert reader.passages([]) == []
        assert reader.token_vectors([]) == []
        assert len(reader.similarity(index_run.vector("x"), [])) == 0


def test_wrong_vectors_and_ids_are_refused(tmp_path: Path) -> None:
    chunk = Chunk((), "", "text")
    good = index_run.embed(chunk)
    bad = [
        dataclasses.replace(good, vector=good.vector * np.float32("nan")),
        dataclasses.replace(good, vector=good.vector[:3]),
        dataclasses.replace(good, tokens=good.tokens * np.float32("inf")),
    ]
    for embedding in bad:
        with (
            index_run.open_for_writing(tmp_path) as writer,
            pytest.raises(StoreError, match="isn't 8 finite numbers"),
        ):
            writer.put(document("a"), "P", None, [chunk, chunk], [good, embedding])
    with index_run.open_for_writing(tmp_path) as writer:
        assert not writer.unchanged(document("a"))  # half a page is no page
        writer.put(document("b"), "P", None, [chunk], [good])
        assert writer.publish().documents == 1
    with open_index(tmp_path) as reader:
        with pytest.raises(StoreError, match="dimensions"):
            reader.dense(np.zeros(3, np.float32), 1)
        with pytest.raises(StoreError, match="no passage 77"):
            reader.passages([77])


# -- one writer ------------------------------------------------------------------------------------------

HOLD = """
import sys
from pathlib import Path
import index_run
with index_run.open_for_writing(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_writer_is_told_who_writes(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(Path(index_run.__file__).parent)}
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True,
    ) as holder:  # fmt: skip
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(StoreError, match=f"being written by process {holder.pid} on .*; wait for it"):
            index_run.open_for_writing(tmp_path)
        holder.kill()
    index_run.build(tmp_path, 3)  # free once its holder is dead


def no_locks(_: int, __: int) -> None:
    raise OSError(errno.ENOSYS, "no locks here")


def test_without_file_locks_a_file_takes_their_place(tmp_path: Path) -> None:
    held = Lock(tmp_path, no_locks)
    with pytest.raises(StoreError, match=rf"process {os.getpid()} on .*if it is gone, remove .*lock.made"):
        Lock(tmp_path, no_locks)
    held.close()
    Lock(tmp_path, no_locks).close()


def test_without_file_locks_a_dead_process_s_lock_is_taken_over_on_this_host_only(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        gone.wait()
    held = Lock(tmp_path, no_locks)
    marker = tmp_path / "lock.made"
    host = marker.read_text().split()[1]
    held.close()
    marker.write_text(f"{gone.pid} {host}\n")
    Lock(tmp_path, no_locks).close()
    marker.write_text(f"{gone.pid} another-host\n")
    with pytest.raises(StoreError, match="another-host"):
        Lock(tmp_path, no_locks)


# -- sizes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("token_vectors", [True, False])
def test_the_estimate_is_of_the_right_size(tmp_path: Path, token_vectors: bool) -> None:
    words, dimensions, count = 60, 64, 400
    rng = np.random.default_rng(3)
    tokens = rng.normal(size=(words, dimensions)).astype(np.float32)
    embedding = Embedding(tokens[0] / np.linalg.norm(tokens[0]), tokens, tuple(range(words)))
    with open_writer(
        tmp_path, embedder="m", dimensions=dimensions, passages="structure/160", token_vectors=token_vectors
    ) as writer:
        for number in range(count):
            body = " ".join(f"w{i}" for i in rng.integers(0, 999, size=words))
            writer.put(document(str(number)), "Page", None, [Chunk(("Page",), "", body)], [embedding])
        writer.publish()
    actual = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
    database = sum(path.stat().st_size for path in tmp_path.rglob("passages.db"))
    estimate = estimate_bytes(count, words, dimensions, token_vectors)
    assert 0.6 * estimate < actual + database < 1.4 * estimate
