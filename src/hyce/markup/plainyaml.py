"""YAML as plain data: tags such as !!python/name or !ENV are never acted upon."""

from __future__ import annotations

from typing import Any

import yaml
from yaml import YAMLError

__all__ = ["PlainLoader", "YAMLError", "yaml_load"]


class PlainLoader(yaml.SafeLoader):
    """A SafeLoader to which an unknown tag is no error: `!ENV [NAME, x]` gives x, any other None."""


def _ignore(loader: PlainLoader, suffix: str, node: yaml.Node) -> Any:
    if suffix == "ENV" and isinstance(node, yaml.SequenceNode) and len(node.value) > 1:
        return loader.construct_object(node.value[-1], deep=True)
    return None


PlainLoader.add_multi_constructor("!", _ignore)
PlainLoader.add_multi_constructor("tag:yaml.org,2002:python/", _ignore)
PlainLoader.add_constructor(None, lambda _loader, _node: None)


def yaml_load(text: str, loader: type[PlainLoader] = PlainLoader) -> Any:
    """The text's data. Raises YAMLError, or ValueError for a date that doesn't exist."""
    return yaml.load(text, Loader=loader)  # noqa: S506  (a SafeLoader that knows fewer tags)
