# SPDX-License-Identifier: Apache-2.0
"""--deterministic: guest time is exact, and a run repeats itself to the last instruction, whatever
the host does meanwhile."""
import re
import signal
import subprocess

import husk
import pytest
from test_guests import ACCELERATORS, EXPECTED, GUEST_DONE, HUSK_EXIT_CRASHED, IMAGES

SECONDS = 60

pytestmark = pytest.mark.skipif(ACCELERATORS["soft"] is not None, reason=str(ACCELERATORS["soft"]))


def command(image, *options):
    return [husk.HUSK, "run", "--deterministic", "-k", str(IMAGES / image), "-m", "32",
            "--debug-console", "--debug-exit", "0xf4", "--timeout", str(SECONDS), *options]


def last_dump(stderr):
    """The registers and the count of instructions that the crash has left."""
    start = stderr.rindex("husk: vCPU 0: rip")
    assert re.search(r"instructions \d+$", stderr[start:], re.MULTILINE)
    return stderr[start:]


def replay(disturb=lambda process: None):
    """The end of the guest that crashes."""
    with subprocess.Popen(command("replay.elf"), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        # Its first line: husk handles signals by now.
        assert process.stdout.readline() == "ok 1 - before the fault\n"
        disturb(process)
        _, stderr = process.communicate(timeout=2 * SECONDS)
    assert process.returncode == HUSK_EXIT_CRASHED, stderr
    return last_dump(stderr)


@pytest.mark.parametrize("name", ["deterministic", "timers"])
def test_time_is_exact(name):
    result = subprocess.run(command(f"{name}.elf"), stdin=subprocess.DEVNULL, check=False,
                            capture_output=True, text=True, timeout=2 * SECONDS)
    assert result.stdout == (EXPECTED / f"{name}.tap").read_text(), result.stderr
    assert result.returncode == GUEST_DONE


def test_a_failure_replays():
    assert replay() == replay()


def test_a_failure_replays_while_the_host_interferes():
    """Each dump stops the processor somewhere else and lets it go on."""
    def dump_now_and_then(process):
        for _ in range(30):
            process.send_signal(signal.SIGQUIT)

    undisturbed = replay()
    for _ in range(3):
        assert replay(dump_now_and_then) == undisturbed


def test_what_it_cannot_do_is_said():
    refusals = {
        ("--accel", "kvm"): "husk: --deterministic needs the software CPU; use --accel soft\n",
        ("-c", "2"): "husk: --deterministic works with one vCPU only; use --cpus 1\n",
    }
    for options, message in refusals.items():
        result = husk.run("run", "--deterministic", *options, IMAGES / "crash.elf")
        assert (result.returncode, result.stderr) == (2, message)


def test_auto_takes_the_software_cpu_and_says_why():
    result = husk.run("run", "--deterministic", "-v", IMAGES / "crash.elf", "-m", "32")
    assert result.returncode == HUSK_EXIT_CRASHED
    assert "husk: accelerator soft: --deterministic needs it\n" in result.stderr
