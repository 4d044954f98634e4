"""With everything local, nothing leaves: index, search and ask in a network namespace without a route."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hyce_home import KESTREL, Home

MEMORY = "how much memory does this machine have and how much is free"


def no_network() -> list[str]:
    """What starts a program without any network, not even loopback."""
    for before in (["unshare", "-n", "--"], ["unshare", "-r", "-n", "--"]):
        if (
            shutil.which("unshare")
            and not subprocess.run([*before, "true"], capture_output=True, check=False).returncode
        ):
            return before
    if os.getuid() == 0 and shutil.which("unshare"):
        pytest.fail("root can't make a network namespace here; run the tests where it can")
    pytest.skip("this kernel lets no ordinary user make a network namespace")


@pytest.fixture
def cut_off() -> list[str]:
    return no_network()


def test_the_namespace_has_no_route(cut_off: list[str]) -> None:
    look = "print(open('/proc/net/route').read().count(chr(10)), open('/proc/net/dev').read().count(':'))"
    shown = subprocess.run([*cut_off, sys.executable, "-c", look], capture_output=True, text=True, check=True)
    routes, _ = shown.stdout.split()
    assert int(routes) <= 1


def test_index_search_match_and_ask_work_without_a_network(home: Home, cut_off: list[str]) -> None:
    made = home.spawn("index", str(KESTREL / "docs" / "merlin"), "--json", before=cut_off)
    assert (made.code, made.json["failed"]) == (0, 0)
    assert made.json["embedded"] > 20
    found = home.spawn("search", "GPU limits", "--json", before=cut_off)
    assert found.json["hits"]
    matched = home.spawn("match", MEMORY, "--assume-available", "--json", before=cut_off)
    assert matched.json["commands"][0]["id"] == "system.memory"
    asked = home.spawn("ask", MEMORY, "--json", before=cut_off)
    assert asked.code == 0
    assert asked.json["passages"]
    if "-r" not in cut_off:
        # An ordinary user's namespace shows root's files as nobody's, so that no program is trusted there.
        (output,) = asked.json["commands"]
        assert output["status"] == "ok"
        assert "Mem:" in output["stdout"]
    assert home.spawn("doctor", before=cut_off).code == 0


def test_no_socket_to_another_machine_is_even_tried(kestrel: Home, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    strace = ["strace", "-f", "-qq", "-e", "trace=connect,sendto,sendmsg", "-o", str(trace), "--"]
    if not shutil.which("strace") or subprocess.run([*strace, "true"], check=False).returncode:
        pytest.skip("strace isn't installed or may not trace; the namespace above proves the rest")
    assert kestrel.spawn("ask", MEMORY, before=strace).code == 0
    assert "AF_INET" not in trace.read_text(encoding="utf-8")
