# SPDX-License-Identifier: Apache-2.0
"""husk bench: its rows are there and are what they say. How long they take is not tested."""
import json
import os
import pathlib
import signal
import subprocess
import xml.etree.ElementTree

import husk
import pytest
from terminal import Terminal

GROUPS = ["195 KiB kernel", "2 MiB kernel", "8 MiB kernel", "195 KiB kernel, 32 MiB module"]
# Of what is loaded: a kernel's first page is its ELF header's.
SIZES = [191 << 10, (2 << 20) - 4096, (8 << 20) - 4096, (32 << 20) + (191 << 10)]
HUSK_WAYS = ["placed", "firmware dma", "firmware port"]
PEER_WAYS = ["q35 dma", "q35 port", "microvm"]

# Plays QEMU: says what the kernel would say, from its files. As QEMU it has no machine "microvm".
PEER = """#!/usr/bin/python3
import struct
import sys
import time

arguments = dict(zip(sys.argv[1::2], sys.argv[2::2]))
if arguments["-M"] == "microvm":
    sys.exit("peer: no machine microvm")


def sum_of(path, start):
    data = open(path, "rb").read()[start:]
    return sum(struct.unpack("<1024I", data[:4096]) + struct.unpack("<1024I", data[-4096:]))


total = sum_of(arguments["-kernel"], 4096)
if "-initrd" in arguments:
    total += sum_of(arguments["-initrd"], 0)
print(f"husk-bench {total & 0xffffffff:08x}", flush=True)
"""
SLEEPER = """#!/bin/sh
echo $$ >>"$(dirname "$0")/pids"
exec sleep 1000
"""


@pytest.fixture(autouse=True)
def temporary_files(tmp_path, monkeypatch):
    """Where the bench puts its kernels; it must leave nothing."""
    directory = tmp_path / "temporary"
    directory.mkdir()
    monkeypatch.setenv("TMPDIR", str(directory))
    yield
    assert not list(directory.iterdir())


def make_program(tmp_path, text):
    program = tmp_path / "peer"
    program.write_text(text)
    program.chmod(0o755)
    return program


def bench(*arguments):
    """The document that `husk bench multiboot --json` prints."""
    result = husk.run("bench", "multiboot", "--json", "--accel", "soft", *arguments, timeout=600)
    assert (result.returncode, result.stderr) == (0, "")
    document = json.loads(result.stdout)
    assert (document["schema"], document["bench"], document["unit"]) == (1, "multiboot", "ms")
    return document


def name(row):
    return f"{row['group']}, {row['program']} {row['way']}, {row['accel']}"


def test_every_kernel_is_placed_whole_without_a_byte_through_fw_cfg():
    rows = bench("--runs", "2", "--only", "placed")["rows"]
    assert [name(row) for row in rows] == [f"{group}, husk placed, soft" for group in GROUPS]
    for row in rows:
        assert (row["failure"], len(row["samples"]), row["peer"]) == (None, 2, False)
        assert min(row["samples"]) <= row["median"] <= max(row["samples"])
        assert row["counters"]["fw_cfg_port_bytes"] == row["counters"]["fw_cfg_dma_bytes"] == 0
    # One access a byte and one look at the line status each, and the exit.
    assert {row["counters"]["port_exits"] for row in rows} == {2 * len("husk-bench 01234567\n") + 1}


def test_firmware_fetches_every_byte_by_dma_or_by_port():
    rows = bench("--runs", "1")["rows"]
    assert [name(row) for row in rows] == [
        f"{group}, husk {way}, soft" for group in GROUPS for way in HUSK_WAYS]
    if "SeaBIOS" in (rows[1]["failure"] or ""):
        pytest.skip(rows[1]["failure"])
    assert [row["failure"] for row in rows] == [None] * len(rows)
    for group, size in zip(GROUPS, SIZES):
        placed, dma, port = (row["counters"] for row in rows if row["group"] == group)
        assert placed["fw_cfg_dma_bytes"] == placed["fw_cfg_port_bytes"] == 0
        assert dma["fw_cfg_dma_bytes"] > size > dma["fw_cfg_port_bytes"]
        assert port["fw_cfg_port_bytes"] > size > port["fw_cfg_dma_bytes"] == 0


def test_peer_is_run_for_the_same_kernels_and_compared(tmp_path):
    peer = make_program(tmp_path, PEER)
    chart = tmp_path / "chart.svg"
    rows = bench("--runs", "2", "--peer", peer, "--only", "peer", "--svg", chart)["rows"]
    assert [name(row) for row in rows] == [f"{group}, peer {way}, tcg"
                                           for group in GROUPS for way in PEER_WAYS]
    for row in rows:
        assert (row["peer"], row["beside"], row["counters"]) == (True, "soft", None)
        if row["way"] == "microvm":
            assert row["failure"] == "ended with 1 before its line: peer: no machine microvm"
            assert (row["samples"], row["median"]) == ([], None)
            continue
        assert (row["failure"], len(row["samples"])) == (None, 2)
        assert row["ratios"][row["way"]] == 1
        assert row["ratios"]["microvm"] is None
    xml.etree.ElementTree.parse(chart)


def test_ratio_says_how_many_times_as_long_the_peer_took(tmp_path):
    peer = make_program(tmp_path, PEER)
    rows = bench("--runs", "1", "--peer", peer, "--only", "2 MiB kernel, ")["rows"]
    placed, q35 = (next(row for row in rows if row["way"] == way) for way in ("placed", "q35 dma"))
    assert placed["ratios"]["q35 dma"] == pytest.approx(q35["median"] / placed["median"], rel=1e-4)


def test_a_kernel_that_is_not_whole_does_not_count(tmp_path):
    peer = make_program(tmp_path, "#!/bin/sh\necho husk-bench 00000000\n")
    result = husk.run("bench", "multiboot", "--runs", "1", "--accel", "soft", "--peer", peer,
                      "--only", "2 MiB kernel, peer microvm")
    assert result.returncode == 1  # nothing measured
    assert "ended with 0 before its line, having said 'husk-bench 00000000'\n" in result.stdout


def is_running(pid):
    try:
        return " Z " not in pathlib.Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False


def test_ctrl_c_ends_the_child_shows_results_and_leaves_the_terminal_as_it_was(tmp_path):
    peer = make_program(tmp_path, SLEEPER)
    terminal = Terminal("bench", "multiboot", "--accel", "soft", "--peer", peer, "--only", "2 MiB kernel")
    terminal.expect(b"\r\x1b[K1/60 2 MiB kernel, husk placed, soft")
    terminal.expect(b"\r\x1b[K4/60 2 MiB kernel, peer q35 dma, tcg")
    pids = tmp_path / "pids"
    while not pids.exists() or not pids.read_text().endswith("\n"):
        os.sched_yield()
    terminal.process.send_signal(signal.SIGINT)
    terminal.expect(b"\r\x1b[K")
    terminal.expect(b"husk placed                      soft     1 ")
    terminal.expect(b"peer q35 dma                     tcg      0  not measured")
    terminal.expect(b"interrupted before all of 10 runs")
    assert terminal.end() == 128 + signal.SIGINT
    assert not is_running(int(pids.read_text()))


def test_children_end_with_a_bench_that_is_killed(tmp_path):
    peer = make_program(tmp_path, SLEEPER)
    pids = tmp_path / "pids"
    with subprocess.Popen([husk.HUSK, "bench", "multiboot", "--accel", "soft", "--peer", peer,
                           "--only", "2 MiB kernel, peer q35 dma"],
                          stdout=subprocess.DEVNULL) as process:
        while not pids.exists() or not pids.read_text().endswith("\n"):
            assert process.poll() is None
        process.kill()
    while is_running(int(pids.read_text())):
        os.sched_yield()
    # Killed itself, it could not clean up.
    for left in pathlib.Path(os.environ["TMPDIR"]).glob("husk-bench-*"):
        subprocess.run(["rm", "-r", left], check=True)


def test_help_names_the_benches_and_options():
    result = husk.run("help", "bench")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == husk.run("bench", "--help").stdout
    assert result.stdout == husk.run("bench", "multiboot", "--help").stdout
    for word in ("multiboot", "--peer", "--runs", "--accel", "--only", "--svg", "--json"):
        assert word in result.stdout


def test_name_that_no_row_has_is_told():
    result = husk.run("bench", "multiboot", "--only", "64 MiB kernel")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == ("husk: --only '64 MiB kernel': nothing to be measured has this in its "
                             "name; without it, all names are shown\n")


def test_unknown_bench_is_a_usage_error():
    result = husk.run("bench", "tape")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "husk: unknown bench 'tape'; there is: multiboot, cpu, disk, boot, memory\n"
