"""What a machine has is read from its files, below a made-up root."""

from __future__ import annotations

from pathlib import Path

import pytest

from hyce.surroundings import Surroundings, look_around

NOTHING = Surroundings(scheduler="none", cluster="", modules="", lustre=(), gpus=False)


def program(root: Path, path: str, mode: int = 0o755) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("#!/bin/sh\nexit 1\n")
    file.chmod(mode)


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def test_an_empty_machine_has_nothing(tmp_path: Path) -> None:
    assert look_around(tmp_path) == NOTHING
    assert look_around(tmp_path / "missing") == NOTHING


@pytest.mark.parametrize(
    ("path", "scheduler"),
    [
        ("usr/bin/squeue", "slurm"),
        ("usr/local/bin/squeue", "slurm"),
        ("opt/slurm/bin/squeue", "slurm"),
        ("opt/slurm/current/bin/squeue", "slurm"),
        ("usr/bin/qstat", "pbs"),
        ("opt/pbs/bin/qstat", "pbs"),
        ("opt/pbs/default/bin/qstat", "pbs"),
        ("home/me/bin/squeue", "none"),
    ],
)
def test_the_batch_system_is_found_by_its_program(tmp_path: Path, path: str, scheduler: str) -> None:
    program(tmp_path, path)
    assert look_around(tmp_path).scheduler == scheduler


def test_slurm_goes_before_pbs_whose_qstat_it_may_bring_along(tmp_path: Path) -> None:
    program(tmp_path, "usr/bin/squeue")
    program(tmp_path, "usr/bin/qstat")
    assert look_around(tmp_path).scheduler == "slurm"


def test_what_can_not_be_executed_is_no_program(tmp_path: Path) -> None:
    program(tmp_path, "usr/bin/squeue", mode=0o644)
    (tmp_path / "usr/bin/qstat").mkdir()
    assert look_around(tmp_path).scheduler == "none"


@pytest.mark.parametrize(
    ("text", "cluster"),
    [
        ("ClusterName=merlin\nSlurmctldHost=m1\n", "merlin"),
        ("# ClusterName=old\n  clustername = osprey-2.x \n", "osprey-2.x"),
        ("SlurmctldHost=m1\n#ClusterName=merlin\n", ""),
        ("ClusterName=\n", ""),
    ],
)
def test_the_clusters_name_is_slurms(tmp_path: Path, text: str, cluster: str) -> None:
    write(tmp_path, "etc/slurm/slurm.conf", text)
    assert look_around(tmp_path).cluster == cluster


def test_the_clusters_name_is_looked_for_in_debians_place_too(tmp_path: Path) -> None:
    (tmp_path / "etc/slurm/slurm.conf").mkdir(parents=True)
    (tmp_path / "etc/slurm-llnl").mkdir()
    (tmp_path / "etc/slurm-llnl/slurm.conf").write_bytes(b"# caf\xe9\nClusterName=kestrel\n")
    assert look_around(tmp_path).cluster == "kestrel"


@pytest.mark.parametrize(
    ("path", "modules"),
    [
        ("usr/share/lmod", "lmod"),
        ("opt/apps/lmod", "lmod"),
        ("usr/share/modules/init", "environment-modules"),
        ("usr/share/other", ""),
    ],
)
def test_the_module_system_is_found_by_its_folder(tmp_path: Path, path: str, modules: str) -> None:
    (tmp_path / path).mkdir(parents=True)
    assert look_around(tmp_path).modules == modules


def test_lustre_file_systems_are_found_among_the_mounts(tmp_path: Path) -> None:
    mounts = (
        "proc /proc proc rw 0 0\n"
        "10.0.0.1@o2ib:/scratch /scratch lustre rw,flock 0 0\n"
        "server:/lustre /home nfs4 rw 0 0\n"
        "broken\n\n"
        "10.0.0.2@o2ib:/work /work lustre ro 0 0\n"
    )
    write(tmp_path, "proc/mounts", mounts)
    assert look_around(tmp_path).lustre == ("/scratch", "/work")


@pytest.mark.parametrize(("device", "gpus"), [("nvidia0", True), ("nvidiactl", False), ("null", False)])
def test_gpus_are_found_by_their_devices(tmp_path: Path, device: str, gpus: bool) -> None:
    write(tmp_path, f"dev/{device}", "")
    assert look_around(tmp_path).gpus is gpus


def test_this_machine_can_be_looked_at() -> None:
    assert look_around().scheduler in ("slurm", "pbs", "none")
