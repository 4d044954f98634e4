"""The setting passages.kind names who cuts."""

from __future__ import annotations

import pytest
from word_embedder import WordEmbedder

from hyce.config import Config, Llm, Passages, Policy, Role
from hyce.cut import open_cutter
from hyce.errors import ConfigError, PolicyError
from hyce.indexing import passage_settings
from hyce.records import Block, Document, Page, Section

PAGE = Page(
    "Storage",
    (
        Section(("Storage",), "", (Block("paragraph", ("One two three.",)), Block("paragraph", ("Four.",)))),
        Section(("Storage", "Home"), "home", (Block("paragraph", ("Five six.",)),)),
    ),
)
DOCUMENT = Document("/docs", "storage.md", "text/markdown", "", "digest")


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("structure", ["Storage\nOne two three.\nFour.", "Storage > Home\nFive six."]),
        ("paragraph", ["One two three.", "Four.", "Five six."]),
    ],
)
def test_the_setting_names_who_cuts(kind: str, expected: list[str]) -> None:
    config = Config(passages=Passages(kind=kind))  # type: ignore[arg-type]
    with open_cutter(config, WordEmbedder()) as cutter:
        (cut,) = cutter.cut(iter([(DOCUMENT, PAGE)]))
        assert (cut.document, cut.page, cut.note, cutter.cost) == (DOCUMENT, PAGE, "", "")
    assert [passage.text for passage in cut.chunks] == expected


def test_a_language_model_must_be_there_to_cut() -> None:
    config = Config(passages=Passages(kind="llm"))
    with pytest.raises(ConfigError, match="base_url and model"), open_cutter(config, WordEmbedder()):
        pass


def test_the_site_must_have_consented_to_the_language_model() -> None:
    away = Llm(base_url="https://models.example/v1", model="m")
    config = Config(passages=Passages(kind="llm"), llm=away)
    with pytest.raises(PolicyError, match="consent"), open_cutter(config, WordEmbedder()):
        pass
    config = Config(
        passages=Passages(kind="llm"), llm=away, policy=Policy(outside_endpoints=("https://models.example",))
    )
    with open_cutter(config, WordEmbedder()) as cutter:
        assert cutter.cost == ""


def test_a_context_without_room_for_a_page_is_told_before_anything_is_sent() -> None:
    small = Llm(base_url="http://127.0.0.1:1/v1", model="m", context_tokens=1024)
    config = Config(passages=Passages(kind="llm"), llm=small)
    with pytest.raises(ConfigError, match="context_tokens"), open_cutter(config, WordEmbedder()):
        pass


def test_an_index_remembers_how_its_passages_were_cut() -> None:
    llm = Llm(base_url="http://127.0.0.1/v1", model="one")
    role = Role(model="another")
    configs = [
        Config(llm=llm),
        Config(passages=Passages(kind="paragraph")),
        Config(passages=Passages(kind="llm"), llm=llm),
        Config(passages=Passages(kind="llm", size=200), llm=llm),
        Config(passages=Passages(kind="llm"), llm=llm, roles={"passages": role}),
    ]
    assert len({passage_settings(config) for config in configs}) == len(configs)
    assert passage_settings(Config(llm=llm)) == passage_settings(Config()), "who else is asked doesn't count"
