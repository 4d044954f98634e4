"""Every modules.* entry against a real Lmod (Debian's package lmod) with a small tree of modules."""

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hyce_home import Home

from hyce import catalogue, programs
from hyce.config import Policy
from hyce.records import CommandOutput
from hyce.run import run
from hyce.views import VIEWS, Viewer

POLICY = Policy(root=True)
TREE = {
    "core/gcc/11.3.lua": 'whatis("Description: compilers")\nprepend_path("PATH", "/opt/gcc/11.3/bin")\n',
    "core/gcc/12.2.lua": """
        help([[The GNU compilers, with C++ and Fortran.]])
        setenv("CC", "gcc")
        setenv("GREETING", "it's  here")
        prepend_path("PATH", "/opt/gcc/12.2/bin")
        prepend_path("MODULEPATH", "{tree}/gcc-12.2")
    """,
    "core/python/3.9.1": "#%Module1.0\\nprepend-path PATH /opt/python/3.9.1/bin\\n",
    "core/python/3.11.4": """#%Module1.0
        proc ModulesHelp { } { puts stderr "Python with numpy" }
        module-whatis "Python"
        prepend-path PATH /opt/python/3.11.4/bin
        setenv PYTHON_ROOT /opt/python
    """,
    "core/bio/samtools/1.17.lua": 'prepend_path("PATH", "/opt/samtools/bin")\n',
    "gcc-12.2/openmpi/4.1.5.lua": 'prepend_path("PATH", "/opt/openmpi/bin")\n',
}

Modules = Callable[..., CommandOutput]


@pytest.fixture
def lmod() -> Path:
    found = programs.find("lmod")
    if isinstance(found, str):
        if os.environ.get("TEST_CLUSTER") == "1":
            pytest.fail(f"{found}; install the package lmod, or run pytest without TEST_CLUSTER")
        pytest.skip(f"{found}; the package lmod has it")
    return found


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in TREE.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.replace("\\n", "\n").replace("{tree}", str(tmp_path)), encoding="utf-8")
    return tmp_path


@pytest.fixture
def modules(lmod: Path, tree: Path, monkeypatch: pytest.MonkeyPatch) -> Modules:
    """Runs an entry as in a session in which nothing is loaded but what `environ` says."""
    for name in ("LOADEDMODULES", "_LMFILES_"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MODULEPATH", str(tree / "core"))

    def call(entry_id: str, environ: Mapping[str, str] | None = None, **params: str) -> CommandOutput:
        for name, value in (environ or {}).items():
            monkeypatch.setenv(name, value)
        return run(catalogue.load()[entry_id], params, policy=POLICY)

    return call


def shown(output: CommandOutput) -> str:
    """What it printed, when it went well: lists, and none of Lmod's shell code."""
    assert output.status == "ok", output
    for code in ("export ", "_ModuleTable", "MODULEPATH=", "echo '"):
        assert code not in output.stdout
    return output.stdout


def after_loading(lmod: Path, tree: Path, *names: str) -> dict[str, str]:
    """The variables of a session in which Lmod itself has loaded these."""
    script = f'eval "$({lmod} bash load {" ".join(names)})"; env -0'
    environ = {"MODULEPATH": str(tree / "core"), "HOME": str(tree), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        ["/bin/bash", "-c", script], env=environ, capture_output=True, text=True, check=True
    )
    pairs = dict(pair.partition("=")[::2] for pair in done.stdout.split("\0") if pair)
    return {
        name: value for name, value in pairs.items() if name in ("MODULEPATH", "LOADEDMODULES", "_LMFILES_")
    }


# -- available -------------------------------------------------------------------------------------------


def test_available(modules: Modules, tree: Path) -> None:
    output = modules("modules.available")
    assert shown(output) == (
        f"{tree}/core:\n  bio/samtools: 1.17\n  gcc: 11.3, 12.2\n  python: 3.9.1, 3.11.4\n"
    )
    assert output.stderr == ""


def test_available_once_a_compiler_is_loaded(modules: Modules, lmod: Path, tree: Path) -> None:
    text = shown(modules("modules.available", after_loading(lmod, tree, "gcc/12.2")))
    assert f"{tree}/gcc-12.2:\n  openmpi: 4.1.5\n" in text
    assert "  gcc: 11.3, 12.2\n" in text


@pytest.mark.parametrize("value", ["", "/nonexistent/modules"])
def test_without_module_folders(value: str, modules: Modules) -> None:
    for entry_id, params in (("modules.available", {}), ("modules.search", {"name": "gcc"})):
        text = shown(modules(entry_id, {"MODULEPATH": value}, **params))
        assert text.startswith("No modules can be loaded: MODULEPATH")


# -- loaded ----------------------------------------------------------------------------------------------


def test_nothing_loaded(modules: Modules) -> None:
    output = modules("modules.loaded")
    assert shown(output) == "No modules are loaded in the session that hyce was started from.\n"
    assert output.stderr == ""


def test_loaded(modules: Modules, lmod: Path, tree: Path) -> None:
    text = shown(modules("modules.loaded", after_loading(lmod, tree, "gcc/12.2", "openmpi", "python")))
    assert text.splitlines()[1:] == ["gcc/12.2", "openmpi/4.1.5", "python/3.11.4"]


def test_loaded_shows_nothing_else_of_the_environment(modules: Modules) -> None:
    text = shown(modules("modules.loaded", {"LOADEDMODULES": "gcc/12.2", "CANARY": "tweet"}))
    assert text.splitlines()[1:] == ["gcc/12.2"]


# -- search ----------------------------------------------------------------------------------------------


def test_search_with_several_versions(modules: Modules) -> None:
    text = shown(modules("modules.search", name="python"))
    assert "python/3.9.1" in text
    assert "python/3.11.4" in text


def test_search_finds_what_needs_another_module_first(modules: Modules) -> None:
    text = shown(modules("modules.search", name="openmpi"))
    assert "openmpi/4.1.5" in text
    assert 'before the "openmpi/4.1.5" module is available to load.\n      gcc/12.2' in text


@pytest.mark.parametrize("name", ["samtools", "SAMTOOLS", "bio/samtools", "bio/samtools/1.17"])
def test_search_by_parts_of_the_name(name: str, modules: Modules) -> None:
    assert "bio/samtools/1.17" in shown(modules("modules.search", name=name))


@pytest.mark.parametrize("name", ["gromacs", "gcc/99"])
def test_search_says_plainly_what_is_absent(name: str, modules: Modules) -> None:
    text = shown(modules("modules.search", name=name))
    assert text.startswith(f"There is no module {name}: of 6 modules, none has this name")


def test_search_knows_similar_names(modules: Modules) -> None:
    assert "Similar names: python\n" in shown(modules("modules.search", name="pyhton"))


# -- show ------------------------------------------------------------------------------------------------


def test_show_a_lua_module(modules: Modules, tree: Path) -> None:
    text = shown(modules("modules.show", name="gcc"))
    assert f"{tree}/core/gcc/12.2.lua:" in text
    assert 'prepend_path("PATH","/opt/gcc/12.2/bin")' in text
    assert 'setenv("GREETING","it\'s  here")' in text
    assert "with C++ and Fortran" in text


def test_show_a_tcl_module(modules: Modules) -> None:
    text = shown(modules("modules.show", name="python/3.11.4"))
    assert 'setenv("PYTHON_ROOT","/opt/python")' in text
    assert "Python with numpy" in text


def test_show_an_absent_module(modules: Modules) -> None:
    output = modules("modules.show", name="gromacs")
    assert (output.status, output.stdout) == ("failed", "")
    assert 'Failed to find the following module(s): "gromacs"' in output.stderr


# -- around it -------------------------------------------------------------------------------------------


def test_by_the_command_line(lmod: Path, tree: Path, tmp_path: Path) -> None:
    home = Home(tmp_path, tmp_path)
    environ = {"MODULEPATH": str(tree / "core"), "LOADEDMODULES": "gcc/12.2"}
    available = home.spawn("run", "modules.available", "--json", environ=environ).json
    assert (available["status"], available["stderr"]) == ("ok", "")
    assert "  python: 3.9.1, 3.11.4\n" in available["stdout"]
    found = home.spawn("run", "modules.search", "name=openmpi", environ=environ)
    assert found.code == 0
    assert "openmpi/4.1.5" in found.out
    assert "gcc/12.2" in home.spawn("run", "modules.loaded", environ=environ).out


TRAPS = {
    "LMOD_RC": "{file}",
    "LMOD_PACKAGE_PATH": "{folder}",
    "LMOD_MODULERCFILE": "{file}",
    "LUA_INIT": "@{file}",
}


@pytest.fixture(params=TRAPS)
def trap(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[dict[str, str], Path]:
    """A variable that names code, and the file that the code leaves when it runs."""
    trace, file = tmp_path / "ran", tmp_path / "code" / "SitePackage.lua"
    file.parent.mkdir()
    file.write_text(f'io.open("{trace}", "w"):close()\n', encoding="utf-8")
    return {request.param: TRAPS[request.param].format(file=file, folder=file.parent)}, trace


def test_code_that_the_environment_names_does_not_run(
    trap: tuple[dict[str, str], Path], modules: Modules
) -> None:
    environ, trace = trap
    for entry_id, params in (
        ("modules.available", {}),
        ("modules.search", {"name": "gcc"}),
        ("modules.show", {"name": "gcc"}),
    ):
        shown(modules(entry_id, environ, **params))
    assert not trace.exists()


def test_the_traps_spring_when_lmod_gets_the_variable(
    trap: tuple[dict[str, str], Path], lmod: Path, tree: Path
) -> None:
    environ, trace = trap
    environ |= {"MODULEPATH": str(tree / "core"), "HOME": str(tree), "PATH": "/usr/bin:/bin"}
    subprocess.run(
        [lmod, "bash", "--redirect", "spider", "gcc"], env=environ, capture_output=True, check=False
    )
    assert trace.exists()


# -- views, without Lmod ---------------------------------------------------------------------------------


def test_what_a_shell_would_echo_is_read_as_it_would_be() -> None:
    line = "it's   a \"test\" '  ' \"' '\" $(x)"
    quoted = line.replace("'", "'\"'\"'").replace(" ", "' '")
    shell_code = "MODULEPATH=/m;\nexport MODULEPATH;\n"
    assert VIEWS["modules_show"]([f"echo '{quoted}';\n{shell_code}"], Viewer("alice")) == line + "\n"
    printed = subprocess.run(
        ["/bin/sh", "-c", f"echo '{quoted}';"], capture_output=True, text=True, check=True
    )
    assert printed.stdout == line + "\n"


def test_modules_without_a_version() -> None:
    output = "echo '/m:';\necho 'single';\necho 'gcc/';\necho 'gcc/12';\necho '/n:';\necho 'gcc/11';\n"
    text = VIEWS["modules_available"]([output], Viewer("alice"))
    assert text == "/m:\n  single\n  gcc: 12\n/n:\n  gcc: 11\n"


def test_a_search_that_failed_beside_a_list_that_has_it() -> None:
    text = VIEWS["modules_search"](["echo 'gcc/11';\necho 'gcc/12';\n", None, "gcc\n"], Viewer("alice"))
    assert text == "Modules: gcc/11, gcc/12\n"


def test_what_a_module_brings_along_is_found_though_no_list_has_it() -> None:
    said = "echo 'numpy:' 'provided' 'by' 'python/3.11';\n"
    assert VIEWS["modules_search"](["echo 'python/3.11';\n", said, "numpy\n"], Viewer("alice")).startswith(
        "numpy: provided"
    )
