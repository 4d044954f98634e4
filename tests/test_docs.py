"""What the pages say is so: commands parse, examples load, links lead somewhere, settings exist."""

from __future__ import annotations

import argparse
import dataclasses
import re
import shlex
import tomllib
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest
from hyce_home import Home

from hyce import catalogue, config, values
from hyce.cli import build_parser
from hyce.endpoint import location
from hyce.evaluate.finding.gate_file import read_gate
from hyce.evaluate.running.variants import read_variants

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")] + sorted(
    (ROOT / "docs").glob("*.md")
)
GENERATED = ("settings.md", "cli.md")

_FENCE = re.compile(r"^```([\w-]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`([^`\n]+)`")


def name(value: object) -> str | None:
    return value.relative_to(ROOT).as_posix() if isinstance(value, Path) else None


def blocks(page: Path, language: str) -> list[str]:
    return [body for kind, body in _FENCE.findall(page.read_text("utf-8")) if kind == language]


def prose(page: Path) -> str:
    """The page without its fenced blocks."""
    return _FENCE.sub("", page.read_text("utf-8"))


def command_lines(page: Path) -> Iterator[str]:
    """Every `hyce ...` in code, inline or fenced."""
    for code in _CODE.findall(prose(page)):
        if code.startswith("hyce "):
            yield code
    for _, body in _FENCE.findall(page.read_text("utf-8")):
        for line in body.splitlines():
            found = re.search(r"(?:^|^\$ |\| |&& (?:/opt/hyce/bin/)?)(hyce [^|]*)", line)
            if found:
                yield found[1]


LINES = [(page, line) for page in PAGES if page.name not in GENERATED for line in command_lines(page)]


def test_the_pages_show_commands() -> None:
    assert len(LINES) > 40


@pytest.mark.parametrize(("page", "line"), LINES, ids=name)
def test_every_command_line_parses(page: Path, line: str) -> None:
    commands = {"hyce --help", *_commands(build_parser())}
    if line in commands or any(each.startswith(f"{line} ") for each in commands):
        return  # the name alone of a command or a group of them
    words = shlex.split(line, comments=True)[1:]
    parsed = build_parser().parse_args(words)
    assert callable(parsed.call)
    if getattr(parsed, "action", None) == "show" or parsed.command == "run":
        known = {*catalogue.load(), "ID", "licences.in_use"}
        assert parsed.id in known


def test_every_command_has_its_section_in_the_reference() -> None:
    page = (ROOT / "docs/cli.md").read_text("utf-8")
    for command in _commands(build_parser()):
        assert f"\n## {command}\n" in page


def _commands(parser: argparse.ArgumentParser) -> Iterator[str]:
    groups = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not groups:
        yield parser.prog
    for group in groups:
        for child in group.choices.values():
            yield from _commands(child)


def test_the_demo_s_question_gives_what_the_readme_shows(kestrel: Home) -> None:
    example = next(body for body in blocks(ROOT / "README.md", "") if body.startswith("$ hyce ask"))
    call, *shown = example.splitlines()
    question = shlex.split(call)[3]
    demo = (ROOT / "scripts/demo").read_text("utf-8")
    assert f'ask "{question}"' in demo
    site = tomllib.loads(demo.split("<<TOML\n")[1].split("\nTOML\n")[0])["site"]
    settings = {f"site.{key}": value for key, value in site.items()}
    found = kestrel.hyce("ask", question, "--no-llm", settings=settings)
    assert found.code == 0
    ran = ("Filesystem ", "/dev/", "(ok, ")  # the machine's own part
    for line in shown:
        if line.strip() not in ("", "…") and not line.startswith(ran):
            assert f"\n{line.removesuffix('…').rstrip()}" in f"\n{found.out}"


TOML = [(page, text) for page in PAGES for text in blocks(page, "toml")]
VARIANTS = [(page, text) for page, text in TOML if "[[variant]]" in text]
GATES = [(page, text) for page, text in TOML if "questions = " in text]
SETTINGS = [each for each in TOML if each not in VARIANTS and each not in GATES]


def test_the_pages_show_settings() -> None:
    assert len(SETTINGS) >= 6
    assert VARIANTS and GATES


@pytest.mark.parametrize(("page", "text"), VARIANTS, ids=name)
def test_every_variants_example_can_be_read(page: Path, text: str, tmp_path: Path) -> None:
    file = tmp_path / "variants.toml"
    file.write_text(text, encoding="utf-8")
    file.chmod(0o600)
    assert read_variants(str(file)).variants


@pytest.mark.parametrize(("page", "text"), GATES, ids=name)
def test_every_gate_example_can_be_read(page: Path, text: str, tmp_path: Path) -> None:
    file = tmp_path / "gate.toml"
    file.write_text(text, encoding="utf-8")
    assert read_gate(file).sections


@pytest.mark.parametrize(("page", "text"), SETTINGS, ids=name)
def test_every_settings_example_loads_and_its_endpoint_is_allowed(
    page: Path, text: str, tmp_path: Path
) -> None:
    file = tmp_path / "hyce.toml"
    file.write_text(text, encoding="utf-8")
    file.chmod(0o600)
    loaded = config.load(file, environ={}, site_file=tmp_path / "none")
    assert loaded.origins
    assert not loaded.notices
    if loaded.llm.base_url:
        outside = bool(loaded.policy.outside_endpoints)
        assert location(loaded) == ("outside" if outside else "onsite")


YAML = [(page, text) for page in PAGES for text in blocks(page, "yaml")]


def test_the_pages_show_an_entry() -> None:
    assert YAML


@pytest.mark.parametrize(("page", "text"), YAML, ids=name)
def test_every_entry_example_loads_and_its_questions_name_its_values(
    page: Path, text: str, tmp_path: Path
) -> None:
    folder = tmp_path / "catalogue"
    folder.mkdir(mode=0o700)
    (folder / "own.yaml").write_text(text, encoding="utf-8")
    (folder / "own.yaml").chmod(0o600)
    builtin = catalogue.load()
    entries = catalogue.load([folder])
    own = [command for command in entries.values() if command.origin.startswith(str(folder))]
    assert own
    for command in own:
        assert all(values.find_all(command, question) is not None for question in command.questions)
    disabled = re.findall(r"^([\w.]+): \{disabled: true\}", text, re.MULTILINE)
    assert set(builtin) - set(entries) == set(disabled)


def settings_named(page: Path) -> Iterator[str]:
    """`section.key`, `[section]` and HYCE_... in code."""
    sections = "|".join(config.SECTIONS)
    for code in _CODE.findall(prose(page)):
        found = re.fullmatch(
            rf"(?:{sections})\.(?!py$|json$|safetensors$)[a-z_]+|\[[a-z]+\]|HYCE_[A-Z_]+", code
        )
        if found:
            yield code


def _keys(section: type) -> list[str]:
    return [field.name for field in dataclasses.fields(section)]


NAMED = sorted({(page, named) for page in PAGES for named in settings_named(page)})


def test_the_pages_name_settings() -> None:
    assert len(NAMED) > 10


@pytest.mark.parametrize(("page", "named"), NAMED, ids=name)
def test_every_setting_that_is_named_exists(page: Path, named: str) -> None:
    keys = {f"{section}.{key}" for section, kind in config.SECTIONS.items() for key in _keys(kind)} | {
        "preset"
    }
    known = keys | {f"[{section}]" for section in config.SECTIONS}
    known |= {f"HYCE_{key.replace('.', '_').upper()}" for key in keys}
    assert named in known


def test_every_setting_has_its_row_in_the_reference() -> None:
    page = (ROOT / "docs/settings.md").read_text("utf-8")
    for section, kind in config.SECTIONS.items():
        (part,) = (each for each in page.split("\n## ") if f"[{section}]" in each.splitlines()[0])
        for key in _keys(kind):
            assert f"\n| `{key}` |" in part


def anchors(page: Path) -> set[str]:
    """The fragments that headings get, as GitHub makes them."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE):
        text = unicodedata.normalize("NFC", heading.lower())
        slug = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        found.add(slug)
    return found


LINKS = [
    (page, target)
    for page in PAGES
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page))
    if not target.startswith(("https://", "http://"))
]


@pytest.mark.parametrize(("page", "target"), LINKS, ids=name)
def test_every_link_leads_somewhere(page: Path, target: str) -> None:
    path, _, anchor = target.partition("#")
    file = (page.parent / path).resolve() if path else page
    assert file.exists()
    if anchor:
        assert anchor in anchors(file)


def test_the_tour_of_the_code_names_what_is_there() -> None:
    page = ROOT / "docs/how-it-works.md"
    source = ROOT / "src/hyce"
    named = {
        code for code in _CODE.findall(prose(page)) if re.fullmatch(r"[\w/]+(?:\.py|\.yaml|\.toml|/)", code)
    }
    missing = sorted(code for code in named if not (source / code).exists() and code != "src/hyce/")
    assert not missing
    modules = {file.name for file in source.glob("*.py")} - {"__init__.py"}
    assert modules <= named
