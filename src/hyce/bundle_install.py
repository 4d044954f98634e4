"""Installs the bundle that this file is in: `python3 hyce-bundle.pyz FOLDER`. Standard library only.

FOLDER/
    releases/2/          a virtual environment, with share/hyce/models and share/hyce/index in it
    current              -> releases/2: which release is in use; replacing this link is what publishes one
    bin, lib, share ...  -> current/bin, current/lib, current/share ...: FOLDER looks like the environment
    .hyce-bundle         says whose folder this is; held while somebody installs

A release is complete before `current` names it, so FOLDER is never half-made: whatever happens before
leaves the earlier release in use.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

MARK = ".hyce-bundle"
_PIP = """\
import runpy, sys
wheel, program = sys.argv[1:3]
sys.argv[:] = ["pip", *sys.argv[3:]]
sys.path.insert(0, wheel)
sys.executable = program  # what pip writes into the first line of programs
runpy.run_module("pip", run_name="__main__", alter_sys=True)
"""
_TRIAL = "import numpy, onnxruntime, tokenizers, sqlite3, hyce.cli; hyce.cli.main(['--version'])"


class Refused(Exception):  # noqa: N818 - this file stands alone, without hyce.errors
    """Nothing is installed; carries one line: what is wrong, on what, what to do."""


def main(arguments: list[str] | None = None, bundle: Path | None = None) -> int:
    """Install; the exit code. bundle: in place of the file that this module is read from."""
    bundle = bundle or Path(__file__).parent
    parser = argparse.ArgumentParser(
        prog=bundle.name, description="Installs hyce with its models and its index. Needs no network."
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="where to install it")
    parser.add_argument(
        "--replace",
        action="store_true",
        help="update what an earlier bundle installed there; that stays in use until the new one is complete",
    )
    given = parser.parse_args(arguments)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    try:
        facts = read_facts(bundle)
        check_machine(facts["needs"])
        folder = Path(os.path.abspath(given.folder))  # noqa: PTH100 - links stay: the path is the user's
        with _taken(folder, replace=given.replace):
            _install(bundle, facts, folder)
    except Refused as error:
        print(f"{bundle.name}: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"{bundle.name}: {where}{error.strerror or error}; nothing was changed", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"{bundle.name}: interrupted; nothing was changed", file=sys.stderr)
        return 130
    _say_what_next(facts, folder)
    return 0


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


# -- before anything is done -----------------------------------------------------------------------------


def read_facts(bundle: Path) -> dict[str, Any]:
    """What the bundle says of itself. Raises Refused."""
    try:
        with zipfile.ZipFile(bundle) as archive:
            facts: dict[str, Any] = json.loads(archive.read("bundle.json"))
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise Refused(f"damaged ({error}); copy the file again") from error
    if facts["format"] != 1:
        raise Refused(f"format {facts['format']} is unknown to its own installer; copy the file again")
    for part in facts["files"]:
        path = PurePosixPath(part["path"])
        if path.is_absolute() or ".." in path.parts:
            raise Refused(f"names a path outside of itself ({path}); get it from where it was made")
    return facts


def check_machine(needs: dict[str, Any]) -> None:
    """Raise Refused unless the bundle's packages run on this machine with this Python."""
    machine, soabi = os.uname().machine, sysconfig.get_config_var("SOABI")
    if machine != needs["machine"]:
        raise Refused(
            f"made for {needs['machine']} processors, and this machine has {machine}; make one there"
        )
    if soabi != needs["soabi"]:
        version = ".".join(map(str, needs["python"]))
        raise Refused(f"made for {needs['soabi']}, this Python is {soabi}; start it with a python{version}")
    glibc = _glibc()
    if needs["glibc"] > glibc and needs["glibc"] != [0, 0]:
        wanted, has = (".".join(map(str, version)) for version in (needs["glibc"], glibc))
        raise Refused(f"needs glibc {wanted}, and this system has {has}; make a bundle on an older system")


def _glibc() -> list[int]:
    try:
        return [int(part) for part in (os.confstr("CS_GNU_LIBC_VERSION") or "").split()[1].split(".")[:2]]
    except (ValueError, IndexError, OSError):
        return [0, 0]


@contextlib.contextmanager
def _taken(folder: Path, *, replace: bool) -> Iterator[None]:
    """Hold the folder for this installation; what was made for nothing goes again."""
    new = [path for path in (folder, *folder.parents) if not path.exists()]
    if not new:
        if not folder.is_dir():
            raise Refused(f"{folder}: is no folder; name another")
        ours = (folder / MARK).exists()
        if (folder / "releases").is_symlink() or (folder / MARK).is_symlink():
            raise Refused(f"{folder}: holds links where a bundle puts none; name another folder")
        if not ours and any(folder.iterdir()):
            raise Refused(f"{folder}: not empty, and no bundle's folder; name another or empty it")
        if (folder / "current").exists() and not replace:
            raise Refused(f"{folder}: hyce is installed there already; --replace updates it")
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / MARK).open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refused(f"{folder}: another installation is under way there; wait for it") from None
        except OSError:  # a file system without locks: whoever installs there sees to it
            pass
        try:
            yield
        finally:
            if not (folder / "current").exists():
                _remove_unfinished(folder, new)


def _remove_unfinished(folder: Path, new: list[Path]) -> None:
    shutil.rmtree(folder / "releases", ignore_errors=True)
    for path in folder.iterdir():
        if path.is_symlink() or path.name == MARK:
            path.unlink()
    for path in new:
        with contextlib.suppress(OSError):
            path.rmdir()


# -- installing ------------------------------------------------------------------------------------------


def _install(bundle: Path, facts: dict[str, Any], folder: Path) -> None:
    """Make a release, try it, and put it in use."""
    releases = folder / "releases"
    releases.mkdir(exist_ok=True)
    earlier = folder / "current"
    used = earlier.readlink().name if earlier.is_symlink() else ""
    for left in releases.iterdir():  # of an installation that was killed
        if left.name != used:
            shutil.rmtree(left, ignore_errors=True)
    free = shutil.disk_usage(folder).free
    if free < facts["installed"]:
        needed = facts["installed"] / 1e6
        raise Refused(f"{folder}: {needed:.0f} MB are needed and {free / 1e6:.0f} MB are free")
    release = releases / str(int(used or 0) + 1)
    try:
        _fill(bundle, facts, folder, release)
        if used:
            _carry_over(releases / used / "share" / "hyce", release / "share" / "hyce")
        _publish(folder, release.name)
    except BaseException:
        if not earlier.is_symlink() or earlier.readlink().name != release.name:  # else it is in use by now
            shutil.rmtree(release, ignore_errors=True)
        raise
    if used:
        shutil.rmtree(releases / used, ignore_errors=True)


def _fill(bundle: Path, facts: dict[str, Any], folder: Path, release: Path) -> None:
    _say(f"unpacking {sum(part['bytes'] for part in facts['files']) / 1e6:.0f} MB")
    given = release / "given"
    unpack(bundle, facts["files"], given)
    packages = sorted((given / "wheels").glob("*.whl"))
    _say(f"installing {len(packages)} packages")
    _make_environment(release, folder / "bin" / "python", packages)
    share = release / "share" / "hyce"
    share.mkdir(parents=True, exist_ok=True)
    for kind in ("models", "index"):
        if (given / kind).is_dir():
            (given / kind).rename(share / kind)
    shutil.rmtree(given)
    _say("trying it")
    _run([str(release / "bin" / "python"), "-I", "-c", _TRIAL], "the installed program doesn't start here")


def unpack(bundle: Path, files: list[dict[str, Any]], target: Path) -> None:
    """Write each file of the bundle below `target`. Raises Refused where one isn't what was packed."""
    with bundle.open("rb") as source:
        for part in files:
            place = target / part["path"]
            place.parent.mkdir(parents=True, exist_ok=True)
            source.seek(part["offset"])
            digest, left = hashlib.sha256(), part["bytes"]
            with place.open("wb") as out:
                while left and (data := source.read(min(left, 1 << 20))):
                    digest.update(data)
                    out.write(data)
                    left -= len(data)
            if left or digest.hexdigest() != part["sha256"]:
                raise Refused(f"{part['path']} in it is damaged; copy the file again")


def _make_environment(release: Path, program: Path, packages: list[Path]) -> None:
    """A virtual environment with these packages. program: the path by which its Python will be called."""
    # Without pip: Debian's Python has no ensurepip. pip's own wheel runs, and installs itself as well.
    venv.EnvBuilder(symlinks=True, with_pip=False).create(release)
    (pip,) = (wheel for wheel in packages if wheel.name.startswith("pip-"))
    python = str(release / "bin" / "python")
    options = ["--isolated", "install", "--quiet", "--no-index", "--no-deps", "--no-cache-dir", "--no-input"]
    options += ["--disable-pip-version-check", "--no-warn-script-location", "--root-user-action", "ignore"]
    command = [python, "-I", "-c", _PIP, str(pip), str(program), *options, *map(str, packages)]
    _run(command, "the packages can't be installed")


def _run(command: list[str], failure: str) -> None:
    """Run a program to its end. Raises Refused with the last thing it said."""
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "TMPDIR", "LANG", "LC_ALL")}
    done = subprocess.run(  # noqa: S603 - the environment's own Python
        command,
        env=kept | {"PIP_CONFIG_FILE": os.devnull},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        said = [line.strip() for line in done.stderr.splitlines() if line.strip()] or ["no reason given"]
        raise Refused(f"{failure}: {said[-1][:200]}")


def _carry_over(old: Path, new: Path) -> None:
    """Keep what the earlier release has and the bundle has not: the index, and models of other names."""
    places = [path for path in (old / "index", *old.glob("models/*")) if path.is_dir()]
    for path in places:
        target = new / path.relative_to(old)
        if not target.exists():
            shutil.copytree(path, target, copy_function=_link)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _publish(folder: Path, release: str) -> None:
    """Put the release in use, at once."""
    for entry in (folder / "releases" / release).iterdir():
        if not (folder / entry.name).is_symlink():
            (folder / entry.name).symlink_to(f"current/{entry.name}")
    link = folder / "current.new"
    link.unlink(missing_ok=True)
    link.symlink_to(f"releases/{release}")
    link.replace(folder / "current")


# -- telling ---------------------------------------------------------------------------------------------


def _say(text: str) -> None:
    print(text, flush=True)


def _say_what_next(facts: dict[str, Any], folder: Path) -> None:
    program = folder / "bin" / "hyce"
    index = folder / "share" / "hyce" / "index"
    _say(f"hyce {facts['hyce']} is in {folder}, with {', '.join(facts['models']) or 'no model'}")
    if facts["index"]:
        _say(f"and an index of {facts['index']['documents']} pages. Try it:")
        _say(f'  {program} search "How do I request a GPU?"')
    elif (index / "current").exists():
        _say("and the index that was there before.")
    else:
        _say(f"and no index. Whoever may write {index.parent} makes one for all users:")
        _say(f"  {program} index PATH/TO/DOCUMENTATION")
    if facts["settings"]:
        _say("Its index and models need these settings in hyce.toml:")
        for key, value in facts["settings"].items():
            section, _, name = key.partition(".")
            _say(f'  [{section}] {name} = "{value}"')
    _say(f"Settings: {program} init. What is missing: {program} doctor.")
    if not folder.stat().st_mode & stat.S_IROTH or not program.stat().st_mode & stat.S_IXOTH:
        _say(f"Other users can't read it, because of your umask: chmod -R go+rX {folder}")
