# ruff: noqa: E501  (samples of markup read best as they stand)
"""Folders of documentation -> Documents: what is a page, how it is decoded, what is left out and why."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hyce.errors import SourceError
from hyce.records import Document, Failure
from hyce.sources import encoding, files, patterns

LIMIT = 1_000_000
BODY = "A page about the cluster with enough words in it to be told from any other page."


def write(folder: Path, **pages: str | bytes) -> None:
    """Write pages; `__` in a name stands for a slash and `_dot_` for the dot before its suffix."""
    for name, content in pages.items():
        path = folder / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


def read(folder: Path, limit: int = LIMIT) -> tuple[dict[str, Document], dict[str, Failure]]:
    found = list(files.read(str(folder), max_page_bytes=limit))
    documents = {each.path: each for each in found if isinstance(each, Document)}
    return documents, {each.path: each for each in found if isinstance(each, Failure)}


def test_every_kind_of_page_is_read_in_sorted_order(tmp_path: Path) -> None:
    write(tmp_path, b_dot_md="# b", a_dot_rst="a\n=", c_dot_html="<p>c", d_dot_txt="d", sub__job_dot_slurm="#!/bin/sh\n",
          e_dot_markdown="# e", f_dot_htm="<p>f", g_dot_pbs="x", picture_dot_png=b"\x89PNG")  # fmt: skip
    found = list(files.read(str(tmp_path), max_page_bytes=LIMIT))
    assert [each.path for each in found] == [
        "a.rst", "b.md", "c.html", "d.txt", "e.markdown", "f.htm", "g.pbs", "sub/job.slurm",
    ]  # fmt: skip
    kinds = {each.path: each.media_type for each in found if isinstance(each, Document)}
    assert kinds["a.rst"] == "text/x-rst"
    assert kinds["f.htm"] == "text/html"
    assert kinds["sub/job.slurm"] == "text/x-script"
    assert all(isinstance(each, Document) and each.source == str(tmp_path) for each in found)


def test_one_file_is_a_source_too(tmp_path: Path) -> None:
    write(tmp_path, a_dot_md="# a", b_dot_md="# b")
    documents, _ = read(tmp_path / "a.md")
    assert list(documents) == ["a.md"]
    assert documents["a.md"].source == str(tmp_path / "a.md")


@pytest.mark.parametrize("name", ["missing", "picture.png"])
def test_a_source_that_is_none_is_refused_before_the_first_page(tmp_path: Path, name: str) -> None:
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    with pytest.raises(SourceError, match=name):
        files.read(str(tmp_path / name), max_page_bytes=LIMIT)


def test_what_can_not_be_a_page_is_a_failure_with_its_remedy(tmp_path: Path) -> None:
    write(tmp_path, binary_dot_md=b"a\0b", empty_dot_md="  \n", large_dot_md="x" * 2000, fine_dot_md="# fine")
    os.mkfifo(tmp_path / "pipe.md")
    documents, failures = read(tmp_path, limit=1000)
    assert list(documents) == ["fine.md"]
    assert "NUL" in failures["binary.md"].reason
    assert "empty" in failures["empty.md"].reason
    assert "max_page_mb" in failures["large.md"].reason
    assert "regular file" in failures["pipe.md"].reason
    assert not any(failure.skipped for failure in failures.values())


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
def test_an_unreadable_page_and_folder_are_failures(tmp_path: Path) -> None:
    write(tmp_path, secret_dot_md="# s", shut__a_dot_md="# a", fine_dot_md="# fine")
    (tmp_path / "secret.md").chmod(0)
    (tmp_path / "shut").chmod(0)
    documents, failures = read(tmp_path)
    (tmp_path / "shut").chmod(0o700)
    assert list(documents) == ["fine.md"]
    assert "permissions" in failures["secret.md"].reason
    assert "permissions" in failures["shut"].reason


def test_links_out_of_the_folder_are_never_followed(tmp_path: Path) -> None:
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    write(outside, secret_dot_md="# secret")
    write(inside, page_dot_md="# page")
    (inside / "leak.md").symlink_to(outside / "secret.md")
    (inside / "folder").symlink_to(outside)
    (inside / "broken.md").symlink_to(inside / "nothing.md")
    (inside / "loop").symlink_to(inside)
    (inside / "self.md").symlink_to("self.md")
    documents, failures = read(inside)
    assert list(documents) == ["page.md"]
    assert set(failures) == {"leak.md", "folder", "broken.md", "self.md"}
    assert "out of the folder" in failures["leak.md"].reason


def test_a_link_to_a_page_in_the_folder_is_that_page_once(tmp_path: Path) -> None:
    write(tmp_path, b_dot_md=BODY)
    (tmp_path / "a.md").symlink_to("b.md")
    documents, failures = read(tmp_path)
    assert list(documents) == ["a.md"]
    assert failures["b.md"].skipped


def test_builders_and_version_control_leave_nothing_to_index(tmp_path: Path) -> None:
    for name in (".git", "node_modules", "_build", "__pycache__", ".venv", "env"):
        write(tmp_path / name, a_dot_md=f"# {name}")
    write(
        tmp_path,
        env__pyvenv_dot_cfg="",
        page_dot_md="# page",
        requirements_dot_txt="numpy",
        _dot_hidden_dot_md="x",
    )
    documents, failures = read(tmp_path)
    assert list(documents) == ["page.md"]
    assert not failures


def test_identical_pages_are_indexed_once_but_short_ones_and_scripts_are_not_twins(tmp_path: Path) -> None:
    write(
        tmp_path, a_dot_md=BODY, b_dot_md=BODY, c_dot_md="# x", d_dot_md="# x", e_dot_sh=BODY, f_dot_sh=BODY
    )
    documents, failures = read(tmp_path)
    assert list(documents) == ["a.md", "c.md", "d.md", "e.sh", "f.sh"]
    assert failures["b.md"].skipped
    assert "a.md" in failures["b.md"].reason


def test_the_page_that_the_navigation_names_is_the_one_that_stays(tmp_path: Path) -> None:
    write(tmp_path, mkdocs_dot_yml="nav: [{SSH: ssh.md}]", docs__old_dot_md=BODY, docs__ssh_dot_md=BODY)
    documents, failures = read(tmp_path)
    assert list(documents) == ["docs/ssh.md"]
    assert "docs/ssh.md" in failures["docs/old.md"].reason


def test_a_built_site_beside_its_sources_is_not_indexed_twice(tmp_path: Path) -> None:
    write(tmp_path, docs__source__conf_dot_py="project = 'x'", docs__source__a_dot_rst="A\n=\n",
          docs__build__html__a_dot_html="<p>A", docs__build__html__objects_dot_inv="")  # fmt: skip
    assert list(read(tmp_path)[0]) == ["docs/source/a.rst"]
    assert list(read(tmp_path / "docs" / "build" / "html")[0]) == ["a.html"]


# -- encodings -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "html"),
    [
        ("Größe \u2013 ok".encode(), False),
        ("Größe \u2013 ok".encode("utf-8-sig"), False),
        ("Größe \u2013 ok".encode("utf-16"), False),
        ("Größe \u2013 ok".encode("cp1252"), False),
        (b'<meta charset="cp1252">Gr\xf6\xdfe \x96 ok', True),
        ('<meta http-equiv="c" content="text/html; charset=utf-8">Größe \u2013 ok'.encode(), True),
    ],
)
def test_encodings(data: bytes, html: bool) -> None:
    assert (encoding.decode(data, html=html) or "").endswith("Größe \u2013 ok")


def test_bytes_that_no_western_code_page_knows_are_still_text() -> None:
    assert encoding.decode(b"a\x81b") == "a\x81b"


def test_line_ends_become_newlines() -> None:
    assert encoding.decode(b"a\r\nb\rc") == "a\nb\nc"


# -- mkdocs.yml ------------------------------------------------------------------------------------------

MKDOCS = """
site_name: Test
site_url: https://docs.example.org/guide
docs_dir: pages
theme: {name: material, custom_dir: pages/overrides}
nav:
  - Home: index.md
  - Storage:
    - storage/index.md
    - "Disk quotas": storage/quotas.md
exclude_docs: |
  drafts/
  *.inc.md
  !keep.inc.md
plugins:
  - search
  - exclude-search:
      exclude: [internal/*, "storage/index.md#part"]
markdown_extensions:
  - pymdownx.snippets:
      base_path: [snippets]
      auto_append: [abbreviations.md]
  - pymdownx.emoji:
      emoji_index: !!python/name:os.system
      other: !ENV [HOME, nothing]
      more: !unknown {a: b}
"""


def make_site(folder: Path) -> None:
    write(folder, mkdocs_dot_yml=MKDOCS, README_dot_md="# about the repository", snippets__note_dot_md="Snippet words.",
          snippets__abbreviations_dot_md="*[HPC]: High Performance Computing", pages__index_dot_md="# Home",
          pages__storage__index_dot_md="# Storage", pages__storage__quotas_dot_md="no heading\n\n--8<-- \"note.md\"\n",
          pages__drafts__a_dot_md="# draft", pages__x_dot_inc_dot_md="# inc", pages__internal__b_dot_md="# internal",
          pages__overrides__main_dot_html="<p>theme", pages__scripts__run_dot_sh="#!/bin/sh")  # fmt: skip
    (folder / "pages" / "keep.inc.md").write_text("# kept", encoding="utf-8")


def test_a_mkdocs_site_has_the_pages_addresses_and_titles_of_its_settings(tmp_path: Path) -> None:
    make_site(tmp_path)
    documents, failures = read(tmp_path)
    assert {path: document.url for path, document in documents.items()} == {
        "pages/index.md": "https://docs.example.org/guide/",
        "pages/keep.inc.md": "https://docs.example.org/guide/keep.inc/",
        "pages/scripts/run.sh": "https://docs.example.org/guide/scripts/run.sh",
        "pages/storage/index.md": "https://docs.example.org/guide/storage/",
        "pages/storage/quotas.md": "https://docs.example.org/guide/storage/quotas/",
    }
    assert documents["pages/storage/quotas.md"].title == "Disk quotas"
    assert documents["pages/storage/index.md"].title is None
    assert failures["pages/drafts/a.md"].skipped
    assert "exclude_docs" in failures["pages/drafts/a.md"].reason
    assert "search" in failures["pages/internal/b.md"].reason
    assert "theme" in failures["pages/overrides/main.html"].reason
    assert "docs_dir" in failures["README.md"].reason
    assert "pages/x.inc.md" in failures


def test_the_docs_folder_alone_knows_its_site(tmp_path: Path) -> None:
    make_site(tmp_path)
    documents, _ = read(tmp_path / "pages")
    assert documents["storage/quotas.md"].url == "https://docs.example.org/guide/storage/quotas/"
    assert "Snippet words." in documents["storage/quotas.md"].text
    assert "High Performance Computing" in documents["index.md"].text
    only, _ = read(tmp_path / "pages" / "storage" / "quotas.md")
    assert only["quotas.md"].url == documents["storage/quotas.md"].url


def test_flat_addresses_and_a_readme_as_index(tmp_path: Path) -> None:
    write(tmp_path, mkdocs_dot_yml="site_url: https://x.org/\nuse_directory_urls: false", docs__a_dot_md="# a",
          docs__s__README_dot_md="# s")  # fmt: skip
    documents, _ = read(tmp_path)
    assert documents["docs/a.md"].url == "https://x.org/a.html"
    assert documents["docs/s/README.md"].url == "https://x.org/s/index.html"


@pytest.mark.parametrize(
    "text", ["", "- just\n- a list", "a: [b", "site_url: 3", "nav: 5\nplugins: {search: null}"]
)
def test_odd_settings_are_no_reason_to_fail(tmp_path: Path, text: str) -> None:
    write(tmp_path, mkdocs_dot_yml=text, docs__a_dot_md="# a")
    documents, _ = read(tmp_path)
    assert documents["docs/a.md"].url is None


def test_settings_are_inherited_within_the_folder_only(tmp_path: Path) -> None:
    write(tmp_path, outer_dot_yml="site_url: https://outer.org/", site__mkdocs_dot_yml="INHERIT: ../outer.yml",
          site__docs__a_dot_md="# a", own__mkdocs_dot_yml="INHERIT: base.yml",
          own__base_dot_yml="site_url: https://base.org/", own__docs__a_dot_md="# a")  # fmt: skip
    assert read(tmp_path / "site")[0]["docs/a.md"].url is None
    assert read(tmp_path / "own")[0]["docs/a.md"].url == "https://base.org/a/"


def test_without_its_docs_folder_a_settings_file_leaves_the_pages_alone(tmp_path: Path) -> None:
    write(tmp_path, mkdocs_dot_yml="site_url: https://x.org/", README_dot_md="# all there is")
    assert list(read(tmp_path)[0]) == ["README.md"]


# -- conf.py ---------------------------------------------------------------------------------------------

CONF = """
import os
os.abort()
project = "Guide"
release = "7.2"
html_baseurl = "https://docs.example.org/en/"
exclude_patterns = ["_build", "drafts/**", "old.rst"]
rst_epilog = ".. |helpdesk| replace:: help@example.org"
extensions = ["sphinx_design"]
"""


def test_a_sphinx_site_is_read_and_never_executed(tmp_path: Path) -> None:
    write(tmp_path, docs__conf_dot_py=CONF, docs__index_dot_rst="Index\n=====\n", docs__a__b_dot_rst="B\n=\n",
          docs__drafts__x_dot_rst="X\n=\n", docs__old_dot_rst="O\n=\n", README_dot_md="# about the repository")  # fmt: skip
    documents, failures = read(tmp_path)
    assert {path: document.url for path, document in documents.items()} == {
        "docs/a/b.rst": "https://docs.example.org/en/a/b.html",
        "docs/index.rst": "https://docs.example.org/en/index.html",
    }
    assert "help@example.org" in documents["docs/index.rst"].text
    assert "|release| replace:: 7.2" in documents["docs/index.rst"].text
    assert set(failures) == {"README.md", "docs/drafts/x.rst", "docs/old.rst"}
    assert all(failure.skipped for failure in failures.values())


# -- digests ---------------------------------------------------------------------------------------------


def test_the_digest_follows_bytes_snippets_and_settings(tmp_path: Path) -> None:
    make_site(tmp_path)
    page = "pages/storage/quotas.md"

    def digest() -> str:
        return read(tmp_path)[0][page].digest

    seen = {digest()}
    assert digest() in seen
    for file, text in (
        ("snippets/note.md", "Other words."),
        ("pages/storage/quotas.md", "changed\n"),
        ("mkdocs.yml", MKDOCS.replace("example.org", "example.com")),
    ):
        (tmp_path / file).write_text(text, encoding="utf-8")
        now = digest()
        assert now not in seen, file
        seen.add(now)


def test_the_digest_of_rst_follows_what_it_includes(tmp_path: Path) -> None:
    write(tmp_path, a_dot_rst=".. include:: b.txt\n", b_dot_txt=".. literalinclude:: c.sh\n", c_dot_sh="one")
    before = read(tmp_path)[0]["a.rst"].digest
    (tmp_path / "c.sh").write_text("two", encoding="utf-8")
    assert read(tmp_path)[0]["a.rst"].digest != before


def test_the_digest_does_not_depend_on_other_pages(tmp_path: Path) -> None:
    write(tmp_path, a_dot_md="# a", b_dot_md="# b")
    before = read(tmp_path)[0]["a.md"].digest
    (tmp_path / "b.md").write_text("# other", encoding="utf-8")
    assert read(tmp_path)[0]["a.md"].digest == before


# -- patterns --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "lines", "expected"),
    [
        ("a/b.md", "b.md", True),
        ("a/b.md", "/b.md", False),
        ("a/b.md", "a/", True),
        ("a/b.md", "a", True),
        ("x/a/b.md", "a/b.md", False),
        ("x/a/b.md", "**/b.md", True),
        ("a/b.md", "*.md\n!b.md", False),
        ("a/b.md", "# comment\n\n?.md", True),
        ("a/b.md", "[!c].md", True),
        ("a.b.md", "a?b.md", True),
        ("axb/md", "a*md", False),
    ],
)
def test_gitignore_patterns(path: str, lines: str, expected: bool) -> None:
    assert patterns.ignored(path, lines) is expected


def test_sphinx_patterns() -> None:
    assert patterns.matches("drafts/a.rst", ["drafts"])
    assert patterns.matches("a/b/c.rst", ["**/c.rst"])
    assert not patterns.matches("a/b.rst", ["*.rst"])
