"""Imports point one way, and nothing heavy is imported before it is needed."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import hyce
from hyce.index.embedded import open_writer
from hyce.models import find

SOURCE = Path(hyce.__file__).parent

FOUNDATION = {
    "errors": set(),
    "records": {"errors"},
    "trust": {"errors"},
    "settings": set(),
    "presets": set(),
    "config": {"errors", "records", "trust", "settings", "presets"},
}
"""What each module that all others may use may itself import."""

ABOVE_THE_STAGES = {"answer": 1, "assistant": 2, "doctor": 3, "evaluate": 3, "cli": 4}
"""Nothing imports what stands higher than itself; the stages stand at 0."""


def module_name(file: Path) -> str:
    parts = ("hyce", *file.relative_to(SOURCE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_name(file): file for file in sorted(SOURCE.rglob("*.py"))}


def imports(module: str, *, late: bool = True) -> set[str]:
    """Modules of hyce that it imports; late: inside functions too. Imports for type checks don't count."""
    return set(_imports(ast.parse(FILES[module].read_text(encoding="utf-8")), late))


def _imports(node: ast.AST, late: bool) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) and not late:
            continue
        if isinstance(child, ast.Import):
            yield from (name.name for name in child.names if name.name.partition(".")[0] == "hyce")
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, "imports name the whole path"
            if (child.module or "").partition(".")[0] == "hyce":
                for name in child.names:
                    inner = f"{child.module}.{name.name}"
                    yield inner if inner in FILES else str(child.module)
        else:
            yield from _imports(child, late)


def part(module: str) -> str:
    """The name below hyce: `index` for hyce.index.writer."""
    return [*module.split("."), ""][1]


def test_all_modules_are_looked_at() -> None:
    assert {"hyce", "hyce.cli", "hyce.cli.questions", "hyce.index.writer", "hyce.answer"} <= set(FILES)
    assert imports("hyce.answer") >= {"hyce.context", "hyce.citations", "hyce.config"}
    assert "hyce.index.embedded" in imports("hyce.retrieve") - {"hyce.index"}
    assert "hyce.served_embedder" in imports("hyce.embed", late=True)
    assert "hyce.served_embedder" not in imports("hyce.embed", late=False)


@pytest.mark.parametrize("module", FILES)
def test_imports_point_one_way(module: str) -> None:
    """records, errors, config -> stages -> answer -> assistant -> doctor -> cli; late imports count."""
    own = part(module)
    level = ABOVE_THE_STAGES.get(own, 0)
    for imported in imports(module):
        assert imported in FILES, f"{module} imports {imported}, which is no module"
        target = part(imported)
        if own in FOUNDATION:
            assert target in FOUNDATION[own], f"{module} imports {imported}"
        elif target != own:
            assert level > ABOVE_THE_STAGES.get(target, -1), f"{module} imports {imported}"


def test_no_two_modules_need_each_other_to_be_imported() -> None:
    TopologicalSorter({module: imports(module, late=False) - {module} for module in FILES}).prepare()


# -- what a start costs ----------------------------------------------------------------------------------

DOCUMENTATION = {"yaml", "lxml", "docutils", "markdown", "pymdownx", "pygments"}
ELSEWHERE = {"rich", "openai", "httpx", "urllib3", "onnx", "huggingface_hub", "safetensors"}
LANGUAGES = {"py3langid", "snowballstemmer"}


def loaded_after(script: str, *arguments: str) -> set[str]:
    """The top-level modules that a new interpreter holds after the script."""
    script += (
        "\nimport json, sys; sys.stderr.write(json.dumps(sorted({n.partition('.')[0] for n in sys.modules})))"
    )
    run = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True, timeout=60
    )
    return set(json.loads(run.stderr))


def test_the_command_line_is_read_without_heavy_modules() -> None:
    loaded = loaded_after("from hyce.cli import build_parser; build_parser().parse_args(['search', 'x'])")
    assert "argparse" in loaded
    assert loaded & ({"numpy", "onnxruntime", "tokenizers", "sqlite3"} | DOCUMENTATION | ELSEWHERE) == set()


def test_a_search_imports_what_it_needs_alone(tmp_path: Path, model_folder: Path) -> None:
    files = find("all-MiniLM-L6-v2", "int8", model_folder)
    index = tmp_path / "index"
    with open_writer(
        index,
        embedder=files.fingerprint,
        dimensions=files.dimensions,
        passages="structure/1",
        token_vectors=True,
    ) as writer:
        writer.publish()
    script = """
import os, sys
from pathlib import Path
from hyce.cli import main
folder, models, index = sys.argv[1:]
os.environ.update(HYCE_MODEL_FOLDER=models, XDG_CONFIG_HOME=folder)
assert main(["search", "How big is my quota?", "--index", index], Path(folder, "no-site.toml")) == 0
"""
    loaded = loaded_after(script, str(tmp_path), str(model_folder), str(index))
    assert {"numpy", "onnxruntime", "tokenizers"} <= loaded
    assert loaded & (DOCUMENTATION | ELSEWHERE | LANGUAGES) == set()
