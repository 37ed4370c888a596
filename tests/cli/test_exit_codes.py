# SPDX-License-Identifier: Apache-2.0
"""Each way a guest or its start can end has its documented exit code."""
import os
import re
import signal
import subprocess
import time

import husk
import kernels
import pytest
from assembly import IDLE, LISTENS, READY_THEN_IDLE, STUBBORN


def start(image, *arguments, **options):
    return subprocess.Popen([husk.HUSK, "run", "--firmware", image, *arguments],
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, **options)


@husk.needs_accelerator
def test_power_off_is_0_and_silent_on_stderr(tmp_path):
    image = husk.firmware(tmp_path, "    putc 'O'\n    putc 'K'\n    end\n")
    result = husk.run("run", "--firmware", image)
    assert (result.returncode, result.stdout, result.stderr) == (0, "OK", "")


def test_signal_ends_husk_that_waits_for_its_kernel(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    runtime = tmp_path / "runtime"
    process = subprocess.Popen([husk.HUSK, "run", "-k", fifo], stdin=subprocess.DEVNULL,
                               env={**os.environ, "XDG_RUNTIME_DIR": str(runtime)})
    with open(fifo, "wb"):  # both ends are open: husk reads, and there is nothing to read
        process.terminate()
        assert process.wait(timeout=60) == -signal.SIGTERM
    assert not list(runtime.glob("husk/*"))


@husk.needs_accelerator
def test_triple_fault_is_3_with_registers(tmp_path):
    # PVH enters with an empty IDT: any fault becomes a triple fault.
    result = husk.run("run", "-k", kernels.pvh_kernel(tmp_path, "    ud2\n"))
    assert result.returncode == 3
    assert "the guest crashed (triple fault)" in result.stderr
    assert "vCPU 0: rip" in result.stderr


@husk.needs_accelerator
@pytest.mark.parametrize("how", ["    outb_imm 0xcf9, 6\n", "    outb_imm 0x64, 0xfe\n"])
def test_reboot_under_no_reboot_is_4(tmp_path, how):
    image = husk.firmware(tmp_path, how + IDLE)
    assert husk.run("run", "--firmware", image, "--no-reboot").returncode == 4


@husk.needs_accelerator
@pytest.mark.parametrize("value, code", [(0, 1), (1, 3), (0x10, 33), (0x80, 1)])
def test_debug_exit_is_value_times_two_plus_one(tmp_path, value, code):
    image = husk.firmware(tmp_path, f"    outb_imm 0xf4, {value}\n" + IDLE)
    assert husk.run("run", "--firmware", image, "--debug-exit", "0xf4").returncode == code


@husk.needs_accelerator
def test_debug_exit_on_a_port_in_use_is_2(tmp_path):
    image = husk.firmware(tmp_path, IDLE)
    result = husk.run("run", "--firmware", image, "--debug-exit", "0x60")
    assert result.returncode == 2
    assert re.match(r"husk: debug exit needs port addresses 0x60 to 0x63, but .* has 0x60 to "
                    r"0x60; choose another address$", result.stderr)


@husk.needs_accelerator
def test_timeout_is_124(tmp_path):
    image = husk.firmware(tmp_path, IDLE)
    result = husk.run("run", "--firmware", image, "--timeout", "1")
    assert result.returncode == 124
    assert "--timeout" in result.stderr


@husk.needs_accelerator
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_to_a_deaf_guest_is_128_plus_n(tmp_path, number):
    process = start(husk.firmware(tmp_path, READY_THEN_IDLE))
    assert process.stdout.read(1) == "R"
    process.send_signal(number)
    assert process.wait(timeout=30) == 128 + number


@husk.needs_accelerator
def test_first_term_presses_the_power_button(tmp_path):
    process = start(husk.firmware(tmp_path, LISTENS))
    assert process.stdout.read(1) == "R"
    process.terminate()
    assert process.wait(timeout=30) == 0


@husk.needs_accelerator
def test_second_term_stops_a_guest_that_listens_but_does_nothing(tmp_path):
    process = start(husk.firmware(tmp_path, STUBBORN))
    assert process.stdout.read(1) == "R"
    process.terminate()
    time.sleep(0.3)
    assert process.poll() is None
    process.terminate()
    assert process.wait(timeout=4) == 128 + signal.SIGTERM


@husk.needs_accelerator
def test_quit_dumps_and_goes_on(tmp_path):
    process = start(husk.firmware(tmp_path, LISTENS))
    assert process.stdout.read(1) == "R"
    process.send_signal(signal.SIGQUIT)
    line = process.stderr.readline()
    assert line.startswith("husk: vCPU 0: rip ")
    process.terminate()
    assert process.wait(timeout=30) == 0


@husk.needs_accelerator
def test_reset_starts_the_guest_again(tmp_path):
    # CMOS keeps a byte over a reset: boot, count, reset until the third time.
    image = husk.firmware(tmp_path, """
        outb_imm 0x70, 0x50
        mov $0x71, %dx
        in %dx, %al
        inc %al
        out %al, %dx
        mov %al, %bl
        add $'0', %al
        mov $0x3f8, %dx
        out %al, %dx
        cmp $3, %bl
        jne 1f
        end
    1:  outb_imm 0xcf9, 6
    """ + IDLE)
    result = husk.run("run", "--firmware", image)
    assert (result.returncode, result.stdout) == (0, "123")


def test_usage_error_is_2_and_one_line():
    result = husk.run("run", "--no-such-option")
    assert result.returncode == 2
    assert result.stdout == ""
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("name, message", [
    ("missing", "cannot open: No such file or directory"),
    ("directory", "is a directory, not a file"),
    ("empty", "is empty"),
])
def test_kernel_that_is_no_file_is_1_and_named(tmp_path, name, message):
    (tmp_path / "directory").mkdir()
    (tmp_path / "empty").touch()
    result = husk.run("run", "-k", tmp_path / name)
    assert result.returncode == 1
    assert result.stderr == f"husk: kernel {tmp_path / name}: {message}\n"
