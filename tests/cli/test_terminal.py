# SPDX-License-Identifier: Apache-2.0
"""The console contract: terminal modes, escape keys, piped input, readers that do not read."""
import os
import pty
import select
import signal
import subprocess
import termios
import time

import husk
import kernels
import pytest

# Says R, then echoes what it reads from COM1; 'q' powers off, 'z' triple-faults (PVH enters with an
# empty IDT, so that any fault does).
ECHO = """
    putc 'R'
1:  mov $0x3fd, %dx
    in %dx, %al
    test $1, %al
    jz 1b
    mov $0x3f8, %dx
    in %dx, %al
    cmp $'q', %al
    je 2f
    cmp $'z', %al
    je 3f
    out %al, %dx
    jmp 1b
2:  end
3:  ud2
"""
SECONDS = 30


class Session:
    """husk on a pseudo-terminal."""

    def __init__(self, kernel, *arguments):
        self.parent, child = pty.openpty()
        self.before = termios.tcgetattr(child)
        self.child = child
        self.process = subprocess.Popen([husk.HUSK, "run", "-k", kernel, *arguments],
                                        stdin=child, stdout=child, stderr=child)
        self.seen = b""

    def expect(self, wanted):
        deadline = time.monotonic() + SECONDS
        while wanted not in self.seen:
            ready, _, _ = select.select([self.parent], [], [], deadline - time.monotonic())
            assert ready, f"{wanted!r} did not come; seen: {self.seen!r}"
            self.seen += os.read(self.parent, 4096)
        self.seen = self.seen.split(wanted, 1)[1]

    def type(self, text):
        os.write(self.parent, text)

    def end(self):
        code = self.process.wait(timeout=SECONDS)
        assert termios.tcgetattr(self.child) == self.before, "terminal modes not restored"
        os.close(self.parent)
        os.close(self.child)
        return code


@pytest.fixture
def echo(tmp_path):
    return kernels.pvh_kernel(tmp_path, ECHO)


@husk.needs_accelerator
def test_banner_names_the_way_out_and_keys_reach_the_guest(echo):
    session = Session(echo)
    session.expect(b"Ctrl-A x quits")
    session.expect(b"R")
    session.type(b"hello")
    session.expect(b"hello")
    session.type(b"\x03")  # Ctrl-C belongs to the guest
    session.expect(b"\x03")
    session.type(b"q")
    assert session.end() == 0


@husk.needs_accelerator
def test_ctrl_a_x_quits(echo):
    session = Session(echo)
    session.expect(b"R")
    session.type(b"\x01x")
    assert session.end() == 5


@husk.needs_accelerator
@pytest.mark.parametrize("keys", [b"\x01a", b"\x01\x01"])
def test_ctrl_a_twice_sends_one(echo, keys):
    session = Session(echo)
    session.expect(b"R")
    session.type(keys + b".")
    session.expect(b"\x01.")
    session.type(b"q")
    assert session.end() == 0


@husk.needs_accelerator
def test_help_counters_dump_and_pause_keys(echo):
    session = Session(echo, "--name", "keys-test")
    session.expect(b"R")
    session.type(b"\x01h")
    session.expect(b"p pause or resume")
    session.type(b"\x01s")
    session.expect(b"keys-test: running, accelerator ")
    session.type(b"\x01d")
    session.expect(b"vCPU 0: rip ")
    session.type(b"\x01p")
    session.expect(b"paused")
    session.type(b"late")
    time.sleep(0.3)
    session.type(b"\x01p")
    session.expect(b"resumed")
    session.expect(b"late")
    session.type(b"q")
    assert session.end() == 0


@husk.needs_accelerator
def test_terminal_is_restored_after_a_guest_crash(echo):
    session = Session(echo)
    session.expect(b"R")
    session.type(b"z")
    assert session.end() == 3


@husk.needs_accelerator
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGSEGV,
                                    signal.SIGABRT])
def test_terminal_is_restored_after_a_signal(echo, number):
    session = Session(echo)
    session.expect(b"R")
    session.process.send_signal(number)
    session.end()


def test_terminal_is_restored_after_a_failed_start(tmp_path):
    session = Session(tmp_path / "missing")
    assert session.end() == 1


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
