"""What init writes can be loaded, and the settings page is complete."""

from __future__ import annotations

import dataclasses
import tomllib
from pathlib import Path

import pytest

from hyce.config import SECTIONS, Config, load
from hyce.settings import ROLES, Role
from hyce.settings_file import render, settings_page
from hyce.surroundings import Surroundings

PAGE = Path(__file__).parent.parent / "docs" / "settings.md"
NOTHING = Surroundings(scheduler="none", cluster="", modules="", lustre=(), gpus=False)
CLUSTER = Surroundings(
    scheduler="slurm", cluster="merlin", modules="lmod", lustre=("/scratch", "/work"), gpus=True
)


def loaded(text: str, folder: Path) -> Config:
    file = folder / "hyce.toml"
    file.write_text(text, encoding="utf-8")
    file.chmod(0o600)
    return load(file, environ={}, site_file=folder / "no-site.toml")


def without_origins(config: Config) -> Config:
    return dataclasses.replace(config, origins={})


def test_where_nothing_was_found_the_file_changes_nothing(tmp_path: Path) -> None:
    assert without_origins(loaded(render(NOTHING), tmp_path)) == Config()


def test_what_was_found_is_set_and_the_rest_stays_default(tmp_path: Path) -> None:
    config = loaded(render(CLUSTER), tmp_path)
    site = dataclasses.replace(Config().site, scheduler="slurm", cluster="merlin")
    assert without_origins(config) == dataclasses.replace(Config(), site=site)
    assert set(config.origins) == {"site.scheduler", "site.cluster"}


def test_the_file_says_what_was_found() -> None:
    assert "# Found here: batch system slurm, modules lmod, Lustre /scratch, /work, GPUs yes." in render(
        CLUSTER
    )
    assert "# Found here: batch system none, modules none, Lustre none, GPUs none." in render(NOTHING)


@pytest.mark.parametrize("found", [NOTHING, CLUSTER])
def test_each_commented_default_can_be_uncommented(tmp_path: Path, found: Surroundings) -> None:
    """Every line `# key = value` without its # is valid, and gives the default."""
    lines = []
    for line in render(found).splitlines():
        bare = line.removeprefix("# ")
        is_setting = bare.partition(" = ")[0].isidentifier() and " = " in bare
        lines.append(bare if is_setting else line)
    config = loaded("\n".join(lines), tmp_path)
    given = tomllib.loads("\n".join(lines))
    assert given.pop("preset") == ""
    roles = {role: given["llm"].pop(role) for role in ROLES}
    written = {name: set(keys) for name, keys in given.items()}
    written |= {f"llm.{role}": set(keys) for role, keys in roles.items()}
    assert written == {
        name: {key.name for key in dataclasses.fields(section)} for name, section in SECTIONS.items()
    }
    site = Config().site
    if found is CLUSTER:
        site = dataclasses.replace(site, scheduler="slurm", cluster="merlin")
    expected = dataclasses.replace(Config(), site=site, roles=dict.fromkeys(ROLES, Role()))
    assert without_origins(config) == expected


def test_every_setting_is_explained_in_the_file() -> None:
    words = " ".join(render(NOTHING).replace("\n# ", " ").split())
    for section in SECTIONS.values():
        for key in dataclasses.fields(section):
            assert " ".join(key.metadata["doc"].split()) in words


def test_a_name_with_quotes_stays_one_text(tmp_path: Path) -> None:
    odd = dataclasses.replace(CLUSTER, cluster='a"b\\c]\n[policy]\nroot = true\n#é')
    config = loaded(render(odd), tmp_path)
    assert config.site.cluster == odd.cluster
    assert not config.policy.root


def test_the_settings_page_is_the_one_in_docs_and_has_every_key() -> None:
    page = settings_page()
    for name, section in SECTIONS.items():
        (part,) = (each for each in page.split("\n## ") if f"[{name}]" in each.splitlines()[0])
        for key in dataclasses.fields(section):
            rows = [line for line in part.splitlines() if line.startswith(f"| `{key.name}` |")]
            assert len(rows) == 1, f"{name}.{key.name}"
            assert rows[0].endswith(f"| {key.metadata['doc']} |")
            assert rows[0].replace("\\|", "").count("|") == 5
    assert PAGE.read_text(encoding="utf-8") == page, "run scripts/pages"
