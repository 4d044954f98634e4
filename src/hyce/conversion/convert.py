"""A sentence-transformers folder -> the files of models/<name>/, by the simplest way that does it, checked.

A BERT encoder's graph is built from its weights. Another model's is exported by torch in an environment of
its own, where that was asked for, or made from the export that its folder holds.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hyce.conversion import graph, quantise, verify
from hyce.conversion.fetch import Known
from hyce.conversion.original import Original, read
from hyce.conversion.weights import exported_weights, read_weights
from hyce.errors import ModelError
from hyce.models import PRECISIONS, Report, describe, find, sha256

if TYPE_CHECKING:
    from hyce.conversion.install import Torch


def convert(
    source: Path,
    target: Path,
    said: dict[str, Any],
    *,
    expected: Known | None = None,
    torch: Torch | None = None,
    report: Report = lambda _: None,
) -> None:
    """Write the graphs, the tokenizer and model.json into `target`, and check them against the original.

    said: name and origin, which model.json tells too. expected: the checksums that the files must have.
    Raises ModelError, also where what was made differs from the original.
    """
    original = read(source, said["name"])
    _check_files(original, expected)
    for note in original.notes:
        report(f"{said['name']}: {note}")
    said |= {
        "kind": original.kind,
        "dimensions": 0 if original.kind == "cross-encoder" else int(original.config.get("hidden_size", 0)),
        "max_tokens": original.max_tokens,
        "pooling": original.pooling,
        "licence": expected.licence if expected else "",
    }
    if original.query_prompt or original.passage_prompt:
        said["prompts"] = {"query": original.query_prompt, "passage": original.passage_prompt}
    if not original.obstacle and original.weights.is_file():
        reference = _built(original, target, said, report)
    elif not original.obstacle:
        reference = _of_export(original, target, said, report)
    elif original.export.is_file() and (torch is None or not _has_weights(source)):
        reference = _wrapped(original, target, said, report)
    elif torch is not None:
        reference = _exported(original, target, said, torch, report)
    else:
        raise ModelError(
            f"{source}: no graph can be built of it without torch ({original.obstacle}), and it holds no "
            "onnx/model.onnx; use `hyce models convert`"
        )
    _check(target, said, reference, report)


def _check_files(original: Original, expected: Known | None) -> None:
    """Raise ModelError unless the folder holds what the ways need, and what is expected."""
    if not original.tokenizer.is_file() and not original.obstacle:
        raise ModelError(
            f"{original.tokenizer}: missing; the folder must be one that sentence-transformers saved"
        )
    if not _has_weights(original.folder) and not original.export.is_file():
        raise ModelError(
            f"{original.weights}: missing; the folder must be one that sentence-transformers saved, with "
            "weights as safetensors or ONNX (older forms can hold programs, and are not read)"
        )
    if expected is None or not original.weights.is_file():
        return
    if (sha256(original.weights), sha256(original.tokenizer)) != (expected.weights, expected.tokenizer):
        raise ModelError(
            f"{original.folder}: its files are not those of {expected.repository} (another sha256); "
            "fetch them again, or give a model of your own another name"
        )


def _has_weights(folder: Path) -> bool:
    return (folder / "model.safetensors").is_file() or (folder / "model.safetensors.index.json").is_file()


def _of_export(original: Original, target: Path, said: dict[str, Any], report: Report) -> verify.Reference:
    """A BERT encoder of which there is an export only: from the weights in it, if they can be told apart."""
    try:
        return _built(original, target, said, report)
    except ModelError as error:
        report(f"{said['name']}: {error}")
        return _wrapped(original, target, said, report)


def _built(original: Original, target: Path, said: dict[str, Any], report: Report) -> verify.Reference:
    """A BERT encoder from its weights, without torch; what the original gives for the texts of verify.py."""
    report(f"{said['name']}: building the graphs")
    path = original.weights if original.weights.is_file() else original.export
    weights = read_weights(path) if path == original.weights else exported_weights(path)
    for precision in PRECISIONS:
        if original.kind == "cross-encoder":
            model = graph.build_cross_encoder(original.config, weights, precision)
        else:
            pooling: graph.Pooling = "cls" if original.pooling == "cls" else "mean"
            model = graph.build(original.config, weights, precision, pooling)
        quantise.save(model, target / f"{precision}.onnx")
    shutil.copyfile(original.tokenizer, target / "tokenizer.json")
    said |= {"format": graph.FORMAT, "weights": sha256(path)}
    return verify.of_weights(original, weights)


def _wrapped(original: Original, target: Path, said: dict[str, Any], report: Report) -> verify.Reference:
    """Another model from the ONNX graph in its folder."""
    from hyce.conversion import wrap

    report(f"{said['name']}: fitting the folder's ONNX graph")
    if not original.tokenizer.is_file():
        raise ModelError(f"{original.tokenizer}: missing; use `hyce models convert`")
    graph_file = target.parent / "fitted.onnx"
    said["token_vectors"] = wrap.fitted(original, graph_file)
    quantise.both(graph_file, target)
    shutil.copyfile(original.tokenizer, target / "tokenizer.json")
    reference = wrap.reference(original)
    beside = original.export.with_name("model.onnx_data")
    said |= {"format": "onnx/1", "weights": _digest([p for p in (original.export, beside) if p.is_file()])}
    said["dimensions"] = reference.values.shape[1] if reference.values.ndim > 1 else 0
    return reference


def _exported(
    original: Original, target: Path, said: dict[str, Any], torch: Torch, report: Report
) -> verify.Reference:
    """Another model by torch, in an environment of its own."""
    from hyce.conversion import export

    report(f"{said['name']}: needs torch ({original.obstacle})")
    made = export.run(original, target.parent / "torch", torch.python, report)
    shutil.copyfile(made.tokenizer, target / "tokenizer.json")
    weights = sorted(original.folder.glob("*.safetensors")) + sorted(original.folder.glob("*/*.safetensors"))
    said |= {"format": "torch/1", "weights": _digest(weights), "token_vectors": made.token_vectors}
    said |= {"max_tokens": made.max_tokens, "dimensions": made.dimensions}
    report(f"{said['name']}: making both precisions")
    quantise.both(made.graph, target)
    return made.reference


def _digest(paths: Sequence[Path]) -> str:
    """One sha256 for the files together."""
    return hashlib.sha256("".join(sha256(path) for path in paths).encode()).hexdigest()


def _check(target: Path, said: dict[str, Any], reference: verify.Reference, report: Report) -> None:
    """Compare what was made with the original; an int8 that is too far from it is left out."""
    describe(target, said)
    said["measured"] = {}
    for precision in ("fp32", "int8"):
        measured = verify.compare(find(target.name, precision, target.parent), reference)
        report(f"{said['name']} {precision}: {measured.text}")
        if measured.good:
            said["measured"][precision] = measured.text
        elif precision == "fp32":
            raise ModelError(f"{said['name']}: differs from the original ({measured.text}); not installed")
        else:
            report(f"{said['name']}: int8 is too far from the original and left out; use precision fp32")
            for path in target.glob("int8.*"):
                path.unlink()
    describe(target, said)
