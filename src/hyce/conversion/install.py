"""A model is converted, checked, and put into the models folder: complete or not at all."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hyce.conversion.convert import convert
from hyce.conversion.fetch import Known, Way
from hyce.conversion.hub import from_repository
from hyce.errors import ModelError
from hyce.models import PRECISIONS, ModelFiles, Report, find

_WORK = ".pull-"


@dataclass(frozen=True, slots=True)
class Torch:
    """Torch may be used where a model can't be converted without it."""

    python: Path | None = None
    """A Python that has it, in place of an environment that is made and deleted."""


def from_folder(
    name: str,
    folder: Path,
    source: Path,
    *,
    expected: Known | None = None,
    report: Report,
    torch: Torch | None = None,
) -> list[ModelFiles]:
    """Install the model `name` from a folder on this machine; the model at each precision."""
    if not source.is_dir():
        raise ModelError(f"{source}: no such folder; name one with config.json and model.safetensors")
    with _place(folder, report):
        _install(name, folder, source, expected=expected, report=report, torch=torch)
    return _all(name, folder)


def from_ways(name: str, folder: Path, known: Known, ways: Sequence[Way], report: Report) -> list[ModelFiles]:
    """Install a pinned model, fetched by the first way that works; the model at each precision."""
    with _place(folder, report) as waited:
        if waited:
            with contextlib.suppress(ModelError):
                return [find(name, precision, folder) for precision in PRECISIONS]
        _install(
            name,
            folder,
            lambda target: _fetch(known, target, report, ways),
            expected=known,
            report=report,
        )
    return _all(name, folder)


def from_hub(
    name: str, folder: Path, repository: str, report: Report, torch: Torch | None = None
) -> list[ModelFiles]:
    """Install a model of the model hub under `name`; the model at each precision."""

    def fetched(target: Path) -> str:
        target.mkdir()
        return from_repository(repository, target, report, torch=torch is not None)

    with _place(folder, report):
        _install(name, folder, fetched, report=report, torch=torch)
    return _all(name, folder)


def _all(name: str, folder: Path) -> list[ModelFiles]:
    there = [precision for precision in PRECISIONS if (folder / name / f"{precision}.onnx").is_file()]
    return [find(name, precision, folder) for precision in there]


def _install(
    name: str,
    folder: Path,
    source: Path | Callable[[Path], str],
    *,
    expected: Known | None = None,
    report: Report,
    torch: Torch | None = None,
) -> None:
    """Convert the files of `source`, or those that it fetches into a folder, and rename them into place."""
    with tempfile.TemporaryDirectory(prefix=_WORK, dir=folder, ignore_cleanup_errors=True) as work:
        given, made, old = Path(work) / "given", Path(work) / "made", Path(work) / "old"
        if isinstance(source, Path):
            given, origin = source, str(source.absolute())
        else:
            origin = source(given)
        made.mkdir()
        said = {"name": name, "origin": origin}
        convert(given, made, said, expected=expected, torch=torch, report=report)
        if (folder / name).exists():
            (folder / name).rename(old)
        made.rename(folder / name)
    report(f"{name}: ready in {folder / name}")


def _fetch(known: Known, target: Path, report: Report, ways: Sequence[Way]) -> str:
    """Fill `target` by the first way that works; the origin in words."""
    failures = []
    for way in ways:
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir()
        try:
            return way(known, target, report)
        except ModelError as error:
            failures.append(str(error))
            report(str(error))
    raise ModelError(
        "; ".join(failures)
        + "; fetch it on a machine with internet and name its folder: `hyce models pull --from FOLDER`"
    )


@contextlib.contextmanager
def _place(folder: Path, report: Report) -> Iterator[bool]:
    """Hold the lock of `folder`, made if need be. Yields whether another was waited for."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(folder, report) as waited:
            yield waited
    except OSError as error:
        raise ModelError(_explained(error, folder)) from error


@contextlib.contextmanager
def _alone(folder: Path, report: Report) -> Iterator[bool]:
    """Hold the lock of `folder`, and clear what a killed pull left. Yields whether another was waited for."""
    with (folder / ".lock").open("w") as lock:
        waited = False
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report(f"{folder}: another pull is under way; waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
            waited = True
        except OSError:
            # No locks on this file system. Two pulls then do the work twice, and the last rename wins.
            yield False
            return
        for left in folder.glob(_WORK + "*"):
            shutil.rmtree(left, ignore_errors=True)
        yield waited


def _explained(error: OSError, folder: Path) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return (
            f"{folder}: no space left; about 400 MB are needed while a model is converted, 120 MB after it "
            "(a large model: five times its weights; with torch 3 GB more)"
        )
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"{folder}: can't be written; set model.folder to a folder of your own"
    return f"{error.filename or folder}: {error.strerror or error}; check the folder and try again"
