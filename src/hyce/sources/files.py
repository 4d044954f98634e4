"""Documentation from a folder (or one file) -> Documents, page by page."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from hyce.errors import SourceError
from hyce.markup.words import words
from hyce.records import Document, Failure, Note, Unchanged
from hyce.sources import git, man_page, sites
from hyce.sources.encoding import decode
from hyce.sources.mkdocs import MkDocs
from hyce.sources.site import Site
from hyce.sources.sphinx import Sphinx

if TYPE_CHECKING:
    from hyce.sources.read import Item, Known

MEDIA_TYPES = {
    ".md": "text/markdown",
    ".markdown": "text/markdown",
    ".rst": "text/x-rst",
    ".html": "text/html",
    ".htm": "text/html",
    ".txt": "text/plain",
    ".sh": "text/x-script",
    ".slurm": "text/x-script",
    ".pbs": "text/x-script",
    ".sbatch": "text/x-script",
    ".pdf": "application/pdf",
}
"""What a suffix stands for. Manual pages (sbatch.1, sbatch.1.gz) are known by the form of their names."""
RENDERING = 1
"""Raised when PDF files or manual pages become HTML in a new way, so that unchanged ones are read again."""
SKIPPED_FOLDERS = words("node_modules _build _site __pycache__ venv _sources _static _modules")
SKIPPED_FILES = words(
    "requirements.txt cmakelists.txt robots.txt license.txt humans.txt security.txt llms.txt "
    "llms-full.txt 404.html genindex.html search.html py-modindex.html"
)
SHORTEST_TWIN = 64
"""Bytes from which two equal pages are taken for one page in two places."""


def read(source: str, *, max_page_bytes: int, known: Known | None = None) -> Iterator[Item]:
    """Every page of a folder in sorted order, or the one file, as it is read.

    source: folder or file; Document.source is its absolute path.
    max_page_bytes: larger pages become a Failure without being read.
    known: what the index has already; with it, a PDF file or manual page that is the same becomes Unchanged.
    Raises SourceError, before the first page, when there is no such folder or file.
    """
    place = Path(source).expanduser()
    try:
        top = place.resolve(strict=True)
        readable = os.access(top, os.R_OK | (os.X_OK if top.is_dir() else 0))
    except (OSError, RuntimeError) as error:
        raise SourceError(f"{source}: no such folder or file; check the path") from error
    if not readable:
        raise SourceError(f"{source}: can't be read; check its permissions")
    if not top.is_dir() and media_type(top) is None:
        raise SourceError(
            f"{source}: hyce reads {', '.join(MEDIA_TYPES)} and manual pages; convert it to one of them"
        )
    return _Walk(top, max_page_bytes, known).documents()


@dataclass(slots=True)
class _Walk:
    top: Path
    max_page_bytes: int
    known: Known | None = None
    seen: dict[str, str] = field(default_factory=dict)
    """Path of the first page by the digest of its bytes."""
    sites: list[Site] = field(default_factory=list)
    histories: list[git.History] = field(default_factory=list)
    """Of the repositories met so far."""

    @property
    def folder(self) -> Path:
        return self.top if self.top.is_dir() else self.top.parent

    def documents(self) -> Iterator[Item]:
        site = sites.governing(self.folder)
        yield from self._history(self.folder)
        if self.top.is_dir():
            self.sites = [s for s in (site, *self._sites_below()) if s is not None]
            yield from self._folder(self.top, site)
        else:
            yield self._page(self.top, self.top.name, site, forced=True)

    def _sites_below(self) -> Iterator[Site | None]:
        """Sites in the usual places of a repository whose top folder describes none."""
        for name in ("docs", "doc", "source", "docs/source", "doc/source"):
            if (self.top / name).is_dir():
                yield sites.find(self.top / name)

    def _history(self, folder: Path) -> Iterator[Note]:
        """Get ready to date the pages of a repository."""
        history = git.read(folder)
        self.histories.append(history)
        if history.note:
            yield Note(self._relative(folder) if folder != self.folder else ".", history.note)

    def _folder(self, folder: Path, site: Site | None) -> Iterator[Item]:
        try:
            with os.scandir(folder) as scan:
                entries = sorted(scan, key=lambda entry: entry.name)
        except OSError as error:
            yield Failure(
                self._relative(folder), f"the folder can't be read ({error.strerror}); check its permissions"
            )
            return
        if folder != self.top:
            if self._is_generated(folder, {entry.name for entry in entries}, site):
                return
            site = sites.find(folder) or site
            if any(entry.name == ".git" for entry in entries):
                yield from self._history(folder)
        for entry in entries:
            path = Path(entry.path)
            if entry.name.startswith("."):
                continue
            if entry.is_symlink():
                yield from self._link(path, site)
            elif entry.is_dir(follow_symlinks=False):
                if entry.name not in SKIPPED_FOLDERS:
                    yield from self._folder(path, site)
            elif media_type(path) and entry.name.lower() not in SKIPPED_FILES:
                yield self._page(path, self._relative(path), site)

    def _is_generated(self, folder: Path, names: set[str], site: Site | None) -> bool:
        """Whether the folder, with these entries, is what a builder or an environment put there."""
        if "pyvenv.cfg" in names or (isinstance(site, MkDocs) and folder.resolve() == site.output):
            return True
        return bool(self.sites) and bool(names & {"searchindex.js", "objects.inv", "sitemap.xml"})

    def _link(self, path: Path, site: Site | None) -> Iterator[Item]:
        """A link is a page when it leads to a file in the folder. A linked folder in it is walked anyway."""
        relative = self._relative(path)
        try:
            target = path.resolve(strict=True)
        except (OSError, RuntimeError):
            if media_type(path):
                yield Failure(relative, "a link that leads nowhere; mend or remove it")
            return
        is_folder = target.is_dir()
        if not is_folder and not media_type(path):
            return
        if not target.is_relative_to(self.top):
            yield Failure(
                relative, "a link that leads out of the folder; index its target as a source of its own"
            )
        elif not is_folder and path.name.lower() not in SKIPPED_FILES:
            yield self._page(path, relative, site)

    def _relative(self, path: Path) -> str:
        return path.relative_to(self.top).as_posix()

    def _page(self, path: Path, relative: str, site: Site | None, *, forced: bool = False) -> Item:
        reason = "" if forced else self._left_out(path, site)
        if reason:
            return Failure(relative, reason, skipped=True)
        data = self._bytes(path)
        if isinstance(data, str):
            return Failure(relative, data)
        kind = media_type(path) or "text/plain"
        if kind in man_page.RENDERED:
            return self._rendered(path, relative, site, kind, data)
        if kind == "text/plain" and isinstance(site, Sphinx) and path.suffix in site.suffixes:
            kind = "text/x-rst"
        text = decode(data, html=kind == "text/html")
        if text is None:
            return Failure(relative, "no text (it holds NUL bytes); remove it, or convert it")
        if not text.strip():
            return Failure(relative, "empty; write it or remove it")
        key = hashlib.sha256(data).hexdigest()
        twin = "" if kind == "text/x-script" else self._twin(path, relative, site, data, key)
        if twin:
            return Failure(relative, f"the same as {twin}, which is indexed", skipped=True)
        return self._document(path, site, kind, text, key=key, date=self._date(path, data))

    def _twin(self, path: Path, relative: str, site: Site | None, data: bytes, key: str) -> str:
        """Another page with the same bytes, which is to be indexed in place of this one; or empty."""
        if len(data) < SHORTEST_TWIN:
            return ""
        twin = site.listed_twin(path.absolute(), data) if site is not None else None
        inside = twin is not None and twin.is_relative_to(self.top)
        first = self._relative(twin) if twin and inside else self.seen.setdefault(key, relative)
        return first if first != relative else ""

    def _date(self, path: Path, data: bytes) -> str | None:
        """When the file was changed last, by the innermost repository that it lies in."""
        real = path.resolve()
        history = next((h for h in reversed(self.histories) if real.is_relative_to(h.folder)), None)
        return history.date(real, data) if history is not None else None

    def _rendered(self, path: Path, relative: str, site: Site | None, kind: str, data: bytes) -> Item:
        """A page that takes long to become HTML: not done again for what the index has already."""
        key = hashlib.sha256(data).hexdigest()
        twin = self._twin(path, relative, site, data, key)
        if twin:
            return Failure(relative, f"the same as {twin}, which is indexed", skipped=True)
        inside = site is not None and site.inner(path) is not None
        url, title = (site.address(path), site.title(path)) if site and inside else (None, None)
        date = self._date(path, data)
        facts = (key, kind, str(RENDERING), url or "", title or "")
        digest = hashlib.sha256("\0".join(facts).encode("utf-8", "replace")).hexdigest()
        # A date that becomes known later is a reason to look at the page again.
        memo = f"{digest} {date or ''}"
        if self.known is not None and self.known.memo(str(self.top), self._name(path)) == memo:
            return Unchanged(self._name(path))
        try:
            text = self._html(data, kind, relative)
        except man_page.NotOne as reason:
            return Failure(relative, str(reason).removeprefix(f"{relative}: "), skipped=True)
        except SourceError as error:
            return Failure(relative, str(error).removeprefix(f"{relative}: "))
        return Document(str(self.top), self._name(path), kind, text, digest, url, title, date, None, memo)

    def _html(self, data: bytes, kind: str, relative: str) -> str:
        if kind == "application/pdf":
            from hyce.sources import pdf

            return pdf.to_html(data, path=relative)
        return man_page.to_html(data, path=relative, max_bytes=self.max_page_bytes)

    def _name(self, path: Path) -> str:
        return path.relative_to(self.folder).as_posix()

    def _left_out(self, path: Path, site: Site | None) -> str:
        for each in self.sites if site is None else (site,):
            reason = each.left_out(path)
            if reason:
                return reason
        return ""

    def _bytes(self, path: Path) -> bytes | str:
        """The file's bytes, or why there are none. No link is followed once it was checked."""
        try:
            number = os.open(path.resolve(), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except (OSError, RuntimeError) as error:
            return f"can't be read ({getattr(error, 'strerror', None) or error}); check its permissions"
        with os.fdopen(number, "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                return "not a regular file; remove it"
            if status.st_size > self.max_page_bytes:
                size, limit = status.st_size / 1e6, self.max_page_bytes / 1e6
                return f"too large ({size:.1f} MB, {limit:.1f} at most); split it, or raise index.max_page_mb"
            try:
                return file.read(self.max_page_bytes + 1)
            except OSError as error:
                return f"can't be read ({error.strerror}); check the file system"

    def _document(
        self, path: Path, site: Site | None, kind: str, text: str, *, key: str, date: str | None
    ) -> Document:
        root, relative = self.folder, path.relative_to(self.folder).as_posix()
        url = title = None
        if site is not None and site.inner(path) is not None:
            url, title = site.address(path), site.title(path)
            # A Sphinx page may include what lies beside the folder with conf.py, as long as it was named.
            inside = isinstance(site, Sphinx) and site.root.is_relative_to(self.folder)
            root = root if inside else site.root
            text = _completed(text, kind, site)
        used: tuple[Path, ...] = ()
        if kind == "text/markdown":
            from hyce.markup.snippets import Snippets

            folders = site.snippets if site is not None and site.snippets else (root,)
            snippets = Snippets((*folders, path.parent), root)
            text = snippets.expand(text)
        elif kind == "text/x-rst":
            from hyce.markup.includes import included

            used = included(text, path.parent, root)
        digest = hashlib.sha256(
            "\0".join((key, kind, text, url or "", title or "")).encode("utf-8", "replace")
        )
        for file in used:
            digest.update(file.read_bytes())
        return Document(str(self.top), relative, kind, text, digest.hexdigest(), url, title, date, str(root))


def _completed(text: str, media_type: str, site: Site) -> str:
    """The text with what the site's settings put above and below every page."""
    if isinstance(site, MkDocs) and media_type == "text/markdown" and site.after:
        return f"{text}\n\n{site.after}\n"
    if isinstance(site, Sphinx) and media_type == "text/x-rst":
        # Above the title it would take the place of the page's own field list: all goes to the end.
        return "\n\n".join(part for part in (text, site.before, site.after) if part) + "\n"
    return text


def media_type(path: Path) -> str | None:
    """What a file of this name holds; None for what is no page."""
    known = MEDIA_TYPES.get(path.suffix.lower())
    return "text/troff" if known is None and man_page.is_named_like_one(path) else known
