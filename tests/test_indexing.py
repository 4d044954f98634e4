"""An index follows its sources: what is new is embedded, what is gone is removed, what fails is kept."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from word_embedder import WordEmbedder

from hyce import config, indexing
from hyce.config import Config
from hyce.errors import SourceError
from hyce.index.embedded import IndexWriter, open_index, open_writer
from hyce.indexing import IndexReport, index_sources, passage_settings
from hyce.records import Passage


class Setup:
    """A folder of documentation and an index of it."""

    def __init__(self, folder: Path) -> None:
        self.docs = folder / "docs"
        self.docs.mkdir()
        self.index = folder / "index"
        self.config = Config()
        self.embedder = WordEmbedder()
        self.progress: list[tuple[int, int | None, str]] = []

    def page(self, path: str, text: str | bytes) -> Path:
        file = self.docs / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        return file

    def writer(self) -> IndexWriter:
        return open_writer(
            self.index,
            embedder=self.embedder.fingerprint,
            dimensions=self.embedder.dimensions,
            passages=passage_settings(self.config),
            token_vectors=self.config.index.token_vectors,
        )

    def run(self, *sources: Path | str) -> IndexReport:
        """Index the sources (default: the folder); `embedder.embedded` holds what was embedded for it."""
        self.embedder.batches.clear()
        self.progress.clear()
        named = [str(source) for source in sources or (self.docs,)]
        with self.writer() as writer:
            return index_sources(named, writer, self.embedder, self.config, self._report)

    def _report(self, done: int, total: int | None, detail: str) -> None:
        self.progress.append((done, total, detail))

    def passages(self) -> list[Passage]:
        with open_index(self.index) as index:
            ids = [i for i, _ in index.dense(np.ones(self.embedder.dimensions, np.float32), 10**6)]
            return sorted(index.passages(ids), key=lambda p: (p.source, p.path, p.position))

    def bodies(self) -> dict[str, str]:
        """Each page's text, by its path."""
        found: dict[str, str] = {}
        for passage in self.passages():
            found[passage.path] = f"{found.get(passage.path, '')}\n{passage.body}".strip()
        return found


@pytest.fixture
def setup(tmp_path: Path) -> Setup:
    made = Setup(tmp_path)
    made.page("quota.md", "# Quota\n\nEach home has 50 GB.\n")
    made.page("jobs/submit.md", "# Submit\n\nUse sbatch.\n\n## Options\n\nAsk for memory.\n")
    made.page("status.rst", "Status\n======\n\nAll is well.\n")
    return made


THREE = {
    "quota.md": "Each home has 50 GB.",
    "jobs/submit.md": "Use sbatch.\nAsk for memory.",
    "status.rst": "All is well.",
}


def counts(report: IndexReport) -> tuple[int, int, int, int, int]:
    return report.documents, report.chunks, report.embedded, report.unchanged, report.removed


def reasons(failures: Sequence[object]) -> dict[str, str]:
    return {failure.path: failure.reason for failure in failures}  # type: ignore[attr-defined]


# -- runs ------------------------------------------------------------------------------------------------


def test_a_first_run_stores_every_page(setup: Setup) -> None:
    report = setup.run()
    assert counts(report) == (3, 4, 4, 0, 0)
    assert (report.failed, report.skipped) == ((), ())
    assert report.seconds >= 0
    assert setup.bodies() == THREE
    assert setup.progress[-1] == (3, 3, "4 passages embedded")
    options = next(p for p in setup.passages() if p.body == "Ask for memory.")
    assert (options.title, options.heading, options.position) == ("Submit", ("Submit", "Options"), 1)
    assert options.source == str(setup.docs)
    assert sorted(setup.embedder.embedded) == sorted(p.text for p in setup.passages())


def test_a_second_run_embeds_nothing(setup: Setup) -> None:
    setup.run()
    before = setup.passages()
    assert counts(setup.run()) == (3, 4, 0, 3, 0)
    assert setup.embedder.embedded == []
    assert setup.passages() == before


def test_only_a_changed_page_is_embedded_again(setup: Setup) -> None:
    setup.run()
    setup.page("quota.md", "# Quota\n\nEach home has 80 GB.\n")
    assert counts(setup.run()) == (3, 4, 1, 2, 0)
    assert setup.embedder.embedded == ["Quota\nEach home has 80 GB."]
    assert setup.bodies() == THREE | {"quota.md": "Each home has 80 GB."}


def test_a_new_page_is_added_and_a_deleted_one_removed(setup: Setup) -> None:
    setup.run()
    (setup.docs / "jobs/submit.md").unlink()
    setup.page("new.md", "# New\n\nText.\n")
    assert counts(setup.run()) == (3, 3, 1, 2, 1)
    rest = {path: body for path, body in THREE.items() if path != "jobs/submit.md"}
    assert setup.bodies() == rest | {"new.md": "Text."}


def test_a_moved_page_is_found_at_its_new_place_alone(setup: Setup) -> None:
    setup.run()
    (setup.docs / "quota.md").rename(setup.docs / "space.md")
    report = setup.run()
    assert (report.documents, report.removed) == (3, 1)
    assert set(setup.bodies()) == {"space.md", "jobs/submit.md", "status.rst"}


def test_what_hides_a_page_later_removes_it(setup: Setup) -> None:
    setup.run()
    setup.page("quota.md", "---\nsearch:\n  exclude: true\n---\n# Quota\n\nEach home has 50 GB.\n")
    setup.page("status.rst", "Status\n======\n\nThis page has moved to another place.\n")
    report = setup.run()
    assert set(setup.bodies()) == {"jobs/submit.md"}
    assert (report.documents, report.removed, report.failed) == (1, 2, ())
    assert set(reasons(report.skipped)) == {"quota.md", "status.rst"}


def test_a_page_that_becomes_a_copy_of_another_is_removed(setup: Setup) -> None:
    setup.run()
    copied = "# Quota\n\n" + "Each home has 50 GB, and each project a terabyte. " * 3
    setup.page("quota.md", copied)
    setup.page("space.md", copied)
    setup.page("jobs/submit.md", copied)
    report = setup.run()
    assert set(setup.bodies()) == {"jobs/submit.md", "status.rst"}, "the first in sorted order stays"
    assert set(reasons(report.skipped)) == {"quota.md", "space.md"}
    assert report.removed == 1


# -- failures --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("broken", "reason"), [(b"\0\1\2binary", "NUL"), (b"", "empty"), (b"<!-- nothing -->", "no text")]
)
def test_a_page_that_can_not_be_read_keeps_what_the_index_has(
    setup: Setup, broken: bytes, reason: str
) -> None:
    setup.run()
    setup.page("quota.md", broken)
    report = setup.run()
    assert list(reasons(report.failed)) == ["quota.md"]
    assert reason in report.failed[0].reason
    assert (report.documents, report.removed) == (2, 0)
    assert setup.bodies() == THREE
    setup.page("quota.md", "# Quota\n\nNow 90 GB.\n")
    assert setup.run().failed == ()
    assert setup.bodies()["quota.md"] == "Now 90 GB."


def test_a_page_that_never_could_be_read_stops_no_other(setup: Setup) -> None:
    setup.page("a.md", b"\0")
    setup.page("z.md", "<!-- -->")
    report = setup.run()
    assert list(reasons(report.failed)) == ["a.md", "z.md"]
    assert setup.bodies() == THREE
    assert setup.progress[-1][:2] == (5, 5)


def test_a_page_above_the_size_limit_is_listed_and_kept(setup: Setup) -> None:
    setup.run()
    setup.page("quota.md", "# Quota\n\n" + "word " * 1000)
    setup.config = dataclasses.replace(Config(), index=config.Index(max_page_mb=0.002))
    report = setup.run()
    assert "max_page_mb" in reasons(report.failed)["quota.md"]
    assert setup.bodies() == THREE


def test_an_unreadable_folder_keeps_its_pages(setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    setup.run()
    scandir = os.scandir

    def denied(path: str | Path | int) -> object:
        if (
            not isinstance(path, int) and Path(path) == setup.docs / "jobs"
        ):  # by permissions it could not be told to root
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", denied)
    report = setup.run()
    assert "Permission denied" in reasons(report.failed)["jobs"]
    assert report.removed == 0
    assert setup.bodies() == THREE


def test_where_no_source_can_be_read_the_published_index_stays_as_it_was(
    setup: Setup, tmp_path: Path
) -> None:
    setup.run()
    with pytest.raises(SourceError, match="no such folder"):
        setup.run(tmp_path / "missing", tmp_path / "gone")
    assert setup.bodies() == THREE


def test_a_source_that_is_gone_keeps_its_pages_and_the_others_go_on(setup: Setup, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "gpu.md").write_text("# GPUs\n\nFour in a node.\n")
    setup.run(setup.docs, other)
    setup.page("quota.md", "# Quota\n\nEach home has 80 GB.\n")
    (other / "gpu.md").unlink()
    other.rmdir()
    report = setup.run(other, setup.docs)
    (failure,) = report.failed
    assert (failure.path, failure.reason) == (str(other), "no such folder or file; check the path")
    bodies = setup.bodies()
    assert bodies["quota.md"] == "Each home has 80 GB."
    assert bodies["gpu.md"] == "Four in a node."


def test_where_the_index_is_built_anew_every_source_must_be_there(setup: Setup, tmp_path: Path) -> None:
    """Nothing is kept of a source then: publishing without it would lose it."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "gpu.md").write_text("# GPUs\n\nFour in a node.\n")
    setup.run(setup.docs, other)
    (other / "gpu.md").unlink()
    other.rmdir()
    setup.embedder = WordEmbedder("another model")
    with pytest.raises(SourceError, match="no such folder"):
        setup.run(setup.docs, other)
    assert setup.bodies()["gpu.md"] == "Four in a node."


# -- several sources -------------------------------------------------------------------------------------


def test_sources_are_independent(setup: Setup, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "quota.md").write_text("# Other\n\nOther quota.\n")
    setup.run()
    assert counts(setup.run(other)) == (1, 5, 1, 0, 0)
    (setup.docs / "quota.md").unlink()
    assert counts(setup.run(other)) == (1, 5, 0, 1, 0), "the other source was not named"
    assert counts(setup.run(setup.docs, other)) == (3, 4, 0, 3, 1)
    with setup.writer() as writer:
        assert writer.sources() == sorted([str(setup.docs), str(other)])


def test_a_source_that_is_named_twice_is_read_once(setup: Setup) -> None:
    assert counts(setup.run(setup.docs, setup.docs)) == (3, 4, 4, 0, 0)


def test_one_file_is_a_source(setup: Setup) -> None:
    assert counts(setup.run(setup.docs / "quota.md")) == (1, 1, 1, 0, 0)
    (passage,) = setup.passages()
    assert (passage.source, passage.path) == (str(setup.docs / "quota.md"), "quota.md")


# -- settings --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changed",
    [
        Config(passages=config.Passages(size=64)),
        Config(passages=config.Passages(kind="paragraph")),
        Config(index=config.Index(token_vectors=False)),
    ],
)
def test_other_settings_build_the_whole_index_again(setup: Setup, tmp_path: Path, changed: Config) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "gpu.md").write_text("# GPUs\n\nFour a node.\n")
    setup.run(setup.docs, other)
    setup.config = changed
    with setup.writer() as writer:
        assert writer.rebuilding
        sources = writer.sources()
    assert sources == sorted([str(setup.docs), str(other)]), "all are known, so that all can be read again"
    report = setup.run(*sources)
    assert (report.documents, report.unchanged, report.embedded) == (4, 0, report.chunks)
    assert setup.bodies() == THREE | {"gpu.md": "Four a node."}


def test_another_model_builds_the_whole_index_again(setup: Setup) -> None:
    setup.run()
    setup.embedder = WordEmbedder("another", dimensions=16)
    assert counts(setup.run()) == (3, 4, 4, 0, 0)


def test_pages_read_in_a_new_way_are_indexed_again(setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    setup.run()
    monkeypatch.setattr(indexing, "PARSING", indexing.PARSING + 1)
    assert counts(setup.run()) == (3, 4, 4, 0, 0)


def test_paragraphs_are_stored_alone_and_without_headings(setup: Setup) -> None:
    setup.page("quota.md", "# Quota\n\nEach home has 50 GB.\n\n- a list item\n\nAnd a grace period.\n")
    setup.config = Config(passages=config.Passages(kind="paragraph"))
    setup.run(setup.docs / "quota.md")
    assert [(p.heading, p.body) for p in setup.passages()] == [
        ((), "Each home has 50 GB."),
        ((), "And a grace period."),
    ]


@pytest.mark.parametrize("wanted", [True, False])
def test_token_vectors_are_stored_where_they_are_wanted(setup: Setup, wanted: bool) -> None:
    setup.config = Config(index=config.Index(token_vectors=wanted))
    setup.run()
    with open_index(setup.index) as index:
        assert index.manifest.token_vectors is wanted
        if wanted:
            ((number, _),) = index.lexical("sbatch", 1)
            ((rows, _, vocabulary),) = index.token_vectors([number])
            assert len(rows) == len(vocabulary) == 3


# -- what a passage carries ------------------------------------------------------------------------------


def test_addresses_titles_and_dates_reach_the_passage(setup: Setup) -> None:
    setup.run()
    assert {(p.url, p.date) for p in setup.passages()} == {(None, None)}
    setup.page("mkdocs.yml", "site_name: K\nsite_url: https://docs.example/\ndocs_dir: pages\n")
    setup.page("pages/quota.md", "---\ndate: 2026-03-04\n---\n# Quota\n\nText.\n\n## More space\n\nAsk.\n")
    setup.run()
    first, second = (p for p in setup.passages() if p.path == "pages/quota.md")
    assert (first.title, first.date, second.date) == ("Quota", "2026-03-04", "2026-03-04")
    assert second.url == "https://docs.example/quota/#more-space"
    assert (first.url or "").startswith("https://docs.example/quota/")


# -- size ------------------------------------------------------------------------------------------------


def test_passages_are_embedded_in_groups_of_bounded_size(setup: Setup) -> None:
    for number in range(indexing.BATCH // 4 + 10):
        sections = "\n\n".join(f"## Part {part}\n\nText {number}." for part in range(5))
        setup.page(f"{number:03}.md", f"# Page {number}\n\n{sections}\n")
    report = setup.run()
    sizes = [len(batch) for batch in setup.embedder.batches]
    assert sum(sizes) == report.embedded == report.chunks > indexing.BATCH
    assert max(sizes) < indexing.BATCH + 10
    assert len(sizes) > 1
    done = [progress[0] for progress in setup.progress]
    assert done == sorted(done)
    assert done[-1] == report.documents


def test_more_text_and_smaller_passages_are_expected_to_give_more_passages() -> None:
    passages, tokens = indexing.expect(1_000_000, 192)
    assert 500 < passages < 10_000
    assert 0 < tokens <= 192
    assert indexing.expect(2_000_000, 192)[0] > passages
    assert indexing.expect(1_000_000, 96)[0] > passages
    assert indexing.expect(0, 192)[0] >= 1
