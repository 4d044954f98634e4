"""Where each setting comes from, what is refused, and that no setting does nothing."""

from __future__ import annotations

import ast
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hyce import config
from hyce.config import SECTIONS, Config, load
from hyce.errors import ConfigError
from hyce.presets import PRESETS
from hyce.settings import ROLES, Policy, Role

SOURCE = Path(config.__file__).parent


class Files:
    """A user's and a site's settings file in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.user = folder / "user" / "hyce" / "hyce.toml"
        self.site = folder / "etc" / "hyce.toml"
        for file in (self.user, self.site):
            file.parent.mkdir(parents=True, mode=0o755)

    def write(self, *, user: str | None = None, site: str | None = None) -> None:
        for file, text in ((self.user, user), (self.site, site)):
            if text is not None:
                file.write_text(text, encoding="utf-8")
                file.chmod(0o644)

    def load(
        self,
        overrides: Mapping[str, Any] | None = None,
        *,
        file: Path | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> Config:
        home = {"XDG_CONFIG_HOME": str(self.user.parent.parent)}
        return load(file, overrides, {**home, **(environ or {})}, self.site)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


# -- precedence ------------------------------------------------------------------------------------------


def test_without_files_everything_is_default(files: Files) -> None:
    assert files.load() == Config()
    assert dict(files.load().origins) == {}


LAYERS = ("site", "user", "environment", "command line")


@pytest.mark.parametrize("highest", range(4))
def test_the_highest_layer_wins(files: Files, highest: int) -> None:
    """Each layer sets its own number; those above the highest are absent."""

    def text(layer: int) -> str | None:
        return f"[retrieval]\npassages = {layer + 1}\n" if layer <= highest else None

    files.write(site=text(0), user=text(1))
    environ = {"HYCE_RETRIEVAL_PASSAGES": "3"} if highest >= 2 else {}
    overrides = {"retrieval.passages": 4} if highest == 3 else None
    loaded = files.load(overrides, environ=environ)
    assert loaded.retrieval.passages == highest + 1
    origins = {"site": str(files.site), "user": str(files.user)}
    assert loaded.origins["retrieval.passages"] == origins.get(LAYERS[highest], LAYERS[highest])


def test_layers_are_merged_key_by_key(files: Files) -> None:
    files.write(site='[site]\nname = "K"\ncluster = "a"\n', user='[site]\ncluster = "b"\n[llm]\nseed = 7\n')
    loaded = files.load({"llm.model": "m"}, environ={"HYCE_LLM_TIMEOUT": "5"})
    assert (loaded.site.name, loaded.site.cluster) == ("K", "b")
    assert (loaded.llm.seed, loaded.llm.model, loaded.llm.timeout) == (7, "m", 5.0)


def test_a_named_file_takes_the_users_place_and_must_exist(files: Files, tmp_path: Path) -> None:
    files.write(user='[site]\nname = "user"\n')
    other = tmp_path / "other.toml"
    with pytest.raises(ConfigError, match=r"other\.toml: no such settings file; `hyce init`"):
        files.load(file=other)
    other.write_text('[site]\ncluster = "c"\n')
    other.chmod(0o600)
    loaded = files.load(file=other)
    assert (loaded.site.name, loaded.site.cluster) == ("", "c")


def test_the_current_folder_is_not_searched(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hyce.toml").write_text('[site]\nname = "trap"\n')
    monkeypatch.chdir(tmp_path)
    assert files.load() == Config()


# -- the site's policy -----------------------------------------------------------------------------------


def test_the_sites_policy_holds_against_all_other_layers(files: Files) -> None:
    files.write(
        site='[policy]\ncommands = false\noutside_endpoints = ["https://a.example"]\n',
        user="[policy]\ncommands = true\nroot = true\n[llm]\nseed = 3\n",
    )
    loaded = files.load(
        {"policy.catalogue": ["/tmp"]}, environ={"HYCE_POLICY_OUTSIDE_ENDPOINTS": "https://evil.example"}
    )
    assert loaded.policy == config.Policy(commands=False, outside_endpoints=("https://a.example",))
    assert loaded.llm.seed == 3, "the rest of the user's file counts"
    for key, origin in {
        "policy.commands": str(files.user),
        "policy.root": str(files.user),
        "policy.outside_endpoints": "environment",
        "policy.catalogue": "command line",
    }.items():
        assert f"{key} in {origin} has no effect: {files.site} holds the site's policy" in loaded.notices
    assert len(loaded.notices) == 4


def test_a_site_file_without_policy_leaves_the_defaults_in_force(files: Files) -> None:
    files.write(site='[site]\nname = "K"\n', user="[policy]\nroot = true\n")
    loaded = files.load()
    assert loaded.policy == config.Policy()
    assert len(loaded.notices) == 1


def test_the_site_file_named_as_the_users_does_not_set_policy_twice(files: Files) -> None:
    files.write(site="[policy]\nroot = true\n")
    loaded = files.load(file=files.site)
    assert loaded.policy.root
    assert loaded.notices == ()


def test_without_a_site_file_the_user_sets_policy(files: Files) -> None:
    files.write(user="[policy]\nroot = true\n")
    loaded = files.load(environ={"HYCE_POLICY_COMMANDS": "no"})
    assert (loaded.policy.root, loaded.policy.commands) == (True, False)
    assert loaded.notices == ()


# -- what is refused -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[retrieval]\npasages = 3\n", "no such setting: retrieval.pasages; did you mean retrieval.passages"),
        ('[lmm]\nmodel = "x"\n', "no such setting: lmm.model; did you mean llm.model?"),
        ("[wholly]\nunlike = 1\n", r"no such setting: wholly.unlike; `hyce init` writes them all"),
        ('name = "x"\n', "`name` stands outside a section; write it below"),
        ("[site\n", "not valid TOML"),
        ("[site]\nname = x\n", "not valid TOML"),
        ("[site]\nname = 3\n", "site.name is a text, not 3"),
        ('[retrieval]\ndense = "yes"\n', "retrieval.dense is true or false, not 'yes'"),
        ("[retrieval]\ndense = 1\n", "retrieval.dense is true or false, not 1"),
        ("[retrieval]\npassages = true\n", "retrieval.passages is a whole number, not True"),
        ("[retrieval]\npassages = 2.5\n", "retrieval.passages is a whole number, not 2.5"),
        ("[retrieval]\npassages = 0\n", "retrieval.passages is at least 1, not 0"),
        ("[llm]\ntimeout = true\n", "llm.timeout is a number, not True"),
        ('[llm]\ntimeout = "5"\n', "llm.timeout is a number, not '5'"),
        ("[llm]\ntimeout = -1\n", "llm.timeout is at least 0.1, not -1"),
        ("[llm]\ntimeout = nan\n", "llm.timeout is .*not nan"),
        ("[commands]\nthreshold = inf\n", "commands.threshold is .*not inf"),
        ('[site]\nclusters = "a,b"\n', "site.clusters is a list of texts, not 'a,b'"),
        ("[site]\nclusters = [1]\n", r"site.clusters is a list of texts, not \[1\]"),
        (
            '[retrieval]\nrerank = "fast"\n',
            "retrieval.rerank is one of late, cross-encoder, endpoint, none, not 'fast'",
        ),
        (
            "[retrieval]\nrerank = []\n",
            r"retrieval.rerank is one of late, cross-encoder, endpoint, none, not \[\]",
        ),
        ("[origins]\nx = 1\n", "no such setting: origins.x"),
        ('[llm]\napi_key = "secret"\n', "no such setting: llm.api_key;"),
    ],
)
def test_a_wrong_line_is_refused_by_file_and_key(files: Files, text: str, message: str) -> None:
    files.write(user=text)
    with pytest.raises(ConfigError, match=message) as caught:
        files.load()
    assert str(caught.value).startswith(f"{files.user}: ")
    assert "\n" not in str(caught.value)


def test_the_sites_file_is_checked_like_the_users(files: Files) -> None:
    files.write(site="[policy]\ncomands = false\n")
    with pytest.raises(ConfigError, match=r"did you mean policy\.commands") as caught:
        files.load()
    assert str(caught.value).startswith(f"{files.site}: ")


def test_what_is_not_utf8_is_refused(files: Files) -> None:
    files.user.write_bytes(b'[site]\nname = "caf\xe9"\n')
    files.user.chmod(0o644)
    with pytest.raises(ConfigError, match="not valid TOML"):
        files.load()


def test_a_folder_in_a_files_place_is_refused(files: Files) -> None:
    files.user.mkdir(mode=0o755)
    with pytest.raises(ConfigError, match="can't be read: Is a directory"):
        files.load()


@pytest.mark.parametrize("mode", [0o666, 0o664, 0o646])
@pytest.mark.parametrize("which", ["user", "site"])
def test_a_file_that_others_can_write_is_refused(files: Files, mode: int, which: str) -> None:
    file = files.user if which == "user" else files.site
    files.write(**{which: '[site]\nname = "x"\n'})
    file.chmod(mode)
    with pytest.raises(ConfigError, match=f"{file}: others can write it; run `chmod go-w {file}`"):
        files.load()
    file.chmod(0o600)
    assert files.load().site.name == "x"


def test_a_file_in_a_folder_that_others_can_write_is_refused(files: Files) -> None:
    files.write(user='[site]\nname = "x"\n')
    files.user.parent.chmod(0o777)
    with pytest.raises(ConfigError, match=f"{files.user.parent}: others can write it"):
        files.load()
    files.user.parent.chmod(0o1777)
    assert files.load().site.name == "x", "sticky: others can't replace the file"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
def test_another_users_file_is_refused(files: Files) -> None:
    files.write(user='[site]\nname = "x"\n')
    os.chown(files.user, 12345, -1)
    with pytest.raises(ConfigError, match="belongs to another user"):
        files.load()


# -- the environment -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variable", "text", "key", "value"),
    [
        ("HYCE_RETRIEVAL_DENSE", "false", "retrieval.dense", False),
        ("HYCE_RETRIEVAL_DENSE", "No", "retrieval.dense", False),
        ("HYCE_RETRIEVAL_DENSE", "0", "retrieval.dense", False),
        ("HYCE_POLICY_ROOT", "true", "policy.root", True),
        ("HYCE_POLICY_ROOT", "YES", "policy.root", True),
        ("HYCE_POLICY_ROOT", "1", "policy.root", True),
        ("HYCE_SITE_CLUSTERS", "merlin,osprey", "site.clusters", ("merlin", "osprey")),
        ("HYCE_SITE_CLUSTERS", "merlin", "site.clusters", ("merlin",)),
        ("HYCE_SITE_CLUSTERS", "", "site.clusters", ()),
        ("HYCE_LLM_TIMEOUT", "2.5", "llm.timeout", 2.5),
        ("HYCE_LLM_SEED", "-1", "llm.seed", -1),
        ("HYCE_LLM_BASE_URL", "http://x:1/v1", "llm.base_url", "http://x:1/v1"),
        ("HYCE_LLM_OUTPUT_LIMIT", "max_completion_tokens", "llm.output_limit", "max_completion_tokens"),
        ("HYCE_INDEX_MAX_PAGE_MB", "3", "index.max_page_mb", 3.0),
    ],
)
def test_variables_are_read_as_their_settings_type(
    files: Files, variable: str, text: str, key: str, value: object
) -> None:
    section, _, name = key.partition(".")
    loaded = getattr(getattr(files.load(environ={variable: text}), section), name)
    assert loaded == value
    assert type(loaded) is type(value)


@pytest.mark.parametrize(
    ("variable", "text", "message"),
    [
        ("HYCE_RETRIEVAL_DENSE", "maybe", "environment: retrieval.dense is true or false, not 'maybe'"),
        ("HYCE_LLM_SEED", "1.5", "environment: llm.seed is a whole number, not '1.5'"),
        ("HYCE_LLM_TIMEOUT", "soon", "environment: llm.timeout is a number, not 'soon'"),
        ("HYCE_RETRIEVAL_RERANK", "fast", "environment: retrieval.rerank is one of late, cross-encoder"),
        ("HYCE_LLM_MODLE", "x", "HYCE_LLM_MODLE: no such setting; did you mean HYCE_LLM_MODEL?"),
        ("HYCE_ZZZZZ", "x", "HYCE_ZZZZZ: no such setting; `hyce init` writes them all"),
    ],
)
def test_a_wrong_variable_is_refused(files: Files, variable: str, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        files.load(environ={variable: text})
    assert message in str(caught.value)


def test_other_programs_variables_are_left_alone(files: Files) -> None:
    assert files.load(environ={"HYCELIKE": "1", "hyce_llm_seed": "4", "SLURM_JOB_ID": "7"}) == Config()


def test_a_wrong_override_is_refused(files: Files) -> None:
    with pytest.raises(
        ConfigError, match=r"command line: no such setting: index\.paht; did you mean index\.path"
    ):
        files.load({"index.paht": "x"})


def test_every_setting_has_its_variable(files: Files) -> None:
    for key in config._all_keys():
        section, _, name = key.rpartition(".")
        if not section:
            continue
        default = getattr(SECTIONS[section](), name)
        text = ",".join(default) if isinstance(default, tuple) else str(default)
        loaded = files.load(environ={f"HYCE_{key.replace('.', '_')}".upper(): text})
        parent, _, role = section.partition(".")
        of_section = loaded.roles[role] if role else getattr(loaded, parent)
        assert getattr(of_section, name) == default
        assert loaded.origins == {key: "environment"}


# -- presets ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PRESETS)
def test_a_presets_settings_exist_and_say_nothing_of_policy_or_consent(files: Files, name: str) -> None:
    loaded = files.load({"preset": name})
    assert loaded.preset == name
    for key, value in PRESETS[name].settings.items():
        section, _, setting = key.rpartition(".")
        assert getattr(getattr(loaded, section), setting) == value
        assert loaded.origins[key] == "command line"
    assert loaded.policy == Policy()
    assert not any(key.endswith("location") for key in PRESETS[name].settings)


def test_what_stands_beside_a_preset_wins_and_so_does_a_place_that_comes_before(files: Files) -> None:
    files.write(user='preset = "paper"\n[retrieval]\npassages = 7\n', site="[retrieval]\ncandidates = 50\n")
    loaded = files.load(environ={"HYCE_MODEL_NAME": "mine"})
    assert (loaded.retrieval.passages, loaded.retrieval.candidates, loaded.model.name) == (7, 20, "mine")
    assert loaded.commands.matching == "joint"


def test_a_preset_of_the_command_line_stands_above_the_files(files: Files) -> None:
    files.write(user="[retrieval]\npassages = 7\n")
    assert files.load({"preset": "paper"}).retrieval.passages == 5
    assert files.load(environ={"HYCE_PRESET": "paper"}).retrieval.passages == 5


def test_an_unknown_preset_is_refused(files: Files) -> None:
    files.write(user='preset = "papers"\n')
    with pytest.raises(ConfigError, match=r"hyce.toml: no such preset: 'papers'; there are paper, "):
        files.load()


@pytest.mark.parametrize("text", ['preset = ["paper"]\n', "[preset]\nname = 1\n", "preset = 3\n"])
def test_a_preset_that_is_no_name_is_refused(files: Files, text: str) -> None:
    files.write(user=text)
    with pytest.raises(ConfigError, match="no such preset"):
        files.load()


# -- roles -----------------------------------------------------------------------------------------------


def test_a_role_has_its_own_model_and_the_rest_of_llm(files: Files) -> None:
    files.write(
        user='[llm]\nbase_url = "http://localhost:1/v1"\nmodel = "big"\napi_key_env = "KEY"\n'
        '[llm.queries]\nmodel = "small"\ntimeout = 5\n'
    )
    loaded = files.load()
    queries = config.for_role(loaded, "queries").llm
    assert (queries.model, queries.timeout) == ("small", 5)
    assert (queries.base_url, queries.api_key_env) == ("http://localhost:1/v1", "KEY")
    assert config.for_role(loaded, "passages") is loaded


def test_a_key_and_a_location_go_with_their_address_alone(files: Files) -> None:
    files.write(
        user='[llm]\nbase_url = "http://one/v1"\nlocation = "onsite"\napi_key_env = "KEY"\n'
        'api_key_file = "key"\n[llm.answer]\nbase_url = "http://two/v1"\n'
    )
    answer = config.for_role(files.load(), "answer").llm
    assert answer.base_url == "http://two/v1"
    assert (answer.location, answer.api_key_env, answer.api_key_file) == ("outside", "", "")


def test_a_key_without_its_address_is_said_to_have_no_effect(files: Files) -> None:
    files.write(user='[llm.answer]\nmodel = "big"\napi_key_file = "/home/ada/key"\n')
    loaded = files.load()
    assert loaded.notices == ("llm.answer.api_key_file has no effect without llm.answer.base_url",)
    assert config.for_role(loaded, "answer").llm.api_key_file == ""


def test_a_misspelt_role_is_refused(files: Files) -> None:
    files.write(user='[llm.answers]\nmodel = "x"\n')
    with pytest.raises(
        ConfigError, match=r"no such setting: llm.answers.model; did you mean llm.answer.model"
    ):
        files.load()


@pytest.mark.parametrize("section", ["llm", "model", "reranker", "llm.answer"])
def test_a_user_may_not_call_an_address_the_sites_own(files: Files, section: str) -> None:
    said = f'[{section}]\nlocation = "onsite"\n'
    files.write(user=f'{said}base_url = "http://elsewhere/v1"\n', site="[site]\n")
    loaded = files.load()
    assert f"{section}.location" not in loaded.origins
    assert any(f"{section}.location" in notice for notice in loaded.notices)
    # What the site said of its own address doesn't hold for the user's.
    files.write(
        user=f'[{section}]\nbase_url = "http://elsewhere/v1"\n',
        site=f'{said}base_url = "http://ours/v1"\n',
    )
    loaded = files.load()
    role = section.partition(".")[2]
    found = loaded.roles[role] if role else getattr(loaded, section)
    assert (found.base_url, found.location) == ("http://elsewhere/v1", "outside")
    assert any(f"{section}.location" in notice for notice in loaded.notices)


# -- folders ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("folder", "variable", "fallback"),
    [
        (config.config_folder, "XDG_CONFIG_HOME", ".config"),
        (config.data_folder, "XDG_DATA_HOME", ".local/share"),
        (config.cache_folder, "XDG_CACHE_HOME", ".cache"),
        (config.state_folder, "XDG_STATE_HOME", ".local/state"),
    ],
)
def test_folders_follow_the_xdg_specification(folder: Any, variable: str, fallback: str) -> None:
    default = Path.home() / fallback / "hyce"
    assert folder({variable: "/elsewhere"}) == Path("/elsewhere/hyce")
    for ignored in ({}, {variable: ""}, {variable: "relative/path"}, {variable: "~/x"}):
        assert folder(ignored) == default


def test_index_and_models_may_be_put_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert config.index_folder(Config()) == Path("/data/hyce/index")
    assert config.models_folder(Config()) == Path("/data/hyce/models")
    chosen = Config(index=config.Index(path="~/i"), model=config.Model(folder="/m"))
    assert config.index_folder(chosen) == Path.home() / "i"
    assert config.models_folder(chosen) == Path("/m")


# -- no setting does nothing -----------------------------------------------------------------------------

ALSO_CALLED = {"settings": ("retrieval",), "said": ("llm", "model", "reranker")}
"""Names under which the code keeps a section, other than the section's own; an endpoint's is any of three."""


def settings_read() -> set[str]:
    """Each section.key that the code reads as an attribute of that section."""
    found: set[str] = set()
    for file in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Attribute):
                continue
            owner = node.value
            name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
            name = name.lstrip("_")
            found.update(f"{section}.{node.attr}" for section in ALSO_CALLED.get(name, (name,)))
    return found


def test_every_setting_is_read_somewhere() -> None:
    by_name = {f"llm.{role}.{key}" for role in ROLES for key in Role.__dataclass_fields__} | {"preset"}
    assert set(config._all_keys()) - by_name - settings_read() == set()


def test_every_setting_and_section_is_described() -> None:
    for section in SECTIONS.values():
        assert section.__doc__
        for key in section.__dataclass_fields__.values():  # type: ignore[attr-defined]
            assert key.metadata["doc"].endswith("."), key.name
