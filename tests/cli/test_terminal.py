# SPDX-License-Identifier: Apache-2.0
"""The console contract: terminal modes, escape keys, piped input, readers that do not read."""
import os
import signal
import subprocess
import termios
import time

import husk
import kernels
import pytest
from assembly import ECHO, READY_THEN_IDLE
from terminal import SECONDS, Terminal


@pytest.fixture
def echo(tmp_path):
    # PVH enters with an empty IDT, so that the program's ud2 is a triple fault.
    return kernels.pvh_kernel(tmp_path, ECHO)


@husk.needs_accelerator
def test_banner_names_the_way_out_and_keys_reach_the_guest(echo):
    terminal = Terminal("run", "-k", echo)
    terminal.expect(b"Ctrl-A x quits")  # before or after the guest's R
    terminal.type(b"hello")
    terminal.expect(b"hello")
    terminal.type(b"\x03")  # Ctrl-C belongs to the guest
    terminal.expect(b"\x03")
    terminal.type(b"q")
    assert terminal.end() == 0


@husk.needs_accelerator
def test_ctrl_a_x_quits(echo):
    terminal = Terminal("run", "-k", echo)
    terminal.expect(b"R")
    terminal.type(b"\x01x")
    assert terminal.end() == 5


@husk.needs_accelerator
def test_ctrl_a_x_quits_also_when_the_guest_takes_no_input(tmp_path):
    terminal = Terminal("run", "--firmware", husk.firmware(tmp_path, READY_THEN_IDLE))
    terminal.expect(b"R")
    for _ in range(100):  # more than the 64 KiB that wait for the guest
        terminal.type(b"x" * 1024)
    terminal.type(b"\x01x")
    assert terminal.end() == 5


@husk.needs_accelerator
def test_terminal_goes_raw_again_after_a_stop(echo):
    terminal = Terminal("run", "-k", echo)
    terminal.expect(b"R")
    terminal.process.send_signal(signal.SIGSTOP)
    termios.tcsetattr(terminal.child, termios.TCSANOW, terminal.before)  # as a shell does
    terminal.process.send_signal(signal.SIGCONT)
    deadline = time.monotonic() + SECONDS
    while termios.tcgetattr(terminal.child) == terminal.before:
        assert time.monotonic() < deadline, "the terminal stays as it was"
        time.sleep(0.02)
    terminal.type(b"\x03q")
    terminal.expect(b"\x03")
    assert terminal.end() == 0


@husk.needs_accelerator
@pytest.mark.parametrize("keys", [b"\x01a", b"\x01\x01"])
def test_ctrl_a_twice_sends_one(echo, keys):
    terminal = Terminal("run", "-k", echo)
    terminal.expect(b"R")
    terminal.type(keys + b".")
    terminal.expect(b"\x01.")
    terminal.type(b"q")
    assert terminal.end() == 0


@husk.needs_accelerator
def test_help_counters_dump_and_pause_keys(echo):
    terminal = Terminal("run", "-k", echo, "--name", "keys-test")
    terminal.expect(b"R")
    terminal.type(b"\x01h")
    terminal.expect(b"p pause or resume")
    terminal.type(b"\x01s")
    terminal.expect(b"keys-test: running, accelerator ")
    terminal.type(b"\x01d")
    terminal.expect(b"vCPU 0: rip ")
    terminal.type(b"\x01p")
    terminal.expect(b"paused")
    terminal.type(b"late")
    time.sleep(0.3)
    terminal.type(b"\x01p")
    terminal.expect(b"resumed")
    terminal.expect(b"late")
    terminal.type(b"q")
    assert terminal.end() == 0


@husk.needs_accelerator
def test_terminal_is_restored_after_a_guest_crash(echo):
    terminal = Terminal("run", "-k", echo)
    terminal.expect(b"R")
    terminal.type(b"z")
    assert terminal.end() == 3


@husk.needs_accelerator
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGSEGV,
                                    signal.SIGABRT])
def test_terminal_is_restored_after_a_signal(echo, number):
    terminal = Terminal("run", "-k", echo)
    terminal.expect(b"R")
    terminal.process.send_signal(number)
    terminal.end()


def test_terminal_is_restored_after_a_failed_start(tmp_path):
    terminal = Terminal("run", "-k", tmp_path / "missing")
    assert terminal.end() == 1


@husk.needs_accelerator
def test_piped_input_reaches_the_guest_and_its_end_is_not_the_guests(echo):
    result = husk.run("run", "-k", echo, "--timeout", "2", input="abc")
    assert result.stdout == "Rabc"
    assert result.returncode == 124


@husk.needs_accelerator
def test_input_from_a_file_longer_than_the_queue(tmp_path, echo):
    text = "0123456789" * 800 + "q"
    (tmp_path / "input").write_text(text)
    with open(tmp_path / "input", encoding="ascii") as stdin:
        result = subprocess.run([husk.HUSK, "run", "-k", echo], stdin=stdin,
                                capture_output=True, text=True, timeout=120, check=False)
    assert result.returncode == 0
    assert result.stdout == "R" + text[:-1]


@husk.needs_accelerator
def test_output_that_nobody_reads_does_not_stop_the_guest(tmp_path):
    # Writes 256 kB, more than a pipe holds, then powers off.
    image = husk.firmware(tmp_path, """
        mov $0x3f8, %dx
        mov $'x', %al
        mov $4, %bx
    1:  mov $0, %cx
    2:  out %al, %dx
        loop 2b
        dec %bx
        jnz 1b
        end
    """)
    reader, writer = os.pipe()
    process = subprocess.Popen([husk.HUSK, "run", "--firmware", image],
                               stdin=subprocess.DEVNULL, stdout=writer)
    assert process.wait(timeout=120) == 0
    os.close(writer)
    os.close(reader)


@husk.needs_accelerator
def test_log_gets_the_console_too(tmp_path, echo):
    log = tmp_path / "console.log"
    result = husk.run("run", "-k", echo, "--log", log, input="xyzq".replace("z", "w"))
    assert result.returncode == 0
    assert log.read_text() == result.stdout == "Rxyw"


@husk.needs_accelerator
def test_console_none_discards_without_slowing(tmp_path):
    # LSR must show an idle transmitter (0x60); the guest exits with what it reads.
    image = husk.firmware(tmp_path, """
        mov $0x3fd, %dx
        in %dx, %al
        mov $0xf4, %dx
        out %al, %dx
        hlt
    """)
    result = husk.run("run", "--firmware", image, "--console", "none", "--debug-exit", "0xf4")
    assert (result.returncode, result.stdout) == ((0x60 << 1 | 1) & 0xff, "")
