"""A model's weights and settings, read from safetensors, an exported ONNX graph, JSON; never a pickle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hyce.errors import ModelError


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path}: can't be read as JSON ({error}); fetch it again") from error
    if not isinstance(value, dict):
        raise ModelError(f"{path}: no JSON object; fetch it again")
    return value


def read_weights(path: Path) -> dict[str, NDArray[np.float32]]:
    """The tensors of a safetensors file as float32, by their names without a leading "bert."."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        tensors = load_file(path)
    except (SafetensorError, OSError, KeyError, TypeError) as error:
        raise ModelError(f"{path}: not a readable safetensors file ({error}); fetch it again") from error
    return {
        name.removeprefix("bert."): np.asarray(tensor, np.float32)
        for name, tensor in tensors.items()
        if not name.endswith("position_ids")
    }


def exported_weights(path: Path) -> dict[str, NDArray[np.float32]]:
    """The weights of an exported BERT graph, by their original names.

    An export keeps the names of biases, norms and tables, and renames a transposed matrix; which one that
    is tells the bias that is added to its product. Optimised and quantised exports have lost that.
    """
    import onnx
    from onnx import numpy_helper

    try:
        exported = onnx.load(path).graph
    except Exception as error:  # protobuf's own exceptions, by its implementation
        raise ModelError(f"{path}: not a readable ONNX file ({error}); fetch it again") from error
    tensors = {tensor.name: numpy_helper.to_array(tensor) for tensor in exported.initializer}
    products = {node.output[0]: node.input[1] for node in exported.node if node.op_type == "MatMul"}
    for node in exported.node:
        biases = [name for name in node.input if name.endswith(".bias") and name in tensors]
        made = [products[name] for name in node.input if products.get(name) in tensors]
        if node.op_type == "Add" and biases and made:
            tensors[biases[0].removesuffix("bias") + "weight"] = tensors[made[0]].T
    return {
        name.removeprefix("bert."): tensor for name, tensor in tensors.items() if tensor.dtype == np.float32
    }
