"""mkdocs.yml, read as plain data: nothing in it is executed or fetched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any
from urllib.parse import quote

from hyce.sources.patterns import ignored
from hyce.sources.site import Site, read_settings, text_of


@dataclass(frozen=True, slots=True)
class MkDocs(Site):
    directory_urls: bool = True
    drafts: str = ""
    """Patterns of pages that are not published: exclude_docs and draft_docs."""
    unsearchable: tuple[str, ...] = ()
    """Patterns of pages kept out of search (plugin exclude-search)."""
    theme: Path | None = None
    output: Path | None = None

    def left_out(self, path: Path) -> str:
        inner = self.inner(path)
        if inner is None:
            return f"not below docs_dir of {self.file.name}, so no page of the site"
        if self.theme and path.is_relative_to(self.theme):
            return f"belongs to the theme (custom_dir of {self.file.name})"
        if ignored(inner, self.drafts):
            return f"left out by exclude_docs or draft_docs of {self.file.name}"
        if any(fnmatch(inner, pattern) for pattern in self.unsearchable):
            return f"kept out of search by {self.file.name}"
        return ""

    def address(self, path: Path) -> str | None:
        inner = self.inner(path)
        if not self.url or inner is None:
            return None
        folder, _, name = inner.rpartition("/")
        folder = folder + "/" if folder else ""
        stem, _, suffix = name.rpartition(".")
        if suffix not in ("md", "markdown"):
            return self.url + quote(inner)
        readme = stem == "README" and not (path.parent / "index.md").exists()
        if stem == "index" or readme:
            return self.url + quote(folder + ("" if self.directory_urls else "index.html"))
        return self.url + quote(folder + stem + ("/" if self.directory_urls else ".html"))


def read(file: Path) -> MkDocs | None:
    settings = _inherited(file, 0)
    docs = (file.parent / text_of(settings.get("docs_dir"), "docs")).resolve()
    if not docs.is_dir():
        # Without the folder there is no site, and what lies here is all there is.
        return None
    url = text_of(settings.get("site_url"))
    theme = settings.get("theme")
    custom = text_of(theme.get("custom_dir")) if isinstance(theme, dict) else ""
    extensions = _options(settings.get("markdown_extensions"))
    folders, appended = _snippet_settings(file, extensions.get("pymdownx.snippets", {}))
    output = (file.parent / text_of(settings.get("site_dir"), "site")).resolve()
    nav = list(_nav(settings.get("nav")))
    return MkDocs(
        file=file,
        pages=docs,
        url=url.rstrip("/") + "/" if url.startswith(("http://", "https://")) else "",
        titles={path: title for path, title in reversed(nav) if title},
        listed=frozenset(path for path, _ in nav if ".." not in path and not path.startswith("/")),
        snippets=folders,
        after=appended,
        directory_urls=settings.get("use_directory_urls") is not False,
        drafts="\n".join(text_of(settings.get(key), "") for key in ("exclude_docs", "draft_docs")),
        unsearchable=tuple(_unsearchable(_options(settings.get("plugins")))),
        theme=(file.parent / custom).resolve() if custom else None,
        output=output if output != docs else None,
    )


def _inherited(file: Path, depth: int) -> dict[str, Any]:
    """The settings, merged over those of the file that INHERIT names, if that lies in the same folder."""
    from hyce.markup.plainyaml import YAMLError, yaml_load

    try:
        data = yaml_load(read_settings(file))
    except (YAMLError, ValueError, RecursionError):
        return {}
    if not isinstance(data, dict):
        return {}
    settings = {str(key): value for key, value in data.items()}
    parent = settings.pop("INHERIT", None)
    if isinstance(parent, str) and depth < 5:
        other = (file.parent / parent).resolve()
        if other.is_relative_to(file.parent.resolve()) and other.is_file():
            return _merged(_inherited(other, depth + 1), settings)
    return settings


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        merged[key] = _merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def _options(entries: Any) -> dict[str, Any]:
    """{name: options} of plugins or extensions, written as a list of names and mappings or as a mapping."""
    if isinstance(entries, dict):
        return {str(name): options or {} for name, options in entries.items()}
    found: dict[str, Any] = {}
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, str):
            found.setdefault(entry, {})
        elif isinstance(entry, dict):
            found.update({str(name): options or {} for name, options in entry.items()})
    return found


def _nav(entries: Any) -> Iterator[tuple[str, str]]:
    """(path, title) of each page in the navigation; no title where only the path stands there."""
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, str):
            yield entry.removeprefix("./"), ""
        elif isinstance(entry, dict):
            for title, target in entry.items():
                if isinstance(target, str):
                    yield target.removeprefix("./"), "" if title is None else " ".join(str(title).split())
                else:
                    yield from _nav(target)


def _unsearchable(plugins: Mapping[str, Any]) -> Iterator[str]:
    for name in ("exclude-search", "exclude"):
        options = plugins.get(name)
        if not isinstance(options, dict):
            continue
        patterns = options.get("exclude") if name == "exclude-search" else options.get("glob")
        for pattern in [patterns] if isinstance(patterns, str) else patterns or []:
            # `page.md#part` excludes a part only: the page stays.
            if isinstance(pattern, str) and "#" not in pattern:
                yield pattern.removeprefix("./")
                if pattern.endswith("/"):
                    yield pattern + "*"


def _snippet_settings(file: Path, options: Any) -> tuple[tuple[Path, ...], str]:
    """(folders, appended lines) of pymdownx.snippets."""
    options = options if isinstance(options, dict) else {}
    base = options.get("base_path") or ["."]
    names = [base] if isinstance(base, str) else base
    folders = tuple(file.parent / name for name in names if isinstance(name, str)) or (file.parent,)
    appended = options.get("auto_append") or []
    lines = [
        f'--8<-- "{name}"'
        for name in ([appended] if isinstance(appended, str) else appended)
        if isinstance(name, str)
    ]
    return folders, "\n".join(lines)
