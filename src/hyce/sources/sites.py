"""Which site a folder belongs to."""

from __future__ import annotations

from pathlib import Path

from hyce.sources import mkdocs, sphinx
from hyce.sources.site import Site


def find(folder: Path) -> Site | None:
    """The site that the folder's own settings file describes; None for a folder that can't be entered."""
    try:
        for name in ("mkdocs.yml", "mkdocs.yaml"):
            if (folder / name).is_file():
                return mkdocs.read(folder / name)
        if (folder / "conf.py").is_file():
            return sphinx.read(folder / "conf.py")
    except OSError:
        return None
    return None


def governing(folder: Path) -> Site | None:
    """The site whose pages lie in this folder: its own, or that of a folder above it."""
    owner = folder.stat().st_uid
    for place in (folder, *folder.parents):
        site = find(place)
        if site is not None and site.file.stat().st_uid not in (owner, 0):
            # Somebody else's settings in a shared folder above, such as /tmp.
            return None
        if site is not None:
            return site if place == folder or folder.is_relative_to(site.pages) else None
        if _is_repository(place):
            return None
    return None


def _is_repository(folder: Path) -> bool:
    try:
        return (folder / ".git").exists()
    except OSError:
        return True
