"""A real Slurm for the whole test session (tests/cluster/up), and hyce as its users run it."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
SCRIPTS = HERE / "cluster"
FOLDER = Path("/var/lib/hyce-test-cluster")
MUST_RUN = "TEST_CLUSTER"
"""Set by scripts/test: then a cluster that can't be started is a failure."""

_START = (
    "import sys; from pathlib import Path; from hyce.cli import main; "
    "sys.exit(main(sys.argv[1:], site_file=Path('/nonexistent/hyce.toml')))"
)


@dataclass(frozen=True)
class Cluster:
    """A running cluster, whose users are alice (account chemistry) and bob (account physics)."""

    slurm_conf: Path
    jobs: Mapping[str, str]
    """Numbers of the submitted jobs by what they show, such as "running" or "out_of_memory"."""
    calls: Iterator[int] = field(default_factory=itertools.count)

    def hyce(
        self, user: str, *arguments: str, settings: Mapping[str, Any] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """One call as this user, with a state folder of its own, so that no earlier output is reused."""
        number = next(self.calls)
        state = FOLDER / "home" / user / f"hyce-{number}"
        file = self._settings(number, settings or {})
        folders = [f"XDG_{kind}_HOME={state}/{kind}" for kind in ("STATE", "DATA", "CACHE", "CONFIG")]
        return subprocess.run(
            [SCRIPTS / "as", user, sys.prefix, *folders, "-c", _START, *arguments, "--config", str(file)],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            cwd="/",
        )

    def run(
        self, user: str, entry_id: str, *params: str, settings: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """`hyce run ENTRY --json` as this user."""
        done = self.hyce(user, "run", entry_id, *params, "--json", settings=settings)
        assert done.stdout, done.stderr
        output: dict[str, Any] = json.loads(done.stdout)
        return output

    def _settings(self, number: int, settings: Mapping[str, Any]) -> Path:
        values = {"policy.slurm_conf": str(self.slurm_conf), "policy.rate_limit": 0} | dict(settings)
        file = FOLDER / f"hyce-{number}.toml"
        file.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items()))
        file.chmod(0o644)
        return file


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Started once, with its jobs, and ended with the session; one that was there before stays."""
    was_there = (FOLDER / "ready").exists()
    if not os.environ.get(MUST_RUN):
        if os.geteuid() != 0:
            pytest.skip("a Slurm cluster can be started by root only")
        if not all(map(shutil.which, ("slurmctld", "slurmdbd", "munged", "mariadbd"))):
            pytest.skip("Slurm is not installed: slurm-wlm slurmdbd munge mariadb-server")
    try:
        conf = Path(_script("up").strip())
        jobs = dict(line.split() for line in _script("jobs").splitlines())
        yield Cluster(conf, jobs)
    finally:
        if not was_there:
            subprocess.run([SCRIPTS / "down"], check=False)


def _script(name: str) -> str:
    done = subprocess.run([SCRIPTS / name], capture_output=True, text=True, check=False)
    if done.returncode:
        end = pytest.fail if os.environ.get(MUST_RUN) else pytest.skip
        end(f"tests/cluster/{name}: {done.stderr}")
    return done.stdout
