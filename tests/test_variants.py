"""Variants files: what each variant sets, what it inherits, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hyce_home import NO_SITE, Home, fails

from hyce.config import Config, for_role, load
from hyce.errors import ConfigError, UsageError
from hyce.evaluate.running.variants import SHIPPED, Plan, read_variants


def written(folder: Path, text: str) -> Path:
    folder.chmod(0o755)
    file = folder / "variants.toml"
    file.write_text(text, encoding="utf-8")
    file.chmod(0o600)
    return file


def plan(folder: Path, text: str) -> Plan:
    return read_variants(str(written(folder, text)))


def config(settings: Any, user: Path | None = None) -> Config:
    return load(user, environ={"XDG_CONFIG_HOME": "/nonexistent"}, site_file=NO_SITE, above=("it", settings))


ROWS = ["baseline (docs)", "baseline (described)", "+hyce", "+cot"]


@pytest.mark.parametrize("name", SHIPPED)
def test_the_shipped_files_add_one_thing_at_a_time(name: str) -> None:
    found = read_variants(name)
    assert (found.passes, found.judge) == (3, "grounded")
    assert [variant.name for variant in found.variants][:4] == ROWS
    docs, described, hyce, cot, better = (config(variant.settings) for variant in found.variants)
    assert [each.commands.enabled for each in (docs, described, hyce, cot)] == [False, True, True, True]
    assert [each.commands.run for each in (described, hyce, cot)] == [False, True, True]
    assert [each.llm.chain_of_thought for each in (docs, described, hyce, cot, better)] == [False] * 3 + [
        True
    ] * 2
    assert {each.commands.matching for each in (described, hyce, cot)} == {"joint"}
    for first, second in ((docs, described), (described, hyce), (hyce, cot)):
        assert (first.model, first.passages, first.retrieval) == (
            second.model,
            second.passages,
            second.retrieval,
        )


def test_the_paper_s_rows_have_its_models() -> None:
    first, *_, last = (config(variant.settings) for variant in read_variants("paper").variants)
    names = [(c.model.name, c.reranker.name, for_role(c, "answer").llm.model) for c in (first, last)]
    assert names == [
        (
            "nvidia/llama-3.2-nv-embedqa-1b-v1",
            "nvidia/llama-3.2-nv-rerankqa-1b-v1",
            "meta/llama-3.1-405b-instruct",
        ),
        ("multi-qa-MiniLM-L6-cos-v1", "ms-marco-MiniLM-L-12-v2", "gpt-4o-2024-08-06"),
    ]
    assert (first.model.kind, last.model.kind) == ("openai", "onnx")
    assert (first.retrieval.rerank, last.retrieval.rerank) == ("endpoint", "cross-encoder")
    keys = [for_role(c, "answer").llm.api_key_env for c in (first, last)]
    assert keys == ["NVIDIA_API_KEY", "OPENAI_API_KEY"]


def test_the_local_rows_need_no_address(tmp_path: Path) -> None:
    for variant in read_variants("local").variants:
        assert not [key for key in variant.settings if key.endswith("base_url")]
        assert not [key for key in variant.settings if key.startswith("llm.") and key.endswith(".model")]
        made = config(variant.settings)
        assert (made.model.kind, made.passages.kind) == ("onnx", "structure")
        assert made.retrieval.rerank in ("none", "late")


def test_a_variant_has_all_that_it_inherits_and_its_preset_below_its_own(tmp_path: Path) -> None:
    found = plan(
        tmp_path,
        """
title = "Two"
passes = 2
judge = "paper"
[[variant]]
name = "a"
preset = "paper"
[variant.settings]
retrieval.passages = 9
llm.answer.model = "m"
[[variant]]
name = "b"
inherits = "a"
settings.commands.run = false
[[variant]]
name = "c"
inherits = "b"
preset = "multilingual"
""",
    )
    assert (found.title, found.passes, found.judge) == ("Two", 2, "paper")
    a, b, c = (config(variant.settings) for variant in found.variants)
    assert (a.retrieval.passages, a.retrieval.candidates, a.commands.run) == (9, 20, True)
    assert (b.retrieval.passages, b.retrieval.candidates, b.commands.run) == (9, 20, False)
    assert (c.model.name, c.retrieval.passages, c.commands.matching) == ("multilingual-e5-small", 9, "joint")
    assert (a.preset, b.preset, c.preset) == ("paper", "paper", "multilingual")
    assert {for_role(each, "answer").llm.model for each in (a, b, c)} == {"m"}


def test_a_key_and_a_place_never_go_with_another_address(tmp_path: Path) -> None:
    user = tmp_path / "hyce.toml"
    user.write_text(
        '[llm]\nbase_url = "http://own.example/v1"\nmodel = "own"\nlocation = "onsite"\n'
        'api_key_env = "OWN_KEY"\ntokenizer = "/own.json"\n[model]\napi_key_file = "/own.key"\n'
    )
    user.chmod(0o600)
    text = """
[[variant]]
name = "elsewhere"
settings.llm.base_url = "https://other.example/v1"
settings.model.base_url = "https://other.example/v1"
[[variant]]
name = "with its own"
inherits = "elsewhere"
[variant.settings.llm]
base_url = "https://third.example/v1"
location = "onsite"
api_key_env = "THIRD_KEY"
[[variant]]
name = "as before"
settings.llm.temperature = 0.5
"""
    elsewhere, own, before = (config(each.settings, user) for each in plan(tmp_path, text).variants)
    assert (elsewhere.llm.location, elsewhere.llm.api_key_env, elsewhere.llm.tokenizer) == ("outside", "", "")
    assert elsewhere.model.api_key_file == ""
    assert (own.llm.location, own.llm.api_key_env) == ("onsite", "THIRD_KEY")
    assert (before.llm.location, before.llm.api_key_env) == ("onsite", "OWN_KEY")


NAMED = '[[variant]]\nname = "a"\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ("holds no variant",)),
        ("variant = []", ("holds no variant",)),
        ("[[variant]]\n", ("variant 1 has no name",)),
        (NAMED + NAMED, ("two variants are called a",)),
        (NAMED + 'inherits = "b"', ("variant a", "'b'", "no earlier variant")),
        (NAMED + "settings.retrieval.passage = 3", ("variant a", "retrieval.passage;", "retrieval.passages")),
        (NAMED + 'settings.retrieval.passages = "3"', ("variant a", "retrieval.passages is a whole number")),
        (NAMED + "settings.temperature = 3", ("variant a", "no such setting: temperature")),
        (NAMED + "settings = 3", ("variant a", "settings is a table")),
        (NAMED + 'preset = "best"', ("variant a", "no such preset: 'best'")),
        (NAMED + "preset = 1", ("variant a", "preset is a text")),
        (NAMED + "settings.policy.root = true", ("variant a", "policy.root")),
        (NAMED + 'settings.llm.judge.model = "m"', ("variant a", "llm.judge.model", "for all variants")),
        (NAMED + "llm.temperature = 1", ("variant a", "no such key: llm")),
        ("pass = 3\n" + NAMED, ("no such key: pass",)),
        ("passes = 0\n" + NAMED, ("passes is a whole number from 1",)),
        ("passes = true\n" + NAMED, ("passes is a whole number from 1",)),
        ('judge = "own"\n' + NAMED, ("judge is one of grounded, paper",)),
        ("title = 3\n" + NAMED, ("title is a text",)),
        ("[[variant\n", ("not valid TOML",)),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path: Path, text: str, words: tuple[str, ...]) -> None:
    with pytest.raises(UsageError) as raised:
        plan(tmp_path, text)
    assert str(tmp_path) in str(raised.value)
    assert "\n" not in str(raised.value)
    for word in words:
        assert word in str(raised.value)


def test_a_file_that_others_can_write_is_refused(tmp_path: Path) -> None:
    file = written(tmp_path, NAMED)
    assert [variant.name for variant in read_variants(str(file)).variants] == ["a"]
    file.chmod(0o666)
    with pytest.raises(ConfigError, match="others can write it"):
        read_variants(str(file))


def test_wrong_usage_exits_with_2(tmp_path: Path) -> None:
    home = Home(tmp_path, tmp_path)
    out = ("--out", str(tmp_path / "out"))
    found = home.hyce("evaluate", "run", "q.jsonl", "--variants", str(tmp_path / "none.toml"), *out)
    fails(found, "none.toml", "paper or local", code=2)
    found = home.hyce("evaluate", "run", "q.jsonl", "--variants", str(written(tmp_path, NAMED * 2)), *out)
    fails(found, "two variants", code=2)
    assert not (tmp_path / "out").exists()
