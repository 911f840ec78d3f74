"""What a machine or a container lets a run use, asked of made-up control groups and environments."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fanfold.driver import machine
from fanfold.driver.machine import (
    VISIBLE,
    listed_gpus,
    named_gpus,
    this_machine,
    usable_bytes,
    usable_cores,
    visible_gpus,
)


def test_a_quota_of_cores_counts_in_whole_ones(tmp_path: Path) -> None:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert usable_cores(tmp_path) == cores  # no control group says anything
    for text, expected in (("max 100000", cores), ("100000 100000", 1), ("50000 100000", 1)):
        (tmp_path / "cpu.max").write_text(text + "\n")
        assert usable_cores(tmp_path) == expected
    (tmp_path / "cpu.max").unlink()
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu/cpu.cfs_period_us").write_text("100000")
    for quota, expected in (("-1", cores), ("100000", 1)):
        (tmp_path / "cpu/cpu.cfs_quota_us").write_text(quota)
        assert usable_cores(tmp_path) == expected


def test_a_control_groups_memory_is_all_there_is(tmp_path: Path) -> None:
    whole = usable_bytes(tmp_path)
    assert whole is not None
    (tmp_path / "memory.max").write_text("max\n")
    assert usable_bytes(tmp_path) == whole
    (tmp_path / "memory.max").write_text("1000000\n")
    assert usable_bytes(tmp_path) == 1_000_000
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory/memory.limit_in_bytes").write_text("500000\n")
    assert usable_bytes(tmp_path) == 500_000


@pytest.mark.parametrize(
    ("named", "gpus"),
    [
        ("", ()),
        ("-1", ()),
        ("NoDevFiles", ()),
        ("3", ("3",)),
        (" 1 , 0 ", ("1", "0")),
        ("0,0,1", ("0", "1")),
        ("0,-1,1", ("0",)),
        ("0,all", ("0",)),
        ("GPU-8f1c,MIG-07aa", ("GPU-8f1c", "MIG-07aa")),
    ],
)
def test_the_environment_names_gpus_as_cuda_reads_it(
    named: str, gpus: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VISIBLE, named)
    assert named_gpus(named) == visible_gpus() == this_machine().ask_gpus() == gpus


def test_without_it_the_drivers_tool_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VISIBLE, raising=False)
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\nprintf 'GPU 0: A (UUID: GPU-a)\\nGPU 1: A (UUID: GPU-b)\\n'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert visible_gpus() == ("0", "1")
    tool.write_text("#!/bin/sh\nexit 9\n")
    names = {"/dev": ["null", "nvidia0", "nvidia2", "nvidiactl"], "/proc/driver/nvidia/gpus": ["a"]}
    monkeypatch.setattr(machine, "_names", names.__getitem__)
    assert visible_gpus() == ("0", "1")  # as CUDA counts them
    names["/dev"] = []
    assert visible_gpus() == ("0",)
    names["/proc/driver/nvidia/gpus"] = []
    assert visible_gpus() == ()


def test_slices_of_a_gpu_are_known_by_their_uuids() -> None:
    listing = (
        "GPU 0: NVIDIA H100 (UUID: GPU-a)\n"
        "  MIG 3g.40gb     Device  0: (UUID: MIG-one)\n"
        "  MIG 3g.40gb     Device  1: (UUID: MIG-two)\n"
        "GPU 1: NVIDIA H100 (UUID: GPU-b)\n"
    )
    assert listed_gpus(listing) == ("MIG-one", "MIG-two")
    assert listed_gpus("No devices found.\n") == ()
