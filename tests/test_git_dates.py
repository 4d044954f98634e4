"""Pages get the dates of their commits, by a real git, and nothing that a repository names runs."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from word_embedder import WordEmbedder

from hyce.config import Config
from hyce.index.embedded import open_index, open_writer
from hyce.indexing import IndexReport, index_sources, passage_settings
from hyce.records import Document, Note
from hyce.sources import files

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="git isn't installed")

BODY = "A page about the cluster with enough words in it to be told from any other page.\n"


class Repository:
    """A clone with pages in docs/."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet")

    def git(self, *arguments: str, date: str = "2020-01-01") -> None:
        stamps = {"GIT_AUTHOR_DATE": f"{date}T12:00:00", "GIT_COMMITTER_DATE": "2026-06-01T12:00:00"}
        who = ("-c", "user.name=n", "-c", "user.email=n@kestrel.example", "-c", "commit.gpgsign=false")
        subprocess.run(
            ["git", *who, *arguments],
            cwd=self.folder,
            env=os.environ | stamps,
            check=True,
            capture_output=True,
        )

    def page(self, path: str, text: str = BODY) -> Path:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def commit(self, date: str) -> None:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", "pages", date=date)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "clone")
    made.page("docs/old.md", "# Old\n\n" + BODY)
    made.page("docs/moved.md", "# Moved\n\n" + BODY)
    made.commit("2021-02-03")
    made.page("docs/new.md", "# New\n\n" + BODY)
    made.commit("2023-04-05")
    return made


def dates(folder: Path) -> dict[str, str | None]:
    found = files.read(str(folder), max_page_bytes=10**6)
    return {each.path: each.date for each in found if isinstance(each, Document)}


def test_a_page_has_the_date_of_its_last_commit(repository: Repository) -> None:
    """The author's date, though the committer's is later."""
    assert dates(repository.folder / "docs") == {
        "moved.md": "2021-02-03",
        "new.md": "2023-04-05",
        "old.md": "2021-02-03",
    }
    assert dates(repository.folder)["docs/new.md"] == "2023-04-05"
    assert dates(repository.folder / "docs" / "old.md") == {"old.md": "2021-02-03"}


def test_to_rename_a_page_makes_it_no_newer(repository: Repository) -> None:
    repository.git("mv", "docs/moved.md", "docs/b \u00fc.md")
    repository.commit("2024-01-01")
    assert dates(repository.folder / "docs")["b \u00fc.md"] == "2021-02-03"
    repository.page("docs/b \u00fc.md", "# Other\n\n" + BODY)
    repository.commit("2025-01-01")
    assert dates(repository.folder / "docs")["b \u00fc.md"] == "2025-01-01"


def test_a_page_with_uncommitted_changes_has_no_date(repository: Repository) -> None:
    repository.page("docs/old.md", "# Old\n\nChanged since. " + BODY)
    repository.page("docs/untracked.md", "# Untracked\n\n" + BODY)
    found = dates(repository.folder / "docs")
    assert (found["old.md"], found["untracked.md"], found["new.md"]) == (None, None, "2023-04-05")


def test_a_change_on_a_merged_branch_counts(repository: Repository) -> None:
    repository.git("checkout", "--quiet", "-b", "side")
    repository.page("docs/old.md", "# Old\n\nFrom the side. " + BODY)
    repository.commit("2024-05-06")
    repository.git("checkout", "--quiet", "-")
    repository.page("docs/new.md", "# New\n\nFrom the main line. " + BODY)
    repository.commit("2024-07-08")
    repository.git("merge", "--quiet", "--no-edit", "side", date="2025-01-01")
    found = dates(repository.folder / "docs")
    assert (found["old.md"], found["new.md"]) == ("2024-05-06", "2024-07-08")


def test_the_end_of_a_shallow_clone_dates_nothing(repository: Repository, tmp_path: Path) -> None:
    repository.page("docs/latest.md", "# Latest\n\n" + BODY)
    repository.commit("2025-06-07")
    subprocess.run(
        ["git", "clone", "--quiet", "--depth", "2", f"file://{repository.folder}", str(tmp_path / "shallow")],
        check=True,
    )
    assert dates(tmp_path / "shallow" / "docs") == {
        "latest.md": "2025-06-07",
        "moved.md": None,
        "new.md": None,
        "old.md": None,
    }


def test_a_repository_within_the_folder_dates_its_own_pages(repository: Repository) -> None:
    (repository.folder.parent / "loose.md").write_text("# Loose\n\n" + BODY, encoding="utf-8")
    found = dates(repository.folder.parent)
    assert (found["loose.md"], found["clone/docs/new.md"]) == (None, "2023-04-05")


def test_without_a_repository_or_a_commit_there_are_no_dates(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / "a.md").write_text(BODY, encoding="utf-8")
    assert dates(plain) == {"a.md": None}
    Repository(plain)
    assert dates(plain) == {"a.md": None}
    (plain / ".git" / "HEAD").write_text("damaged", encoding="utf-8")
    assert dates(plain) == {"a.md": None}


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_a_repository_of_somebody_else_is_noted_and_dates_nothing(repository: Repository) -> None:
    for place in (repository.folder, *repository.folder.rglob("*")):
        os.chown(place, 12345, 12345)
    found = list(files.read(str(repository.folder), max_page_bytes=10**6))
    (note,) = [each for each in found if isinstance(each, Note)]
    assert note.path == "."
    assert "safe.directory" in note.reason
    assert [each.date for each in found if isinstance(each, Document)] == [None] * 3


def test_nothing_that_the_repository_names_runs(repository: Repository, tmp_path: Path) -> None:
    """With each of these settings plain git would start the program, for one command or another."""
    canary = tmp_path / "canary"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {canary}\nexit 1\n", encoding="utf-8")
    program.chmod(0o755)
    settings = {
        "core.fsmonitor": program,
        "core.pager": program,
        "core.sshCommand": program,
        "core.editor": program,
        "core.hooksPath": tmp_path,
        "diff.external": program,
        "diff.text.textconv": program,
        "diff.text.command": program,
        "filter.text.clean": program,
        "filter.text.smudge": program,
        "gpg.program": program,
        "log.showSignature": "true",
        "log.showRoot": "false",
        "pager.log": program,
        "alias.log": f"!{program}",
        "protocol.ext.allow": "always",
        "remote.origin.url": f"ext::{program}",
        "remote.origin.promisor": "true",
        "extensions.partialClone": "origin",
    }
    repository.page("docs/.gitattributes", "*.md diff=text filter=text\n")
    for name, value in settings.items():
        repository.git("config", name, str(value))
    included = tmp_path / "included"
    included.write_text(f"[core]\n\tpager = {program}\n", encoding="utf-8")
    repository.git("config", "include.path", str(included))
    assert dates(repository.folder / "docs")["old.md"] == "2021-02-03"
    # Objects that are missing are fetched by a partial clone, with what `remote.origin.url` names.
    for file in (repository.folder / ".git" / "objects").glob("??/*"):
        file.unlink()
    assert set(dates(repository.folder / "docs").values()) == {None}
    assert not canary.exists()
    plain = ["git", "log", "-1"]
    subprocess.run(plain, cwd=repository.folder, check=False, capture_output=True, timeout=60)
    assert canary.exists()  # plain git runs it


def run(source: Path, index: Path) -> tuple[IndexReport, dict[str, str | None]]:
    embedder, config = WordEmbedder(), Config()
    with open_writer(
        index,
        embedder=embedder.fingerprint,
        dimensions=embedder.dimensions,
        passages=passage_settings(config),
        token_vectors=True,
    ) as writer:
        report = index_sources([str(source)], writer, embedder, config, lambda *_: None)
    with open_index(index) as opened:
        ids = [number for number, _ in opened.lexical("cluster", 99)]
        return report, {passage.path: passage.date for passage in opened.passages(ids)}


def test_a_date_that_becomes_known_later_is_stored_without_embedding_again(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "clone")
    repository.page("a.md", "# A\n\n" + BODY)
    repository.page("b.md", "---\ndate: 2019-01-01\n---\n# B\n\n" + BODY)
    report, stored = run(repository.folder, tmp_path / "index")
    assert (report.embedded, stored) == (2, {"a.md": None, "b.md": "2019-01-01"})
    repository.commit("2022-03-04")
    report, stored = run(repository.folder, tmp_path / "index")
    assert (report.embedded, report.unchanged) == (0, 2)
    assert stored == {"a.md": "2022-03-04", "b.md": "2019-01-01"}  # the page's own word wins
