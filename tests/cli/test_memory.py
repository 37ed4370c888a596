# SPDX-License-Identifier: Apache-2.0
"""What instances cost and share: the reason to map rather than copy."""
import pathlib
import subprocess

import husk
import kernels
import pytest
from assembly import READY_THEN_IDLE

KERNEL_BYTES = 8 << 20
# Reads one byte of every page of the kernel, says R, and sleeps.
TOUCH_ALL = f"""
    mov ${kernels.LOAD_ADDRESS:#x}, %ebx
1:  mov (%ebx), %al
    add $4096, %ebx
    cmp ${kernels.LOAD_ADDRESS + KERNEL_BYTES:#x}, %ebx
    jb 1b
    putc 'R'
2:  hlt
    jmp 2b
"""


class Instances:
    def __init__(self, count, *arguments):
        self.processes = [
            subprocess.Popen([husk.HUSK, "run", *map(str, arguments)], stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, text=True) for _ in range(count)]

    def __enter__(self):
        for process in self.processes:
            assert process.stdout.read(1) == "R"
        return self.processes

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait(timeout=30)
            process.stdout.close()


def rollup_kib(process):
    """The fields of smaps_rollup, in KiB."""
    lines = pathlib.Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines()[1:]
    return {name.rstrip(":"): int(value) for name, value, *_ in map(str.split, lines)}


@husk.needs_accelerator
def test_instances_share_the_pages_of_their_kernel_file(tmp_path):
    kernel = kernels.pvh_kernel(tmp_path, TOUCH_ALL, size=KERNEL_BYTES)
    with Instances(8, "-k", kernel, "-m", "64") as processes:
        for process in processes:
            memory = rollup_kib(process)
            own = memory["Private_Clean"] + memory["Private_Dirty"]
            shared = memory["Shared_Clean"] + memory["Shared_Dirty"]  # dirty: not yet on disk
            assert shared >= KERNEL_BYTES >> 10
            assert own < KERNEL_BYTES >> 10
            # The kernel is resident in all, but each pays for an eighth of it.
            assert memory["Pss"] - own < (KERNEL_BYTES >> 10) / 2


@husk.needs_accelerator
def test_copied_kernel_is_private(tmp_path):
    kernel = kernels.pvh_kernel(tmp_path, TOUCH_ALL, size=KERNEL_BYTES)
    with Instances(1, "-k", kernel, "-m", "64", "--images", "copy") as (process,):
        assert rollup_kib(process)["Private_Dirty"] >= KERNEL_BYTES >> 10


@husk.needs_accelerator
@pytest.mark.parametrize("count", [1, 2, 8])
def test_monitor_itself_is_under_3_mb_private(tmp_path, count):
    image = husk.firmware(tmp_path, READY_THEN_IDLE)
    with Instances(count, "--firmware", image, "-m", "64") as processes:
        for process in processes:
            memory = rollup_kib(process)
            assert memory["Private_Clean"] + memory["Private_Dirty"] < 3 << 10


def map_flags(process, at_least_kib):
    """VmFlags of the anonymous mappings of at least that size."""
    flags, size = [], 0
    for line in pathlib.Path(f"/proc/{process.pid}/smaps").read_text().splitlines():
        if line.startswith("Size:"):
            size = int(line.split()[1])
        elif line.startswith("VmFlags:") and size >= at_least_kib:
            flags.append(line.split()[1:])
    return flags


@husk.needs_accelerator
@pytest.mark.parametrize("options, mergeable", [([], False), (["--ksm"], True)])
def test_ksm_advice_is_given_only_when_asked_for(tmp_path, options, mergeable):
    image = husk.firmware(tmp_path, READY_THEN_IDLE)
    with Instances(1, "--firmware", image, "-m", "64", *options) as (process,):
        assert any("mg" in flags for flags in map_flags(process, 60 << 10)) == mergeable


def free_huge_pages():
    path = pathlib.Path("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages")
    return int(path.read_text()) if path.exists() else 0


def test_huge_pages_that_do_not_exist_are_an_early_error_with_counts(tmp_path):
    if free_huge_pages() >= 32:
        pytest.skip("this host has free huge pages")
    if husk.missing_accelerator() is not None:
        pytest.skip(f"no accelerator: {husk.missing_accelerator()}")
    image = husk.firmware(tmp_path, "    putc 'R'\n    end\n")
    result = husk.run("run", "--firmware", image, "-m", "64", "--huge-pages")
    assert (result.returncode, result.stdout) == (1, "")
    assert "32" in result.stderr and f"{free_huge_pages()}" in result.stderr
