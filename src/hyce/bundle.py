"""hyce models bundle: program, models and index as one file that installs where there is no internet.

    #!/usr/bin/env python3        so that the file can be started by its name
    # coding: ...                 what Python says of a file whose end is missing, see _HEAD
    wheels, models, index         each file's bytes, one after the other
    a small zip archive           __main__.py, bundle_install.py, and bundle.json with the place, size and
                                  sha256 of each file before it

Python runs a file that ends in a zip archive. The archive is small and its offsets are its own, because
Python up to 3.12 runs none of the kind that more than 4 GB need.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import io
import json
import os
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hyce import models, wheels
from hyce.config import Config, index_folder, models_folder
from hyce.errors import BundleError, StoreError
from hyce.index.manifest import check_files, read_manifest

FORMAT = 1
_HEAD = b"#!/usr/bin/env python3\n# coding: this-file-is-cut-or-damaged--copy-it-again\n"
"""With the archive at its end gone, Python takes the file for source text, and its message is the name of
the encoding that the text claims to have."""
_EPOCH = (1980, 1, 1, 0, 0, 0)
_MAIN = """\
import sys

if sys.version_info[:2] != {python}:
    sys.exit(
        "%s: made for Python {major}.{minor}, and this is Python %d.%d; start it with python{major}.{minor}"
        % (sys.argv[0], sys.version_info[0], sys.version_info[1])
    )

from bundle_install import main

sys.exit(main())
"""
"""In words that every Python understands, the oldest as well."""

Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class Part:
    """A file on its way into the bundle."""

    path: str
    """Where it stands in the bundle: below wheels/, models/ or index/."""
    source: Path
    bytes: int
    sha256: str = ""
    """What it must be, where that is known."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """What was packed."""

    file: Path
    bytes: int
    packages: tuple[str, ...]
    models: tuple[str, ...]
    documents: int | None
    """Pages of its index; None without one."""


def make(
    file: Path,
    config: Config,
    *,
    names: Sequence[str] = (),
    with_index: bool = True,
    given: Path | None = None,
    progress: Progress = lambda *_: None,
) -> Bundle:
    """Pack the program that runs, models and the index into `file`, which appears complete or not at all.

    names: models in place of those that the settings use. given: see wheels.collect.
    Raises BundleError, ModelError and StoreError.
    """
    _refuse_to_overwrite(file)
    if given is not None and not given.is_dir():
        raise BundleError(f"{given}: no such folder; name one that has wheels")
    names = list(names) or used_models(config)
    parts = [part for name in names for part in _model(name, models_folder(config, name))]
    facts: dict[str, Any] = {
        "format": FORMAT,
        "hyce": importlib.metadata.version("hyce"),
        "models": names,
        "index": None,
        "settings": _settings(config),
    }
    with contextlib.ExitStack() as stack, _no_surprise(file):
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hyce-bundle-")))
        if with_index and (index_folder(config) / "current").exists():
            index, facts["index"] = _index(config, names)
            parts += index
        made = wheels.collect(folder, given=given, progress=progress)
        parts = [Part(f"wheels/{wheel.name}", wheel, wheel.stat().st_size) for wheel in made] + parts
        facts["needs"] = wheels.needs(made)
        facts["installed"] = sum(map(_unpacked, made)) + sum(p.bytes for p in parts)
        size = write(file, parts, facts, progress)
    packages = tuple("==".join(wheel.stem.split("-")[:2]) for wheel in made)
    return Bundle(file, size, packages, tuple(names), facts["index"] and facts["index"]["documents"])


def used_models(config: Config) -> list[str]:
    """The models on this machine that the settings use."""
    names = [config.model.name] if config.model.kind == "onnx" else []
    return names + ([config.reranker.name] if config.retrieval.rerank == "cross-encoder" else [])


def write(file: Path, parts: Iterable[Part], facts: dict[str, Any], progress: Progress) -> int:
    """Write the bundle beside its name and rename it there; its size. Raises BundleError, OSError."""
    descriptor, name = tempfile.mkstemp(prefix=f".{file.name}-", dir=file.absolute().parent)
    try:
        with os.fdopen(descriptor, "wb") as out:
            out.write(_HEAD)
            table = list(_append(out, list(parts), progress))
            out.write(_archive(facts | {"files": table}))
            out.flush()
            os.fsync(out.fileno())
            umask = os.umask(0)
            os.umask(umask)
            os.fchmod(out.fileno(), 0o777 & ~umask)
        Path(name).replace(file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return file.stat().st_size


def _append(out: io.BufferedWriter, parts: list[Part], progress: Progress) -> Iterator[dict[str, Any]]:
    """Write each file's bytes; its line of the table."""
    for number, part in enumerate(parts):
        progress(number, len(parts), part.path)
        offset, digest, left = out.tell(), hashlib.sha256(), part.bytes
        with part.source.open("rb") as source:
            while left and (data := source.read(min(left, 1 << 20))):
                digest.update(data)
                out.write(data)
                left -= len(data)
        if left or part.sha256 not in ("", digest.hexdigest()):
            raise BundleError(f"{part.source}: damaged, or changed while it was packed; try again")
        yield {"path": part.path, "offset": offset, "bytes": part.bytes, "sha256": digest.hexdigest()}


def _archive(facts: dict[str, Any]) -> bytes:
    """The zip archive at the end."""
    major, minor = facts["needs"]["python"]
    installer = Path(__file__).with_name("bundle_install.py").read_text(encoding="utf-8")
    content = {
        "__main__.py": _MAIN.format(python=(major, minor), major=major, minor=minor),
        "bundle_install.py": installer,
        "bundle.json": json.dumps(facts, indent=1),
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in content.items():
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), text, zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def _model(name: str, folder: Path) -> Iterator[Part]:
    """The model's files, with the sums that were taken when it was pulled."""
    for path, size, sum_ in models.files(name, folder):
        yield Part(f"models/{name}/{path.name}", path, size, sum_)


def _index(config: Config, names: Sequence[str]) -> tuple[list[Part], dict[str, Any]]:
    """(the files of the published index, what the bundle says of it)."""
    folder = index_folder(config)
    try:
        manifest = read_manifest(folder / "current")
        check_files(folder, manifest)
    except StoreError as error:
        raise StoreError(f"{error}; or leave it out with --without-index") from error
    if config.model.kind == "onnx" and config.model.name in names:
        files = models.find(config.model.name, config.model.precision, models_folder(config))
        if files.fingerprint != manifest.embedder:
            raise StoreError(
                f"{folder}: made with the model {manifest.embedder}, not with {files.fingerprint}; "
                "run `hyce index` to build it again, or leave it out with --without-index"
            )
    # What was learnt from the catalogue stands beside the passages, see example_vectors.py.
    beside = [folder / "current", *sorted(folder.glob("*.npy"))]
    own = folder / "generations" / str(manifest.generation) / "manifest.json"
    sizes = dict(manifest.files) | {
        str(path.relative_to(folder)): path.stat().st_size for path in (*beside, own) if path.exists()
    }
    parts = [Part(f"index/{name}", folder / name, size) for name, size in sorted(sizes.items())]
    return parts, {"documents": manifest.documents, "written": manifest.written}


def _settings(config: Config) -> dict[str, str]:
    """The settings that must be the same where the bundle is used, where they aren't the usual ones."""
    usual = Config()
    values = {
        "model.name": (config.model.name, usual.model.name),
        "model.precision": (config.model.precision, usual.model.precision),
        "retrieval.rerank": (config.retrieval.rerank, usual.retrieval.rerank),
    }
    if config.retrieval.rerank == "cross-encoder":
        values["reranker.name"] = (config.reranker.name, usual.reranker.name)
        values["reranker.precision"] = (config.reranker.precision, usual.reranker.precision)
    return {key: str(value) for key, (value, default) in values.items() if value != default}


def _unpacked(wheel: Path) -> int:
    """Bytes that the wheel's files take once installed, byte code about as large as its source included."""
    with zipfile.ZipFile(wheel) as archive:
        return sum(e.file_size * (2 if e.filename.endswith(".py") else 1) for e in archive.infolist())


def _refuse_to_overwrite(file: Path) -> None:
    """Raise BundleError where the file is anything but an earlier bundle."""
    try:
        with file.open("rb") as existing:
            if existing.read(len(_HEAD)) == _HEAD:
                return
    except FileNotFoundError:
        if file.absolute().parent.is_dir():
            return
        raise BundleError(f"{file.absolute().parent}: no such folder; make it first") from None
    except OSError as error:
        raise BundleError(f"{file}: {error.strerror}; name a file for the bundle") from error
    raise BundleError(f"{file}: exists and is no bundle; name another file")


@contextlib.contextmanager
def _no_surprise(file: Path) -> Iterator[None]:
    """Turns the system's errors into BundleError."""
    try:
        yield
    except OSError as error:
        raise BundleError(f"{error.filename or file}: {error.strerror}; nothing was written") from error
