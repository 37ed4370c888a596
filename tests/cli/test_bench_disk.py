# SPDX-License-Identifier: Apache-2.0
"""husk bench disk, with programs that play fio, bonnie++, a kernel and QEMU: what it starts them with,
what it makes of what they say, and that nothing is left. How fast a disk is is not tested."""
import json
import os
import pathlib
import signal
import xml.etree.ElementTree

import husk
import pytest
from terminal import Terminal

ENGINES = ["sync", "threads", "mmap", "uring", "auto"]
PEER_WAYS = ["threads", "io_uring", "aio"]
# What fio says of a job: 2 MiB in half a second, with a quarter and an eighth of a processor.
FIO = """#!/usr/bin/python3
import configparser
import subprocess
import sys

assert sys.argv[1:] == ["--output-format=terse", "--terse-version=3", "jobs"]
jobs = configparser.ConfigParser(allow_no_value=True)
jobs.read("jobs")
for name in jobs.sections():
    if name == "global":
        continue
    subprocess.run(jobs[name]["exec_prerun"].replace("&& sleep 0.2", ""), shell=True, check=True)
    subprocess.run(jobs[name]["exec_postrun"].replace("&& sleep 0.2", ""), shell=True, check=True)
for name in jobs.sections():
    if name == "global":
        continue
    moved, nothing = ["2048", "4096", "1024", "500"] + ["0"] * 37, ["0"] * 41
    both = nothing + moved if "write" in jobs[name]["rw"] else moved + nothing
    print(";".join(["3", "fio-3.33", name, "0", "0"] + both + ["25.0%", "12.5%"]))
"""
BONNIE = """#!/bin/sh
echo "$@" >"$TMPDIR/../bonnie"
echo "1.98,2.00a,husk-bench,1,1,16M,,8192,5,,,2048,9,4096,9,,,+++++,+++,99,9,,,,,,,,,,,,,,,,,,,1ms,2us,,3us,4s"
"""
# Finds its orders on its disk, as a guest does, and has the same to say. Only QEMU's io_uring works.
PEER = """#!/bin/sh
case "$*" in *aio=io_uring*) ;; *) echo "no such aio" >&2; exit 1 ;; esac
echo "$@" >"$(dirname "$0")/peer-arguments"
disk=$(echo "$@" | sed 's/.*file=\\([^,]*\\),.*/\\1/')
directory=$(dirname "$disk")/guest
mkdir "$directory"
head -c 16384 "$disk" | tr -d '\\0' | sed "1s|/dev/vda /mnt|$disk $directory|" >"$directory/orders"
sh "$directory/orders" | sed 's/$/\\r/'
rm -r "$directory"
"""
SLEEPER = """#!/bin/sh
touch "$0.started"
exec sleep 1000
"""


def write_program(path, text):
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True)
def programs(tmp_path, monkeypatch):
    """fio and bonnie++, and where the bench puts its image: it must leave nothing."""
    (tmp_path / "bin").mkdir()
    write_program(tmp_path / "bin" / "fio", FIO)
    write_program(tmp_path / "bin" / "bonnie++", BONNIE)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin") + os.pathsep + os.environ["PATH"])
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    yield
    assert not list((tmp_path / "temporary").iterdir())


@pytest.fixture
def guest(tmp_path):
    """Not a kernel at all: husk refuses it."""
    directory = tmp_path / "guest"
    directory.mkdir()
    for name in ("vmlinuz", "initramfs"):
        (directory / name).write_text("no kernel")
    return directory


def bench(guest, *arguments):
    result = husk.run("bench", "disk", "--guest", guest, "--size", "16M", "--runs", "1", "--json",
                      *arguments)
    document = json.loads(result.stdout)
    assert (document["schema"], document["bench"], document["unit"]) == (1, "disk", None)
    return {(row["group"], row["program"], row["way"]): row for row in document["rows"]}


def test_the_host_is_measured_with_its_own_tools(tmp_path, guest):
    rows = bench(guest, "--only", "host")
    values = {(group, row["unit"]): row["median"] for (group, _, _), row in rows.items()}
    assert values == {
        ("block write", "MiB/s"): 2, ("block rewrite", "MiB/s"): 4, ("block read", "MiB/s"): None,
        ("random seeks", "/s"): 99, ("longest block write", "ms"): 1,
        ("longest block rewrite", "ms"): 0.002, ("longest block read", "ms"): 0.003,
        ("longest random seek", "ms"): 4000,
        ("1M read", "MiB/s"): 4, ("1M write", "MiB/s"): 4,
        ("4k random read", "/s"): 1024, ("4k random read, 32 deep", "/s"): 1024,
        ("4k random write", "/s"): 1024, ("4k random write, 32 deep", "/s"): 1024,
        ("4k random write and fsync", "us"): 976.562,
        ("exits: 1M read", "each"): None, ("exits: 1M write", "each"): None,
        ("exits: 4k read", "each"): None, ("exits: 4k read, 32 deep", "each"): None,
        ("exits: 4k write", "each"): None, ("exits: 4k write, 32 deep", "each"): None,
        ("exits: 4k write and fsync", "each"): None,
        ("CPU: 1M read", "us"): 93750, ("CPU: 1M write", "us"): 93750,
        ("CPU: 4k read", "us"): 366.211, ("CPU: 4k read, 32 deep", "us"): 366.211,
        ("CPU: 4k write", "us"): 366.211, ("CPU: 4k write, 32 deep", "us"): 366.211,
        ("CPU: 4k write and fsync", "us"): 366.211}
    assert "-s 16:8k -r 8 " in (tmp_path / "bonnie").read_text()


def test_a_guest_gets_its_orders_from_its_disk_and_is_compared(tmp_path, guest):
    peer = write_program(tmp_path / "peer", PEER)
    chart = tmp_path / "chart.svg"
    rows = bench(guest, "--peer", peer, "--svg", chart)
    assert [(program, way) for (group, program, way) in rows if group == "1M read"] == (
        [("host", "native")] + [("husk", engine) for engine in ENGINES] +
        [("peer", way) for way in PEER_WAYS])
    measured = rows["4k random read", "peer", "io_uring"]
    assert (measured["median"], measured["failure"]) == (1024, None)
    assert measured["ratios"]["native"] == 1
    assert rows["4k random read", "peer", "aio"]["failure"] == "ended with 1 before its end: no such aio"
    assert "cache=writeback,aio=io_uring" in (tmp_path / "peer-arguments").read_text()
    # What a run costs is taken from outside of it.
    assert rows["CPU: 4k read", "peer", "io_uring"]["median"] is not None
    xml.etree.ElementTree.parse(chart)


def test_an_engine_that_cannot_be_measured_says_why(guest):
    rows = bench(guest, "--engine", "mmap,nonsense", "--only", "husk")
    assert {way for (_, _, way) in rows} == {"mmap", "nonsense"}
    for row in rows.values():
        assert row["samples"] == []
        assert row["failure"].startswith("ended with ")
    assert "engine 'nonsense' is unknown" in rows["1M read", "husk", "nonsense"]["failure"]


def test_missing_tools_are_told(tmp_path, guest):
    write_program(tmp_path / "bin" / "fio", "#!/bin/sh\necho fio: no such engine >&2\nexit 1\n")
    rows = bench(guest, "--only", "host")
    assert rows["1M read", "host", "native"]["failure"] == (
        "ended with 1 before its end, having said 'husk-bench failed: fio': fio: no such engine")


def test_a_guest_that_is_not_there_is_told_with_what_makes_one(tmp_path):
    result = husk.run("bench", "disk", "--guest", tmp_path / "nothing")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == (
        f"husk: no guest to measure disks in, vmlinuz and initramfs in {tmp_path}/nothing: "
        "tools/make-disk-bench-guest DIRECTORY makes one of Debian's kernel, fio and bonnie++, "
        "--guest DIRECTORY names it\n")


@pytest.mark.parametrize("size", ["15M", "65G", "0"])
def test_sizes_have_limits(size):
    result = husk.run("bench", "disk", "--size", size)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == f"husk: --size '{size}': must be 16M to 64G\n"


def test_other_benches_take_no_engines():
    result = husk.run("bench", "multiboot", "--engine", "mmap")
    assert (result.returncode, result.stderr) == (2, "husk: bench multiboot takes no --engine\n")


def test_ctrl_c_ends_the_tools_and_removes_the_image(tmp_path, guest):
    fio = write_program(tmp_path / "bin" / "fio", SLEEPER)
    terminal = Terminal("bench", "disk", "--guest", guest, "--size", "16M", "--only", "host")
    terminal.expect(b"\r\x1b[K1/")
    started = pathlib.Path(f"{fio}.started")
    while not started.exists():
        os.sched_yield()
    terminal.process.send_signal(signal.SIGINT)
    terminal.expect(b"interrupted before all of 2 runs")
    assert terminal.end() == 128 + signal.SIGINT
