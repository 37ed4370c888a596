# SPDX-License-Identifier: Apache-2.0
"""husk bench boot: each way of starting is marked where it says something. How long that takes is
not tested."""
import json
import os
import pathlib
import xml.etree.ElementTree

import husk
import pytest
import stock

BUILD = pathlib.Path(os.environ.get("HUSK_BUILD", husk.ROOT / "build"))
INITRAMFS = BUILD / "bench" / "cpu-programs.cpio"
MARKS = ["init_end", "start_kernel", "start_user", "processor time", "USS"]
ROOTS = BUILD / "boot-bench"

# Plays QEMU, and tells with which machine and kernel it was started.
PEER = """#!/usr/bin/python3
import pathlib
import sys
import time

arguments = dict(zip(sys.argv[1::2], sys.argv[2::2]))
kernel = pathlib.Path(arguments["-kernel"])
with open(pathlib.Path(__file__).parent / "log", "a") as log:
    print(arguments["-M"], kernel.suffix, kernel.read_bytes()[:4] == b"\\x7fELF", file=log)
if arguments["-M"].startswith("microvm"):
    sys.exit("peer: no machine microvm")
print("vm_state_notify running 1 reason 9 (running)", file=sys.stderr, flush=True)
print("Linux", flush=True)
print("husk-bench ready", flush=True)
time.sleep(1000)
"""

pytestmark = pytest.mark.skipif(
    not INITRAMFS.exists(), reason=f"no {INITRAMFS}: a build with fuzzers has none")


@pytest.fixture(autouse=True)
def temporary_files(tmp_path, monkeypatch):
    """Where the bench keeps its caches; it must leave nothing."""
    directory = tmp_path / "temporary"
    directory.mkdir()
    monkeypatch.setenv("TMPDIR", str(directory))
    yield
    assert not list(directory.iterdir())


def bench(*arguments):
    result = husk.run("bench", "boot", "--json", "--kernel", stock.CLOUD, *arguments, timeout=600)
    assert (result.returncode, result.stderr) == (0, "")
    document = json.loads(result.stdout)
    assert (document["schema"], document["bench"], document["unit"]) == (1, "boot", None)
    assert document["means"] == []
    return document["rows"]


@stock.needs(stock.CLOUD)
def test_stock_kernel_is_started_from_the_warm_cache_and_every_mark_comes_in_order(tmp_path):
    chart = tmp_path / "chart.svg"
    rows = bench("--runs", "1", "--only", "vmlinuz, warm cache", "--svg", chart)
    assert [(row["group"], row["way"]) for row in rows] == [(mark, way) for mark in MARKS
                                                            for way in ("map", "copy")]
    assert {row["set"] for row in rows} == {"vmlinuz, warm cache"}
    assert [row["failure"] for row in rows] == [None] * len(rows)
    for way in ("map", "copy"):
        init_end, start_kernel, start_user, processor, uss = (row["median"] for row in rows
                                                              if row["way"] == way)
        assert 0 < init_end < start_kernel < start_user
        assert processor > 0 and uss > 0
    xml.etree.ElementTree.parse(chart)


@stock.needs(stock.CLOUD)
def test_peer_gets_the_same_kernels_and_is_tried_twice(tmp_path):
    peer = tmp_path / "peer"
    peer.write_text(PEER)
    peer.chmod(0o755)
    rows = bench("--runs", "3", "--peer", peer, "--only", ", peer ")
    for row in rows:
        if row["set"].startswith("64 MiB root"):
            continue
        assert (row["program"], row["accel"], row["peer"]) == ("peer", "tcg", True)
        if row["way"] == "q35":
            assert (len(row["samples"]), row["failure"]) == (3, None)
        else:
            assert (row["samples"], row["failure"]) == (
                [], "ended with 1 before its line of user space: peer: no machine microvm")
    log = (tmp_path / "log").read_text().splitlines()
    if ROOTS.exists():
        pytest.skip(f"{ROOTS} is there, which the peer is started with, too")
    started = [f"{machine} {kernel}" for kernel in (".elf True", " False", " False")
               for machine in ("q35", "microvm,acpi=off")]
    assert log == started * 2 + [line for line in started if line.startswith("q35")]


@stock.needs(stock.CLOUD)
@pytest.mark.skipif(ROOTS.exists(), reason=f"{ROOTS} is there")
def test_roots_that_are_not_made_are_told_with_what_makes_them():
    result = husk.run("bench", "boot", "--json", "--kernel", stock.CLOUD, "--runs", "1", "--only",
                      "64 MiB root")
    assert (result.returncode, result.stderr) == (1, "")
    rows = json.loads(result.stdout)["rows"]
    assert {row["set"] for row in rows} == {"64 MiB root, initrd", "64 MiB root, pmem"}
    assert {row["failure"] for row in rows} == {
        "no root file system to start from in build/boot-bench: tools/make-boot-bench-guest "
        "makes one"}


def test_kernel_that_cannot_be_unpacked_is_told(tmp_path):
    kernel = tmp_path / "no-kernel"
    kernel.write_bytes(b"no kernel\n" * 1000)
    result = husk.run("bench", "boot", "--kernel", kernel)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith(f"husk: unpacking {kernel}: ended with 1 before its line: "
                                    f"husk: kernel {kernel}: ")


def test_kernel_that_is_not_there_is_told():
    result = husk.run("bench", "boot", "--kernel", "/no/such/kernel")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == "husk: --kernel /no/such/kernel: No such file or directory\n"
