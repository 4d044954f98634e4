"""A bundle of this environment, installed and used where there is no network; and bundles that must fail."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
from hyce_home import KESTREL, Home, Result, fails, wait_for
from ordinary_user import uid
from test_offline import no_network

from hyce import bundle, bundle_install, config, wheels
from hyce.config import Config, Model
from hyce.errors import BundleError

VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"
QUESTIONS = ("How do I ask for an L40S GPU?", "my job is killed for memory", "quota on scratch")


def plain_python() -> str:
    """The Python behind this environment, which has no hyce."""
    python = str(Path(sys.base_prefix) / "bin" / f"python{VERSION}")
    look = subprocess.run([python, "-I", "-c", "import hyce"], capture_output=True, check=False)
    if not look.returncode:
        pytest.skip(f"{python} has hyce itself: the tests run outside of a virtual environment")
    return python


def run(*command: str | Path, home: Path, before: Sequence[str] = (), code: int = 0) -> Result:
    """One program with a home of its own and no settings."""
    done = subprocess.run(
        [*before, *map(str, command)],
        env={"PATH": "/usr/bin:/bin", "HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == code, done.stderr + done.stdout
    assert "Traceback" not in done.stderr, done.stderr
    return Result(done.returncode, done.stdout, done.stderr)


# -- a real bundle ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def packed(kestrel: Home, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """(a bundle of this environment with the sample documentation, what `hyce models bundle` said)."""
    file = tmp_path_factory.mktemp("bundle") / "hyce-bundle.pyz"
    # Where this project is installed as editable, pip builds its wheel, and gets the build tool for that.
    made = kestrel.hyce("models", "bundle", str(file), "--json")
    assert made.code == 0, f"no bundle can be made here: {made.err}"
    return file, made.json


def test_a_bundle_works_where_there_is_no_network(
    packed: tuple[Path, Any], kestrel: Home, tmp_path: Path
) -> None:
    file, said = packed
    folder, cut_off = tmp_path / "sw" / "hyce", no_network()
    assert said["bytes"] == file.stat().st_size
    assert (said["models"], said["documents"] > 30) == (["all-MiniLM-L6-v2"], True)
    run(plain_python(), file, folder, home=tmp_path, before=cut_off)
    program = folder / "bin" / "hyce"
    for question in QUESTIONS:
        found = run(program, "search", question, "--json", home=tmp_path, before=cut_off).json
        assert found["hits"]
        assert found["hits"] == kestrel.hyce("search", question, "--json").json["hits"]
    (model, _) = run(program, "models", "list", "--json", home=tmp_path).json
    assert model["folder"] == str(folder / "share" / "hyce" / "models" / "all-MiniLM-L6-v2")
    checked = run(folder / "bin" / "python", "-m", "pip", "check", home=tmp_path, before=cut_off)
    assert "No broken requirements" in checked.out
    # Whoever may write the folder keeps the index that all its users search.
    more = run(program, "index", KESTREL / "docs" / "help", "--json", home=tmp_path, before=cut_off).json
    assert more["unchanged"] + more["embedded"] > 0
    assert not (tmp_path / ".local" / "share" / "hyce").exists()


def test_no_settings_no_keys_and_no_tools_of_developers_are_packed(packed: tuple[Path, Any]) -> None:
    file, said = packed
    names = {package.partition("==")[0].replace("_", "-").lower() for package in said["packages"]}
    assert {"hyce", "pip", "numpy", "onnxruntime", "tokenizers"} <= names
    assert not names & {"pytest", "mypy", "ruff", "hypothesis", "torch"}
    facts = bundle_install.read_facts(file)
    assert {part["path"].partition("/")[0] for part in facts["files"]} == {"wheels", "models", "index"}
    assert not [
        part["path"] for part in facts["files"] if part["path"].endswith((".toml", "lock", "staged.json"))
    ]


# -- small bundles ---------------------------------------------------------------------------------------

STUBS = {"numpy": "", "onnxruntime": "", "tokenizers": ""}
HYCE = "import sys\ndef main(given=None):\n    print({version!r}, (given or sys.argv[1:])[0])\n"


def make_wheel(
    folder: Path, name: str, version: str, files: Mapping[str, str], entry_points: str = ""
) -> Path:
    """A wheel of pure Python."""
    info = f"{name}-{version}.dist-info"
    content = dict(files) | {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: a-b-c\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    if entry_points:
        content[f"{info}/entry_points.txt"] = entry_points
    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    wheels._write(wheel, {path: (text.encode(), 0o644) for path, text in content.items()}, info)
    return wheel


@pytest.fixture(scope="module")
def pip_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    wheel = wheels.pack(distribution("pip"), tmp_path_factory.mktemp("pip"))
    assert wheel, "pip isn't as it was installed"
    return wheel


def small(
    file: Path,
    *wheel_files: Path,
    version: str = "1",
    data: Mapping[str, str] | None = None,
    needs: Mapping[str, Any] | None = None,
) -> Path:
    """A bundle of these wheels and data; with wheels, of stubs for what a trial imports as well."""
    folder = Path(tempfile.mkdtemp(dir=file.parent))
    made = list(wheel_files)
    if made:
        made += [make_wheel(folder, name, "1", {f"{name}/__init__.py": text}) for name, text in STUBS.items()]
    parts = [bundle.Part(f"wheels/{path.name}", path, path.stat().st_size) for path in made]
    for name, text in (data or {}).items():
        path = folder / name.replace("/", "-")
        path.write_text(text, encoding="utf-8")
        parts.append(bundle.Part(name, path, path.stat().st_size))
    facts = {"format": 1, "hyce": version, "models": [], "index": None, "settings": {}, "installed": 0}
    facts["needs"] = wheels.needs([]) | dict(needs or {})
    bundle.write(file, parts, facts, lambda *_: None)
    return file


def hyce_wheel(folder: Path, version: str, main: str = HYCE) -> Path:
    files = {"hyce/__init__.py": "", "hyce/cli/__init__.py": main.format(version=version)}
    return make_wheel(folder, "hyce", version, files, "[console_scripts]\nhyce = hyce.cli:main\n")


def install(file: Path, folder: Path, *options: str, code: int = 0) -> Result:
    return run(plain_python(), file, folder, *options, home=file.parent, code=code)


def refused(result: Result, *words: str) -> None:
    """One clear line."""
    assert len(result.err.splitlines()) == 1, result.err
    for word in words:
        assert word in result.err


def tree(folder: Path) -> dict[str, str]:
    """What every path below the folder is."""
    return {
        str(path.relative_to(folder)): str(path.readlink())
        if path.is_symlink()
        else hashlib.sha256(path.read_bytes()).hexdigest()
        if path.is_file()
        else ""
        for path in folder.rglob("*")
    }


def test_an_update_keeps_what_the_bundle_has_not_and_a_failed_one_keeps_all(
    tmp_path: Path, pip_wheel: Path
) -> None:
    folder = tmp_path / "sw"
    first = small(tmp_path / "1.pyz", pip_wheel, hyce_wheel(tmp_path, "1"), data={"index/current": "first"})
    install(first, folder)
    program, shared = folder / "bin" / "hyce", folder / "share" / "hyce"
    assert run(program, "x", home=tmp_path).out == "1 x\n"
    assert program.read_text(encoding="utf-8").startswith(f"#!{folder}/bin/python\n")
    (shared / "models" / "other").mkdir(parents=True)
    (shared / "models" / "other" / "model.json").write_text("{}", encoding="utf-8")

    second = small(tmp_path / "2.pyz", pip_wheel, hyce_wheel(tmp_path, "2"), data={"models/m/a": "new"})
    refused(install(second, folder, code=1), "already", "--replace")
    assert "the index that was there before" in install(second, folder, "--replace").out
    assert run(program, "x", home=tmp_path).out == "2 x\n"
    assert (shared / "index" / "current").read_text(encoding="utf-8") == "first"
    assert sorted(path.name for path in (shared / "models").iterdir()) == ["m", "other"]
    assert [path.name for path in (folder / "releases").iterdir()] == ["2"]

    before = tree(folder)
    broken = hyce_wheel(tmp_path, "3", "raise ImportError('libxyz.so.1: {version}')")
    third = small(tmp_path / "3.pyz", pip_wheel, broken)
    refused(install(third, folder, "--replace", code=1), "doesn't start", "libxyz.so.1")
    assert {p: s for p, s in tree(folder).items() if "__pycache__" not in p} == {
        p: s for p, s in before.items() if "__pycache__" not in p
    }
    assert run(program, "x", home=tmp_path).out == "2 x\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_installation_leaves_nothing_in_the_way(
    number: signal.Signals, tmp_path: Path, pip_wheel: Path
) -> None:
    file = small(tmp_path / "b.pyz", pip_wheel, hyce_wheel(tmp_path, "1"))
    folder = tmp_path / "deep" / "sw"
    process = subprocess.Popen([plain_python(), file, folder], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        wait_for((folder / "releases" / "1" / "bin").exists)
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    if number is signal.SIGKILL:
        assert not (folder / "bin").exists()
    else:
        assert (process.returncode, err) == (130, b"b.pyz: interrupted; nothing was changed\n")
        assert not (tmp_path / "deep").exists()
    install(file, folder)
    assert run(folder / "bin" / "hyce", "x", home=tmp_path).out == "1 x\n"


def test_a_cut_file_says_so(tmp_path: Path) -> None:
    data = small(tmp_path / "b.pyz", data={"index/a": "x" * 5000}).read_bytes()
    for length in (len(data) - 10, len(data) // 2, 100):
        (tmp_path / "cut.pyz").write_bytes(data[:length])
        done = run_unchecked(tmp_path / "cut.pyz", tmp_path / "sw")
        assert done.returncode == 1
        assert b"this-file-is-cut-or-damaged--copy-it-again" in done.stderr
        assert not (tmp_path / "sw").exists()


def run_unchecked(*command: Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([plain_python(), *command], capture_output=True, check=False, timeout=60)


def test_damage_within_is_found_before_anything_is_in_use(tmp_path: Path) -> None:
    file = small(tmp_path / "b.pyz", data={"index/a": "first", "index/b": "pages of text"})
    data = file.read_bytes()
    file.write_bytes(data.replace(b"pages of text", b"pages of test"))
    refused(install(file, tmp_path / "new" / "sw", code=1), "index/b", "damaged", "copy the file again")
    assert not (tmp_path / "new").exists()
    # In the archive at the end: its own check.
    file.write_bytes(data[:-400] + bytes([data[-400] ^ 1]) + data[-399:])
    assert run_unchecked(file, tmp_path / "new").returncode
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("needs", "words"),
    [
        (
            {"python": [3, 99]},
            ("made for Python 3.99", f"this is Python {VERSION}", "start it with python3.99"),
        ),
        ({"soabi": "cpython-311t-riscv64-linux-musl"}, ("made for cpython-311t-riscv64-linux-musl",)),
        ({"machine": "riscv64"}, ("made for riscv64 processors", os.uname().machine)),
        ({"glibc": [99, 1]}, ("needs glibc 99.1",)),
    ],
)
def test_another_machine_is_refused_before_anything_is_done(
    needs: dict[str, Any], words: tuple[str, ...], tmp_path: Path
) -> None:
    file = small(tmp_path / "b.pyz", data={"index/a": "x"}, needs=needs)
    refused(install(file, tmp_path / "new", code=1), *words)
    assert not (tmp_path / "new").exists()


def test_the_first_lines_are_understood_by_any_python(tmp_path: Path) -> None:
    file = small(tmp_path / "b.pyz")
    with zipfile.ZipFile(file) as archive:
        first = archive.read("__main__.py").decode()
    compile(first, "__main__.py", "exec", dont_inherit=True)
    for newer in ('f"', ":=", "match ", "annotations"):
        assert newer not in first


def test_only_an_empty_folder_or_a_bundles_own_is_taken(tmp_path: Path) -> None:
    file = small(tmp_path / "b.pyz", data={"index/a": "x"})
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "thesis.tex").write_text("words", encoding="utf-8")
    for options in ((), ("--replace",)):
        refused(install(file, folder, *options, code=1), str(folder), "not empty")
    assert [path.name for path in folder.iterdir()] == ["thesis.tex"]
    refused(install(file, folder / "thesis.tex", code=1), "is no folder")
    refused(install(file, folder / "thesis.tex" / "x", code=1), "thesis.tex", "nothing was changed")


@pytest.mark.parametrize("name", ["releases", ".hyce-bundle"])
def test_links_that_somebody_else_put_there_are_not_followed(tmp_path: Path, name: str) -> None:
    file = small(tmp_path / "b.pyz", data={"index/a": "x"})
    folder, elsewhere = tmp_path / "sw", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    (elsewhere / "thesis").write_text("words", encoding="utf-8")
    (folder / ".hyce-bundle").touch()
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(elsewhere if name == "releases" else elsewhere / "thesis")
    refused(install(file, folder, code=1), str(folder), "where a bundle puts none")
    assert [path.name for path in elsewhere.iterdir()] == ["thesis"]


def test_a_path_that_leads_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    for path in ("../outside", "/tmp/outside", "index/../../outside"):
        file = small(tmp_path / "b.pyz", data={path: "x"})
        refused(install(file, tmp_path / "new", code=1), "outside of itself")


def test_no_space_is_said_before_it_is_used(tmp_path: Path) -> None:
    file = small(tmp_path / "b.pyz", data={"index/a": "x"})
    facts = bundle_install.read_facts(file) | {"installed": 10**18}
    bundle.write(file, [], facts, lambda *_: None)
    refused(install(file, tmp_path / "new", code=1), "1000000000000 MB are needed", "are free")
    assert not (tmp_path / "new").exists()


# -- making ----------------------------------------------------------------------------------------------


def test_a_bundle_replaces_only_a_bundle_and_appears_complete(tmp_path: Path) -> None:
    thesis = tmp_path / "thesis.tex"
    thesis.write_text("words", encoding="utf-8")
    with pytest.raises(BundleError, match="exists and is no bundle"):
        bundle.make(thesis, Config())
    with pytest.raises(BundleError, match="no such folder"):
        bundle.make(tmp_path / "none" / "b.pyz", Config())
    file = small(tmp_path / "b.pyz", data={"index/a": "x"})
    before = file.read_bytes()
    damaged = bundle.Part("models/m/a", thesis, 5, hashlib.sha256(b"other").hexdigest())
    for part in (damaged, bundle.Part("index/a", thesis, 6)):
        with pytest.raises(BundleError, match="damaged, or changed"):
            bundle.write(file, [part], bundle_install.read_facts(file), lambda *_: None)
    assert file.read_bytes() == before
    assert not list(tmp_path.glob(".b.pyz-*"))


def test_the_same_files_give_the_same_bundle(tmp_path: Path, pip_wheel: Path) -> None:
    again = wheels.pack(distribution("pip"), tmp_path)
    assert again is not None
    assert again.read_bytes() == pip_wheel.read_bytes()
    one, two = (small(tmp_path / f"{n}.pyz", pip_wheel) for n in "12")
    assert one.read_bytes() == two.read_bytes()


def test_a_model_or_index_that_does_not_fit_is_refused(kestrel: Home, tmp_path: Path) -> None:
    file = str(tmp_path / "b.pyz")
    fails(kestrel.hyce("models", "bundle", file, "--model", "unknown"), "model unknown is not in", "pull")
    other = {"model.precision": "fp32"}
    made = kestrel.hyce("models", "bundle", file, settings=other)
    fails(made, "/int8/", "/fp32/", "hyce index", "--without-index")
    fails(kestrel.hyce("models", "bundle", file, "--wheels", str(tmp_path / "none")), "no such folder")
    assert not list(tmp_path.iterdir())


def test_what_the_target_must_set_is_packed_and_nothing_else() -> None:
    assert bundle._settings(Config()) == {}
    chosen = Config(model=Model(name="m", precision="fp32", api_key_file="/k", base_url="http://h"))
    assert bundle._settings(chosen) == {"model.name": "m", "model.precision": "fp32"}
    assert bundle.used_models(chosen) == ["m"]
    assert bundle.used_models(Config(model=Model(kind="tei"))) == []


# -- wheels ----------------------------------------------------------------------------------------------

_PACK = """
import sys
from importlib.metadata import distribution
from pathlib import Path
sys.path += sys.argv[2:]
from hyce import wheels
print(wheels.pack(distribution("tiny"), Path(sys.argv[1])) or "")
"""


@pytest.fixture
def tiny(tmp_path: Path) -> tuple[Path, Path]:
    """(a wheel with a bit of everything, an environment that it is installed in)."""
    script = "#!python\nprint('hello')\n"
    wheel = make_wheel(
        tmp_path,
        "tiny",
        "1.0",
        {
            "tiny/__init__.py": "",
            "tiny/data with space.txt": "text",
            "tiny-1.0.data/scripts/tiny-script": script,
            "tiny-1.0.data/data/share/tiny/page.1": "manual",
            "tiny-1.0.data/headers/tiny.h": "int x;",
        },
        "[console_scripts]\ntiny = tiny:main\n",
    )
    place = tmp_path / "env"
    subprocess.run([plain_python(), "-m", "venv", "--without-pip", place], check=True)
    python = place / "bin" / "python"
    command = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(python),
        "install",
        "--quiet",
        "--no-index",
        str(wheel),
    ]
    subprocess.run(command, check=True, capture_output=True)
    return wheel, place


def pack_in(place: Path, target: Path) -> str:
    """What wheels.pack says of tiny in that environment: a path or nothing."""
    target.mkdir(exist_ok=True)
    paths = [str(Path(wheels.__file__).parents[1]), sysconfig.get_path("purelib")]
    done = subprocess.run(
        [place / "bin" / "python", "-c", _PACK, target, *paths], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_a_wheel_is_packed_from_its_installed_files_as_it_was(
    tiny: tuple[Path, Path], tmp_path: Path
) -> None:
    wheel, place = tiny
    again = Path(pack_in(place, tmp_path / "out"))
    assert again.name == wheel.name
    with zipfile.ZipFile(wheel) as one, zipfile.ZipFile(again) as two:
        content = [{n: z.read(n) for n in z.namelist() if not n.endswith("RECORD")} for z in (one, two)]
    assert content[0] == content[1]
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--target", tmp_path / "t", again],
        check=True,
        capture_output=True,
    )
    assert (tmp_path / "t" / "tiny" / "data with space.txt").read_text(encoding="utf-8") == "text"


def test_what_was_changed_or_put_there_otherwise_is_not_packed(
    tiny: tuple[Path, Path], tmp_path: Path
) -> None:
    _, place = tiny
    (site,) = place.glob("lib/python*/site-packages")
    installer = site / "tiny-1.0.dist-info" / "INSTALLER"
    installer.write_text("conda\n", encoding="utf-8")
    assert pack_in(place, tmp_path / "out") == ""
    installer.write_text("uv\n", encoding="utf-8")
    assert pack_in(place, tmp_path / "out")
    (site / "tiny" / "__init__.py").write_text("patched = True", encoding="utf-8")
    assert pack_in(place, tmp_path / "out") == ""


def test_a_source_that_is_newer_than_its_installation_is_refused(tmp_path: Path) -> None:
    own = distribution("hyce")
    wheels._refuse_other_requirements([make_wheel(tmp_path, "tiny", "1", {})], own)
    with pytest.raises(BundleError, match="needs other packages than the installed one"):
        wheels._refuse_other_requirements([make_wheel(tmp_path, "hyce", own.version, {})], own)


def test_wheels_that_are_nowhere_are_named(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"pip has no wheel of nowhere==1: .*--wheels"):
        wheels._fetch(["nowhere==1"], tmp_path, tmp_path)


@pytest.mark.parametrize(
    ("platforms", "glibc"),
    [
        ("any", (0, 0)),
        ("manylinux_2_27_x86_64.manylinux_2_28_x86_64", (2, 27)),
        ("manylinux_2_17_x86_64.manylinux2014_x86_64", (2, 17)),
        ("manylinux2010_x86_64", (2, 12)),
        ("musllinux_1_2_x86_64", (0, 0)),
    ],
)
def test_the_oldest_system_a_wheel_runs_on(platforms: str, glibc: tuple[int, int]) -> None:
    assert wheels._glibc(platforms) == glibc


# -- where models and index are found --------------------------------------------------------------------

_WHERE = """
import os, sys
from pathlib import Path
sys.path.append(sys.argv[1])
from ordinary_user import become
from hyce import config
sys.prefix = sys.argv[2]
become(int(sys.argv[3]))
settings = config.Config()
for writing in (False, True):
    print(config.index_folder(settings, writing=writing))
    print(config.models_folder(settings, writing=writing))
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may look into."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def places(prefix: Path, data: Path, user: int) -> list[str]:
    """(index, models) to read, (index, models) to write: `own` or `shared`."""
    done = subprocess.run(
        [sys.executable, "-c", _WHERE, Path(__file__).parent, prefix, str(user)],
        env={"XDG_DATA_HOME": str(data), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    return ["own" if Path(line).is_relative_to(data) else "shared" for line in done.stdout.split()]


def put(*files: Path) -> None:
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("{}", encoding="utf-8")


def test_models_and_index_of_the_program_are_used_until_the_user_has_own_ones(open_folder: Path) -> None:
    prefix, data = open_folder / "env", open_folder / "data"
    shared, own = prefix / "share" / "hyce", data / "hyce"
    me = os.getuid()
    assert places(prefix, data, me) == ["own", "own", "own", "own"]
    put(shared / "index" / "current")
    assert places(prefix, data, me) == ["shared", "own", "shared", "shared"]
    put(shared / "models" / "all-MiniLM-L6-v2" / "model.json")
    assert places(prefix, data, me) == ["shared"] * 4
    # Half an index, or another model, is none.
    put(own / "index" / "lock", own / "models" / "other" / "model.json")
    assert places(prefix, data, me) == ["shared"] * 4
    put(own / "index" / "current")
    assert places(prefix, data, me) == ["own", "shared", "own", "shared"]


def test_who_may_not_write_the_programs_folder_writes_an_own_one(open_folder: Path) -> None:
    prefix, data = open_folder / "env", open_folder / "data"
    shared = prefix / "share" / "hyce"
    put(shared / "index" / "current", shared / "models" / "all-MiniLM-L6-v2" / "model.json")
    shared.chmod(0o555)
    assert places(prefix, data, uid()) == ["shared", "shared", "own", "own"]


def test_a_setting_counts_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    put(config.program_folder() / "models" / "m" / "model.json")
    assert config.models_folder(Config(model=Model(folder="/m")), "m") == Path("/m")
    assert config.models_folders(Config(model=Model(folder="/m"))) == [Path("/m")]
    assert config.models_folders(Config())[1] == tmp_path / "share" / "hyce" / "models"


def test_models_of_both_places_are_listed(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    shutil.copytree(home.models / "all-MiniLM-L6-v2", tmp_path / "share" / "hyce" / "models" / "copy")
    place = tmp_path / "share" / "hyce" / "models" / "copy" / "model.json"
    place.write_text(
        json.dumps(json.loads(place.read_text(encoding="utf-8")) | {"name": "copy"}), encoding="utf-8"
    )
    listed = home.hyce("models", "list", "--json", settings={"model.folder": ""}).json
    assert [model["name"] for model in listed] == ["copy", "copy"]
