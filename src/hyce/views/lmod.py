"""What Lmod prints -> the lists in it.

With --redirect Lmod writes what a person reads to standard output, as `echo` lines for a shell, together with
the shell code that would change the environment. Only the former is shown; nothing of it is ever evaluated.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hyce.views import Viewer

_SIMILAR = 5
_NO_MODULES = (
    "No modules can be loaded: MODULEPATH, the list of folders with modules, names none that has any in the "
    "session that hyce was started from.\n"
)


def modules_available(outputs: Sequence[str | None], _viewer: Viewer) -> str:
    """`avail --terse`: one line for each program with its versions, below the folder that holds them."""
    lines: list[str] = []
    versions: dict[str, list[str]] = {}

    def close_folder() -> None:
        lines.extend(
            f"  {name}: {', '.join(found)}" if found[0] else f"  {name}" for name, found in versions.items()
        )
        versions.clear()

    for line in _echoed(outputs[0]):
        if line.endswith(":"):
            close_folder()
            lines.append(line)
        elif line and not line.endswith("/"):
            name, version = _split(line)
            versions.setdefault(name, []).append(version)
    close_folder()
    if not lines:
        return _NO_MODULES
    return "\n".join(lines) + "\n"


def modules_loaded(outputs: Sequence[str | None], _viewer: Viewer) -> str:
    """The environment: what LOADEDMODULES holds, which every module system keeps, one module a line."""
    loaded: list[str] = []
    for line in (outputs[0] or "").splitlines():
        name, _, value = line.partition("=")
        if name == "LOADEDMODULES":
            loaded = [module for module in value.split(":") if module]
    if not loaded:
        return "No modules are loaded in the session that hyce was started from.\n"
    return "\n".join(["Loaded modules, in the order in which they were loaded:", *loaded]) + "\n"


def modules_search(outputs: Sequence[str | None], _viewer: Viewer) -> str:
    """All modules (`spider --terse`), `spider NAME`, and NAME: what is said of it, or that it isn't there.

    `spider NAME` fails where there is no such module; that is an answer only beside the whole list.
    """
    everything, about, name = outputs
    known = [line for line in _echoed(everything) if line and not line.endswith((":", "/"))]
    wanted = (name or "").strip()
    said = "\n".join(_lines(about))
    found = [module for module in known if wanted.casefold() in module.casefold()]
    if said or found:
        return f"{said or 'Modules: ' + ', '.join(found)}\n"
    if not known:
        return _NO_MODULES
    lines = [
        f"There is no module {wanted}: of {len(known)} modules, none has this name or holds it in its name."
    ]
    programs = {_split(module)[0].casefold(): _split(module)[0] for module in known}
    similar = difflib.get_close_matches(_split(wanted)[0].casefold(), programs, n=_SIMILAR)
    if similar:
        lines.append("Similar names: " + ", ".join(programs[close] for close in similar))
    return "\n".join(lines) + "\n"


def modules_show(outputs: Sequence[str | None], _viewer: Viewer) -> str:
    """`show`: the module's file and what it would change."""
    return "\n".join(_lines(outputs[0])) + "\n"


def _lines(output: str | None) -> Iterator[str]:
    """What was printed, without empty lines and rules."""
    return (line for line in _echoed(output) if line.strip("- "))


def _echoed(output: str | None) -> Iterator[str]:
    """The lines that a shell would print. Lmod quotes each in one way: words in '', and ' itself in \"\"."""
    for line in (output or "").splitlines():
        if line.startswith("echo '") and line.endswith("';"):
            yield line[6:-2].replace("' '", " ").replace("'\"'\"'", "'")


def _split(module: str) -> tuple[str, str]:
    """Name and version: the version is what stands behind the last slash."""
    name, _, version = module.rpartition("/")
    return (name, version) if name else (version, "")
