"""A variant made ready: its settings, its index, and whether it can be run at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from hyce.assistant import open_assistant
from hyce.config import Config, for_role
from hyce.errors import ConfigError, HyceError
from hyce.evaluate.calls import Calls
from hyce.evaluate.records import Row
from hyce.evaluate.running import indexes
from hyce.evaluate.running.asking import shared
from hyce.evaluate.running.keys import row_key
from hyce.evaluate.running.variants import Variant
from hyce.evaluate.work import Show

Load = Callable[[tuple[str, Mapping[str, Any]]], Config]
"""The settings with further ones above them, after what those are called in messages."""


class Tells(Protocol):
    """Tells a person how far long work is (cli.terminal.Terminal)."""

    def progress(self, label: str) -> AbstractContextManager[Show]: ...
    def warn(self, text: str) -> None: ...
    def note(self, text: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Prepared:
    """A variant with the settings that answer its questions."""

    config: Config
    row: Row
    place: indexes.Place | None
    """None where it is unavailable."""


@dataclass(frozen=True, slots=True)
class Workshop:
    """What variants are made ready with."""

    base: Config
    """The settings without any variant's."""
    load: Load
    folder: Path
    """Of the run."""
    questions: str
    """Digest of the set."""
    judging: str
    """keys.judging_key."""
    live: bool
    today: str
    tells: Tells
    contents: dict[Path, str] = field(default_factory=dict)
    """Digests of the indexes that were looked at: most variants have the same."""

    def prepare(self, variant: Variant, calls: Calls, finished: Callable[[Row], bool]) -> Prepared:
        """The variant with its index, made where it is missing. What can't be done is the row's reason.

        finished: whether nothing is left to do; then nothing needs to be there for it.
        """
        prepared = self.look(variant)
        for notice in prepared.config.notices:
            if notice not in self.base.notices:
                self.tells.warn(f"{variant.name}: {notice}")
        if prepared.place is None:
            return prepared
        try:
            place = prepared.place
            if place.manifest is None:
                with self.tells.progress(f"index for {variant.name}") as show:
                    place = indexes.make(place, prepared.config, show, self.tells.warn)
                prepared = self._keyed(prepared, place)
            if not finished(prepared.row):
                _open(prepared.config, calls, self.tells.note)
            return prepared
        except HyceError as error:
            return replace(prepared, place=None, row=replace(prepared.row, unavailable=str(error)))

    def look(self, variant: Variant) -> Prepared:
        """The variant as far as it is known without making or sending anything."""
        row = Row(variant.name, variant.description, "", "", dict(variant.settings))
        try:
            config = self.load((f"variant {variant.name}", variant.settings))
        except HyceError as error:
            return Prepared(self.base, replace(row, unavailable=str(error)), None)
        row = replace(row, model=for_role(config, "answer").llm.model)
        try:
            named = "index.path" in variant.settings
            place = indexes.find(config, self.base, self.folder, named=named)
            prepared = Prepared(config, row, place)
            return self._keyed(prepared, place) if place.manifest else prepared
        except HyceError as error:
            return Prepared(config, replace(row, unavailable=str(error)), None)

    def _keyed(self, prepared: Prepared, place: indexes.Place) -> Prepared:
        config = prepared.config
        if place.folder not in self.contents:
            self.contents[place.folder] = indexes.content(place.folder)
        key = row_key(
            config,
            index=self.contents[place.folder],
            questions=self.questions,
            judging=self.judging,
            live=self.live,
            today=self.today,
        )
        config = replace(config, index=replace(config.index, path=str(place.folder.absolute())))
        return Prepared(config, replace(prepared.row, key=key), place)


def _open(config: Config, calls: Calls, report: Callable[[str], None]) -> None:
    """Opens all that the variant needs, to find out what is missing before any question is asked.

    Raises HyceError for a model that isn't there, or may not be used, and an index that doesn't fit.
    """
    with open_assistant(
        config, clients=lambda config, role: shared(config, role, 1, calls), report=report
    ) as assistant:
        if assistant.client is None:
            raise ConfigError("no language model is configured; set base_url and model in [llm]")
