"""A model of the hub that isn't pinned: its files as they are now, those that are needed and no others."""

from __future__ import annotations

import errno
import re
import shutil
from collections.abc import Callable
from pathlib import Path

from hyce.conversion.fetch import LARGEST, reason
from hyce.conversion.original import read
from hyce.errors import ModelError

_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)
_SMALL = re.compile(
    r"(config|config_sentence_transformers|sentence_bert_config|modules|tokenizer|tokenizer_config"
    r"|special_tokens_map|added_tokens|vocab|model\.safetensors\.index)\.json|vocab\.txt|merges\.txt"
    r"|sentencepiece\.bpe\.model|spiece\.model|\d_\w{1,40}/(config\.json|model\.safetensors)",
    re.ASCII,
)
"""Settings, tokenizers and small modules; no pickle, no program."""
_WEIGHTS = re.compile(r"model(-\d{5}-of-\d{5})?\.safetensors", re.ASCII)
_EXPORT = ("onnx/model.onnx", "onnx/model.onnx_data")
_OURS = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS)
"""Errors of this machine's disk; other OSErrors are the network's."""


def from_repository(repository: str, target: Path, report: Callable[[str], None], *, torch: bool) -> str:
    """Fetch a model's files into `target`; its address and revision.

    Of its weights those alone that will be used: safetensors where a graph is built from them or torch may
    be used, else an ONNX graph. Raises ModelError.
    """
    if not _REPOSITORY.fullmatch(repository) or ".." in repository:
        raise ModelError(f"{repository[:200]!r} is no organisation/name of the model hub; check the name")
    report(f"fetching {repository} from the model hub")
    # Imported here because it takes 0.3 s, and reads its settings from the environment when imported.
    import huggingface_hub

    try:
        info = huggingface_hub.HfApi(token=False).model_info(
            repository, revision="main", files_metadata=True, timeout=10
        )
        revision = str(info.sha)
        sizes = {file.rfilename: file.size or 0 for file in info.siblings or ()}
        _get(repository, revision, [name for name in sizes if _SMALL.fullmatch(name)], target)
        names = _weights(repository, list(sizes), target, torch)
        if sum(sizes[name] for name in names) > LARGEST:
            raise ModelError(f"{repository}: more than {LARGEST // 10**9} GB; take a smaller model")
        _get(repository, revision, names, target)
    except Exception as error:  # its errors and those of the HTTP library below share no base
        if isinstance(error, ModelError) or (isinstance(error, OSError) and error.errno in _OURS):
            raise
        raise ModelError(
            f"the model hub gave no {repository}: {reason(error)}; or fetch it on a machine with internet "
            "and name its folder"
        ) from error
    shutil.rmtree(target / ".cache", ignore_errors=True)
    return f"{huggingface_hub.constants.ENDPOINT}/{repository} at {revision}"


def _get(repository: str, revision: str, names: list[str], target: Path) -> None:
    import huggingface_hub
    from huggingface_hub.utils.tqdm import disable_progress_bars

    disable_progress_bars()
    for name in names:
        huggingface_hub.hf_hub_download(
            repository, name, revision=revision, local_dir=target, etag_timeout=5, token=False
        )


def _weights(repository: str, names: list[str], target: Path, torch: bool) -> list[str]:
    """The files with the weights that will be used."""
    original = read(target, repository.rpartition("/")[2])
    tensors = sorted(name for name in names if _WEIGHTS.fullmatch(name))
    export = [name for name in _EXPORT if name in names]
    if tensors and (torch or not original.obstacle):
        return tensors
    if export:
        return export
    if tensors:
        raise ModelError(
            f"{repository}: has no ONNX graph, and none can be built without torch ({original.obstacle}); "
            f"use `hyce models convert {repository}`"
        )
    raise ModelError(
        f"{repository}: has no weights as safetensors or ONNX (older forms can hold programs, and are not "
        "read); take another model"
    )
