# SPDX-License-Identifier: Apache-2.0
"""tools/kvm-unit-tests with a small tree of its own and a stand-in for husk.

The stand-in is a script named as a test's program is: it prints its arguments and the module, then
what the program's file says, and ends with the status in its last line.
"""
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools" / "kvm-unit-tests"

STAND_IN = """#!/bin/bash
program=${@: -1}
echo "arguments: ${*:2:$#-2}"
while [ $# -gt 0 ]; do [ "$1" = --initrd ] && cat "$2"; shift; done
source "$program"
"""

SECTIONS = """
# a comment
[good]
file = good.flat
groups = first

[args]
file = good.flat
smp = 2
test_args = "one two `date +%s`"
qemu_params = -cpu max,+x2apic,vendor=GenuineIntel -m 2g -machine pit=off
groups = first second

[machine]
file = good.flat
qemu_params = -machine pit=off,hpet=on

[bad]
file = bad.flat
arch = x86_64

[slow]
file = slow.flat
timeout = 1

[other]
file = good.flat
arch = i386

[manual]
file = good.flat
groups = nodefault

[checked]
file = good.flat
check = CONDITION=1

[virtual]
file = good.flat
accel = kvm

[device]
file = good.flat
qemu_params = -cpu max -device edu

[feature]
file = good.flat
qemu_params = -cpu host,hv_passthrough
"""

PROGRAMS = {
    "good": "printf 'PASS: a\\r\\nPASS: b\\nXFAIL: c\\nSKIP: d\\n'; exit 1",
    "bad": "printf 'PASS: a\\nFAIL: b\\nXPASS: c\\n'; exit 3",
    "slow": "exec sleep 60",
    "extra": "exit 77",
}


@pytest.fixture(name="tree")
def make_tree(tmp_path):
    (tmp_path / "x86").mkdir()
    (tmp_path / "config.mak").write_text("SRCDIR=.\nARCH=x86_64\n")
    (tmp_path / "condition").write_text("0\n")
    (tmp_path / "x86" / "unittests.cfg").write_text(
        SECTIONS.replace("CONDITION", str(tmp_path / "condition")))
    for name, script in PROGRAMS.items():
        (tmp_path / "x86" / f"{name}.flat").write_text(script + "\n")
    husk = tmp_path / "husk"
    husk.write_text(STAND_IN)
    husk.chmod(0o755)
    return tmp_path


def arguments_of(tree, *arguments):
    return [sys.executable, TOOL, tree, "--husk", tree / "husk", "--logs", tree / "logs",
            *arguments]


def run(tree, *arguments):
    return subprocess.run(arguments_of(tree, *arguments), capture_output=True, text=True,
                          timeout=60, check=False)


def verdicts(result):
    """Verdict and reason by test, from the table."""
    rows = [line.split() for line in result.stdout.splitlines() if " passed " in line]
    return {row[1]: (row[0], " ".join(row[10:])) for row in rows}


def test_every_section_of_the_architecture_has_a_verdict(tree):
    result = run(tree, "--timeout-scale", "0.5")
    assert verdicts(result) == {
        "good": ("PASS", ""),
        "args": ("PASS", ""),
        "machine": ("PASS", ""),
        "bad": ("FAIL", ""),
        "slow": ("TIMEOUT", ""),
        "manual": ("SKIP", "only when asked for"),
        "checked": ("SKIP", f"{tree}/condition is not 1"),
        "virtual": ("SKIP", "accel = kvm"),
        "device": ("SKIP", "husk has no -device edu"),
        "feature": ("SKIP", "husk has no -cpu hv_passthrough"),
        "+extra": ("SKIP", "by the test"),
    }
    assert result.returncode == 1
    assert result.stdout.splitlines()[-1] == (
        "11 tests: 3 PASS, 1 FAIL, 1 TIMEOUT, 6 SKIP; "
        "single checks: 10 PASS, 2 FAIL, 3 SKIP")


def test_options_of_qemu_become_those_of_husk(tree):
    assert run(tree, "--only", "args").returncode == 0
    log = (tree / "logs" / "x86_64-args.log").read_text()
    words = log.splitlines()[1].split()
    assert words[1:8] == "--accel soft --test-device --quiet --no-reboot --cpus 2".split()
    assert words[8:10] == ["--memory", "2048M"]
    text = words[words.index("--cmdline") + 1:]
    assert text[:2] == ["one", "two"] and text[2].isdigit()


def test_hpet_is_there_for_the_test_that_reads_it_and_where_asked(tree):
    (tree / "x86" / "hpet_read_test.flat").write_text("exit 1\n")
    assert run(tree, "--only", "good,machine,+hpet_read_test").returncode == 0
    with_hpet = {path.name for path in (tree / "logs").iterdir()
                 if "--hpet" in path.read_text().splitlines()[1].split()}
    assert with_hpet == {"x86_64-machine.log", "x86_64-+hpet_read_test.log"}


def test_environment_is_a_module(tree):
    run(tree, "--only", "args")
    log = (tree / "logs" / "x86_64-args.log").read_text().splitlines()
    assert "NR_CPUS=2" in log
    assert "MEMSIZE=2048" in log
    assert f"KERNEL_VERSION_STRING={os.uname().release}" in log


def test_groups_choose_and_ask_for_manual_ones(tree):
    assert set(verdicts(run(tree, "--group", "second"))) == {"args"}
    assert verdicts(run(tree, "--group", "nodefault")) == {"manual": ("PASS", "")}


def test_condition_that_holds_lets_a_test_run(tree):
    (tree / "condition").write_text("1\n")
    assert verdicts(run(tree, "--only", "checked")) == {"checked": ("PASS", "")}


def test_tables_can_be_compared(tree):
    table = tree / "table.tsv"
    assert run(tree, "--only", "good,bad", "--tsv", table).returncode == 1
    lines = table.read_text().splitlines()
    assert lines[0].split("\t")[:6] == ["arch", "test", "file", "smp", "result", "seconds"]
    good = lines[1].split("\t")
    assert good[:5] == ["x86_64", "good", "good.flat", "1", "PASS"]
    assert good[6:10] == ["4", "3", "0", "1"]
    table.write_text(table.read_text().replace("\tFAIL\t", "\tPASS\t"))
    result = run(tree, "--only", "good,bad,args", "--compare", table)
    assert result.returncode == 1
    assert result.stdout.splitlines()[-3:] == [
        "pass on both: 1", "pass only here: 1  args", "pass only there: 1  bad"]


def test_unknown_test_is_named(tree):
    result = run(tree, "--only", "good,nothing")
    assert result.returncode == 1
    assert result.stderr == "kvm-unit-tests: no test is named nothing\n"


def test_folder_without_a_build_is_named(tmp_path):
    result = run(tmp_path)
    assert result.returncode == 1
    assert result.stderr == f"kvm-unit-tests: {tmp_path}/config.mak: No such file or directory\n"


def wait_for_text(process, path):
    while not path.exists() or not path.read_text().endswith("\n"):
        assert process.poll() is None
        time.sleep(0.01)
    return path.read_text()


def test_interrupt_ends_the_guest_and_sums_up(tree):
    (tree / "x86" / "slow.flat").write_text("echo $$ >pid; exec sleep 60\n")
    with subprocess.Popen(arguments_of(tree, "--only", "good,slow", "--timeout-scale", "60"),
                          stdout=subprocess.PIPE, text=True, cwd=tree) as process:
        assert process.stdout.readline().split()[:2] == ["PASS", "good"]
        guest = int(wait_for_text(process, tree / "pid"))
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()
    assert process.returncode == 130
    assert rest.startswith("1 tests: 1 PASS")
    with pytest.raises(ProcessLookupError):
        os.kill(guest, 0)
