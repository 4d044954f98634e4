"""The running environment's packages as wheels, so that what was tried here is what another machine gets.

A package that pip or uv put here is packed from its installed files, each checked against the RECORD that
came with it: no network, and no other build of the same version. What can't be packed so, such as an
editable installation or a package of the system's, is made or fetched by pip at the same version.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import Distribution, PackagePath
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from hyce.errors import BundleError

if TYPE_CHECKING:
    from packaging.requirements import Requirement

PROGRAM = "hyce"
NOT_FOR_USERS = frozenset(("dev",))
"""Extras that are never shipped."""

_INSTALLERS = ("pip", "uv")
"""Other installers (conda, the system's) change what they install, or keep no record of it."""
_OF_THIS_PLACE = frozenset(("INSTALLER", "REQUESTED", "RECORD", "direct_url.json", "uv_cache.json"))
_EPOCH = (1980, 1, 1, 0, 0, 0)
_OLD_MANYLINUX = {"manylinux1": (2, 5), "manylinux2010": (2, 12), "manylinux2014": (2, 17)}


# -- which packages --------------------------------------------------------------------------------------


def needed() -> list[Distribution]:
    """hyce, all that it and its installed extras need, and pip; by name. Raises BundleError."""
    from packaging.utils import canonicalize_name

    found: dict[str, Distribution] = {}
    done: set[tuple[str, str]] = set()
    todo = [(PROGRAM, extra) for extra in ("", *extras())] + [("pip", "")]
    while todo:
        name, extra = todo.pop()
        if (name, extra) in done:
            continue
        done.add((name, extra))
        found[name] = found.get(name) or _distribution(name)
        for requirement in _requirements(found[name], extra):
            wanted = canonicalize_name(requirement.name)
            todo += [(wanted, each) for each in ("", *requirement.extras)]
    return [found[name] for name in sorted(found)]


def extras() -> list[str]:
    """hyce's extras that are installed as a whole, by name."""
    own = _distribution(PROGRAM)
    names = [str(name) for name in own.metadata.get_all("Provides-Extra") or ()]
    return sorted(name for name in names if name not in NOT_FOR_USERS and _is_installed(own, name))


def _is_installed(own: Distribution, extra: str) -> bool:
    plain = {str(requirement) for requirement in _requirements(own, "")}
    return all(_is_met(r, own) for r in _requirements(own, extra) if str(r) not in plain)


def _is_met(requirement: Requirement, own: Distribution) -> bool:
    if requirement.name.lower() == PROGRAM:
        return all(_is_installed(own, extra) for extra in requirement.extras)
    try:
        version = importlib.metadata.version(requirement.name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return requirement.specifier.contains(version, prereleases=True)


def _requirements(distribution: Distribution, extra: str) -> Iterator[Requirement]:
    yield from _applying(distribution.requires or (), extra)


def _applying(texts: Iterable[str], extra: str) -> Iterator[Requirement]:
    """The requirements that hold for this Python, with this extra."""
    from packaging.requirements import Requirement

    for text in texts:
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            yield requirement


def _distribution(name: str) -> Distribution:
    try:
        return importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError as error:
        raise BundleError(
            f"{name}: needed, but not installed beside {sys.executable}; run `pip install {name}` there"
        ) from error


# -- their wheels ----------------------------------------------------------------------------------------


def collect(
    folder: Path, *, given: Path | None = None, progress: Callable[[int, int, str], None] = lambda *_: None
) -> list[Path]:
    """Fill `folder` with a wheel of each package that is needed; the wheels by name.

    given: a folder of wheels for what can't be packed from the installed files; then no index is asked.
    progress: is told packages done, all packages, and the name of the next. Raises BundleError.
    """
    packages = needed()
    missing: list[str] = []
    for number, distribution in enumerate(packages):
        progress(number, len(packages), distribution.name)
        if pack(distribution, folder) is None:
            missing.append(_wanted(distribution, from_source=given is None))
    if missing:
        progress(len(packages) - len(missing), len(packages), "by pip")
        _fetch(missing, folder, given)
    wheels = sorted(folder.glob("*.whl"))
    if len(wheels) != len(packages):
        raise BundleError(f"{len(wheels)} wheels for {len(packages)} packages: pip left some out")
    _refuse_other_requirements(wheels, _distribution(PROGRAM))
    return wheels


def pack(distribution: Distribution, folder: Path) -> Path | None:
    """The distribution's wheel, made in `folder` from its installed files, or None where they don't give one:
    put there by another installer, editable, without a record, or changed since."""
    installer = (distribution.read_text("INSTALLER") or "").strip()
    description = distribution.read_text("WHEEL")
    if installer not in _INSTALLERS or not description or _source(distribution):
        return None
    info = next((f.parent.name for f in distribution.files or () if f.name == "WHEEL"), "")
    stem = info.removesuffix(".dist-info")
    content: dict[str, tuple[bytes, int]] = {}
    for file in distribution.files or ():
        if _is_left_out(file, info):
            continue
        name = _name_in_wheel(file, distribution, stem)
        data = _checked(file)
        if name is None or data is None:
            return None
        if name:
            mode = 0o755 if Path(str(file.locate())).stat().st_mode & 0o100 else 0o644
            content[name] = _portable(name, data), mode
    wheel = folder / f"{stem}-{_tag(description)}.whl"
    _write(wheel, content, info)
    return wheel


def _is_left_out(file: PackagePath, info: str) -> bool:
    return file.suffix == ".pyc" or (file.parent.name == info and file.name in _OF_THIS_PLACE)


def _name_in_wheel(file: PackagePath, distribution: Distribution, stem: str) -> str | None:
    """Where the installed file stands in a wheel; empty for a program that installing makes anew; None for a
    place that no wheel puts files to."""
    if ".." not in file.parts and not file.is_absolute():
        return file.as_posix()
    place = Path(os.path.normpath(str(file.locate())))
    scripts, prefix = Path(sysconfig.get_path("scripts")), Path(sysconfig.get_path("data"))
    if place.parent == scripts:
        made = distribution.entry_points
        if any(e.name == place.name and e.group in ("console_scripts", "gui_scripts") for e in made):
            return ""
        return f"{stem}.data/scripts/{place.name}"
    headers = prefix / "include" / "site" / f"python{sysconfig.get_python_version()}"
    if place.is_relative_to(headers):
        return f"{stem}.data/headers/{PurePosixPath(*place.relative_to(headers).parts[1:])}"
    if place.is_relative_to(prefix):
        return f"{stem}.data/data/{place.relative_to(prefix).as_posix()}"
    return None


def _checked(file: PackagePath) -> bytes | None:
    """The installed file's bytes, if they are those that were installed."""
    if file.hash is None:
        return None
    try:
        data = Path(str(file.locate())).read_bytes()
        return data if _digest(data, file.hash.mode) == file.hash.value else None
    except (OSError, ValueError):
        return None


def _portable(name: str, data: bytes) -> bytes:
    """The bytes; a script that names this Python names whichever it is installed for."""
    if "/scripts/" in name and re.match(rb"#![^\n]*python", data):
        return b"#!python" + data[data.index(b"\n") :] if b"\n" in data else data
    return data


def _tag(description: str) -> str:
    """py2.py3-none-any for a WHEEL file that says Tag: py2-none-any and Tag: py3-none-any."""
    lines = (line for line in description.splitlines() if line.startswith("Tag:"))
    three = zip(*(line.removeprefix("Tag:").strip().split("-") for line in lines), strict=True)
    return "-".join(".".join(dict.fromkeys(part)) for part in three)


def _write(wheel: Path, content: dict[str, tuple[bytes, int]], info: str) -> None:
    record = "".join(
        f'"{name}",sha256={_digest(data, "sha256")},{len(data)}\n'
        for name, (data, _) in sorted(content.items())
    )
    name = f"{info}/RECORD"
    # 3: half the time of the usual 6, a twentieth larger.
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=3) as archive:
        for each, (data, mode) in [*sorted(content.items()), (name, (f"{record}{name},,\n".encode(), 0o644))]:
            entry = zipfile.ZipInfo(each, _EPOCH)  # the same bytes from the same files, whenever
            entry.external_attr = (0o100000 | mode) << 16
            archive.writestr(entry, data, zipfile.ZIP_DEFLATED, 3)


def _digest(data: bytes, mode: str) -> str:
    return base64.urlsafe_b64encode(hashlib.new(mode, data).digest()).rstrip(b"=").decode()


def _source(distribution: Distribution) -> str:
    """The folder of an editable installation (PEP 610), else nothing."""
    said = json.loads(distribution.read_text("direct_url.json") or "{}")
    if not said.get("dir_info", {}).get("editable"):
        return ""
    return unquote(urlsplit(str(said.get("url"))).path)


def _wanted(distribution: Distribution, *, from_source: bool) -> str:
    source = _source(distribution) if from_source else ""
    return source or f"{distribution.name}=={distribution.version}"


def _fetch(wanted: list[str], folder: Path, given: Path | None) -> None:
    # -P: no module is taken from the current folder.
    command = [sys.executable, "-P", "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-input"]
    command += ["--disable-pip-version-check", "--wheel-dir", str(folder)]
    if given is not None:
        command += ["--no-index", "--find-links", str(given), "--only-binary", ":all:"]
    try:
        done = subprocess.run(  # noqa: S603 - this interpreter, fixed options, packages that are installed here
            [*command, *wanted], capture_output=True, text=True, errors="replace", timeout=1800, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise BundleError("pip did not bring the missing wheels within 30 minutes") from error
    if done.returncode:
        said = [line.strip() for line in done.stderr.splitlines() if "ERROR" in line] or ["no reason given"]
        raise BundleError(
            f"pip has no wheel of {', '.join(wanted)}: {said[-1][:160]}; "
            "name a folder that has them with --wheels"
        )


def _refuse_other_requirements(wheels: list[Path], installed: Distribution) -> None:
    """Raise BundleError where hyce's wheel, made from source, needs other packages than were looked up."""
    from email.parser import BytesHeaderParser

    for wheel in wheels:
        if not wheel.name.startswith(f"{PROGRAM}-"):
            continue
        with zipfile.ZipFile(wheel) as archive:
            name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
            said = BytesHeaderParser().parsebytes(archive.read(name)).get_all("Requires-Dist") or []
        wanted, known = (
            {str(requirement) for extra in ("", *extras()) for requirement in _applying(texts, extra)}
            for texts in (said, installed.requires or ())
        )
        if wanted != known:
            raise BundleError(
                f"{PROGRAM}: its source needs other packages than the installed one; install it again: "
                f"`pip install -e {_source(installed) or 'FOLDER'}`"
            )


# -- where they run --------------------------------------------------------------------------------------


def needs(wheels: Iterable[Path]) -> dict[str, object]:
    """What a machine must be for these wheels: Python, its binary interface, processor, oldest glibc."""
    glibc = max((_glibc(wheel.stem.split("-")[-1]) for wheel in wheels), default=(0, 0))
    return {
        "python": list(sys.version_info[:2]),
        "soabi": sysconfig.get_config_var("SOABI"),
        "machine": os.uname().machine,
        "glibc": list(glibc),
    }


def _glibc(platforms: str) -> tuple[int, int]:
    """The oldest glibc that a wheel for these platforms runs with; (0, 0) for any."""
    oldest: list[tuple[int, int]] = []
    for platform in platforms.split("."):
        stated = re.match(r"manylinux_(\d+)_(\d+)_", platform)
        if stated:
            oldest.append((int(stated[1]), int(stated[2])))
        elif platform.partition("_")[0] in _OLD_MANYLINUX:
            oldest.append(_OLD_MANYLINUX[platform.partition("_")[0]])
        elif platform.startswith("linux_"):  # built on this machine, for its own
            oldest.append(_own_glibc())
    return min(oldest, default=(0, 0))


def _own_glibc() -> tuple[int, int]:
    try:
        major, minor = (os.confstr("CS_GNU_LIBC_VERSION") or "").split()[1].split(".")[:2]
        return int(major), int(minor)
    except (ValueError, IndexError, OSError):  # another C library: SOABI tells
        return (0, 0)
