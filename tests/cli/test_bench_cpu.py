# SPDX-License-Identifier: Apache-2.0
"""husk bench cpu: programs are run by the host, in husk's guest and in the peer's, and compared.
How long they take is not tested."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import xml.etree.ElementTree

import husk
import pytest
import stock
from terminal import Terminal

BUILD = pathlib.Path(os.environ.get("HUSK_BUILD", husk.ROOT / "build"))
PROGRAMS = BUILD / "bench" / "cpu-programs"

# Plays QEMU: its guest has done the quickest of programs, in whatever time it says.
PEER = """#!/usr/bin/python3
import sys

print("husk-bench ready", flush=True)
for line in sys.stdin:
    name = line.split()[0]
    print(f"husk-bench {{name}} starts", flush=True)
    print(f"husk-bench {{name}} {answer} 1000000", flush=True)
"""

pytestmark = pytest.mark.skipif(
    not PROGRAMS.exists(), reason=f"no {PROGRAMS}: a build with fuzzers has none")


@pytest.fixture
def no_kernel(tmp_path):
    """For runs in which husk's own rows are not wanted: they fail at once."""
    path = tmp_path / "no-kernel"
    path.write_bytes(b"no kernel\n")
    return path


def make_peer(tmp_path, text):
    program = tmp_path / "peer"
    program.write_text(text)
    program.chmod(0o755)
    return program


def bench(*arguments, returncode=0):
    result = husk.run("bench", "cpu", "--json", "--runs", "1", *arguments, timeout=600)
    assert (result.returncode, result.stderr) == (returncode, "")
    document = json.loads(result.stdout)
    assert (document["schema"], document["bench"], document["unit"]) == (1, "cpu", "ms")
    return document


def checksum_of(name):
    """What the program computes here, as its own executable tells it."""
    text = subprocess.run([PROGRAMS], input=f"{name}\n", capture_output=True, text=True,
                               check=True).stdout
    return text.splitlines()[-1].split()[-2]


def rows_by_program(document):
    return {row["program"]: row for row in document["rows"]}


@stock.needs(stock.CLOUD)
def test_program_runs_natively_and_in_a_guest_and_computes_the_same(tmp_path):
    chart = tmp_path / "chart.svg"
    document = bench("--kernel", stock.CLOUD, "--programs", "atomics", "--svg", chart)
    native, guest = document["rows"]
    assert [native["failure"], guest["failure"]] == [None, None]
    assert (native["program"], native["way"], native["peer"]) == ("host", "native", True)
    assert (guest["program"], guest["way"], guest["accel"]) == ("husk", "", "soft")
    assert {row["set"] for row in document["rows"]} == {"memory"}
    ratio = native["median"] / guest["median"]
    assert guest["ratios"] == {"native": pytest.approx(ratio, rel=1e-4)}
    assert document["means"][1]["ratios"] == {"native": pytest.approx(ratio, rel=1e-4)}
    xml.etree.ElementTree.parse(chart)


def test_every_program_of_the_list_is_in_a_set():
    listed = subprocess.run([PROGRAMS, "--list"], capture_output=True, text=True,
                                 check=True).stdout.splitlines()
    assert listed.pop() == "husk-bench end"
    sets = {line.split(maxsplit=1)[1] for line in listed}
    assert sets == {"integer", "floating point", "strings", "memory", "system"}
    assert len({line.split()[0] for line in listed}) == len(listed)


def test_peer_that_computes_the_same_is_compared(tmp_path, no_kernel):
    peer = make_peer(tmp_path, PEER.format(answer=f"2000000 {checksum_of('calls')}"))
    document = bench("--kernel", no_kernel, "--programs", "calls", "--peer", peer)
    rows = rows_by_program(document)
    assert (rows["peer"]["samples"], rows["peer"]["accel"]) == ([2.0], "tcg")
    assert rows["peer"]["ratios"]["native"] == pytest.approx(rows["host"]["median"] / 2, rel=1e-4)


def test_processor_time_is_that_of_the_host(tmp_path, no_kernel):
    peer = make_peer(tmp_path, PEER.format(answer=f"2000000 {checksum_of('calls')}"))
    document = bench("--kernel", no_kernel, "--programs", "calls", "--peer", peer, "--time", "processor")
    assert document["measure"] == "time of the host's processors that programs take, in ms"
    rows = rows_by_program(document)
    assert 0 <= rows["peer"]["median"] < rows["host"]["median"]  # it has computed nothing


def test_another_checksum_is_a_failure(tmp_path, no_kernel):
    peer = make_peer(tmp_path, PEER.format(answer="2000000 00000000000000aa"))
    row = rows_by_program(bench("--kernel", no_kernel, "--programs", "calls", "--peer", peer))["peer"]
    assert row["samples"] == []
    assert row["failure"] == ("computed 00000000000000aa, natively it is "
                              f"{checksum_of('calls')}")


def test_clock_that_goes_wrong_is_a_failure(tmp_path, no_kernel):
    peer = make_peer(tmp_path, PEER.format(answer=f"9000000000 {checksum_of('calls')}"))
    row = rows_by_program(bench("--kernel", no_kernel, "--programs", "calls", "--peer", peer))["peer"]
    assert row["samples"] == []
    assert row["failure"].startswith("took 9000.0 ms by its own clock, ")


def test_program_that_fails_in_the_guest_is_told(tmp_path, no_kernel):
    peer = make_peer(tmp_path, PEER.format(answer="failed: signal"))
    row = rows_by_program(bench("--kernel", no_kernel, "--programs", "calls", "--peer", peer))["peer"]
    assert row["failure"] == "failed: signal 1000000"


def test_guest_that_does_not_come_up_is_tried_once_and_quoted(tmp_path, no_kernel):
    log = tmp_path / "starts"
    peer = make_peer(tmp_path, f"#!/bin/sh\necho start >>{log}\necho no such CPU >&2\nexit 1\n")
    rows = bench("--kernel", no_kernel, "--programs", "calls,atomics", "--peer", peer)["rows"]
    told = {row["failure"] for row in rows if row["program"] == "peer"}
    assert told == {"ended with 1 before its answer: no such CPU"}
    assert log.read_text() == "start\n"
    own = {row["failure"] for row in rows if row["program"] == "husk"}
    assert len(own) == 1 and own.pop().startswith("ended with 1 before its answer: husk: kernel ")


def test_tiers_are_columns_and_options_of_the_accelerator(no_kernel):
    result = husk.run("bench", "cpu", "--kernel", no_kernel, "--programs", "calls", "--tier", "no,none",
                      "--runs", "1")
    assert result.returncode == 0  # the host's row
    assert "\n  calls " in result.stdout
    for tier in ("no", "none"):
        assert f"\ninteger, calls, husk {tier}, soft: " in result.stdout
        assert f"soft,tier={tier}" in result.stdout


@stock.needs(stock.CLOUD)
def test_programs_run_together_are_rows_of_their_own():
    document = bench("--kernel", stock.CLOUD, "--programs", "atomics,spawn", "--together", "2")
    assert [(row["program"], row["way"], row["failure"], len(row["samples"]))
            for row in document["rows"]] == [
        ("host", "native", None, 1), ("host", "native 2 at once", None, 1),
        ("husk", "", None, 1), ("husk", "2 at once", None, 1)] * 2


def test_time_of_programs_run_together_is_shared_among_them(tmp_path, no_kernel):
    peer = make_peer(tmp_path, PEER.format(answer=f"3000000 {checksum_of('calls')}"))
    rows = bench("--kernel", no_kernel, "--programs", "calls", "--peer", peer, "--together", "3")["rows"]
    assert [(row["way"], row["samples"]) for row in rows if row["program"] == "peer"] == [
        ("q35", [3.0]), ("q35 3 at once", [1.0])]


def test_processes_run_together_give_one_answer():
    lines = subprocess.run([PROGRAMS], input="atomics 3\natomics\nend\n", capture_output=True,
                           text=True, check=True).stdout.splitlines()
    together, alone = (line.split() for line in lines if line.count(" ") == 4)
    assert together[3] == alone[3]  # what they have computed


def test_ctrl_c_ends_the_guests_and_shows_what_there_is(tmp_path, no_kernel):
    peer = make_peer(tmp_path, "#!/bin/sh\nexec sleep 1000\n")
    terminal = Terminal("bench", "cpu", "--kernel", no_kernel, "--programs", "calls", "--peer", peer)
    terminal.expect(b"\r\x1b[K1/30 integer, calls, host native, none")
    terminal.expect(b"\r\x1b[K3/30 integer, calls, peer q35, tcg")
    terminal.process.send_signal(signal.SIGINT)
    terminal.expect(b"\r\x1b[K")
    terminal.expect(b"  calls ")
    terminal.expect(b"interrupted before all of 10 runs")
    assert terminal.end() == 128 + signal.SIGINT


def test_unknown_program_is_told_with_those_that_there_are(no_kernel):
    result = husk.run("bench", "cpu", "--kernel", no_kernel, "--programs", "calls,cals")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("husk: --programs: there is no program 'cals'; there is: "
                                    "multiply, digest, ")


def test_kernel_that_is_not_there_is_told():
    result = husk.run("bench", "cpu", "--kernel", "/no/such/kernel")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == "husk: --kernel /no/such/kernel: No such file or directory\n"


def test_programs_that_are_not_built_are_told_with_where_they_were_looked_for(tmp_path):
    directory = tmp_path / "src"
    directory.mkdir()
    result = subprocess.run([shutil.copy(husk.HUSK, directory), "bench", "cpu"], capture_output=True,
                            text=True, check=False)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == (f"husk: the bench's file cpu-programs is in neither {directory}/../bench nor "
                             f"{directory}/../share/husk/bench; it is built with husk (ninja without a "
                             "target)\n")


def test_options_of_one_bench_are_none_of_another():
    result = husk.run("bench", "multiboot", "--programs", "calls")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "husk: bench multiboot takes no --programs\n"
