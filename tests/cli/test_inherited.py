# SPDX-License-Identifier: Apache-2.0
"""What whoever starts husk leaves to it: closed descriptors, signals, limits."""
import os
import pathlib
import re
import resource
import signal
import subprocess

import husk
import kernels
import pytest
from assembly import ECHO, READY_THEN_IDLE

SECONDS = 30


def closed(*descriptors):
    """For preexec_fn."""
    return lambda: [os.close(descriptor) for descriptor in descriptors]


def start(tmp_path, prepare):
    process = subprocess.Popen(
        [husk.HUSK, "run", "--firmware", husk.firmware(tmp_path, READY_THEN_IDLE)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=prepare)
    assert process.stdout.read(1) == "R"
    return process


@husk.needs_accelerator
def test_guest_does_not_hear_itself_when_input_and_output_are_closed(tmp_path):
    # An internal pipe of husk in their place would do that; the echoed q would power off.
    kernel = kernels.pvh_kernel(tmp_path, "    putc 'q'\n" + ECHO)
    result = subprocess.run([husk.HUSK, "run", "-k", kernel, "--timeout", "1"],
                            timeout=SECONDS, stderr=subprocess.PIPE,
                            preexec_fn=closed(0, 1), check=False)
    assert result.returncode == 124, result.stderr


@husk.needs_accelerator
def test_signals_are_heard_without_standard_input(tmp_path):
    process = start(tmp_path, closed(0))
    process.terminate()
    assert process.wait(timeout=SECONDS) == 128 + signal.SIGTERM


def test_closed_standard_output_is_an_error(tmp_path):
    kernel = kernels.pvh_kernel(tmp_path, "    end\n")
    result = subprocess.run([husk.HUSK, "plan", "-k", kernel], timeout=SECONDS, text=True,
                            capture_output=True, preexec_fn=closed(1), check=False)
    assert result.returncode == 1
    assert result.stderr == "husk: cannot write to standard output: Bad file descriptor\n"


@husk.needs_accelerator
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGQUIT])
def test_ignored_signal_stays_ignored(tmp_path, number):
    process = start(tmp_path, lambda: signal.signal(number, signal.SIG_IGN))
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    ignored = int(re.search(r"SigIgn:\s*([0-9a-f]+)", status)[1], 16)
    process.kill()
    process.wait(timeout=SECONDS)
    assert ignored >> (number - 1) & 1


@husk.needs_accelerator
def test_blocked_signals_are_heard(tmp_path):
    process = start(tmp_path, lambda: signal.pthread_sigmask(signal.SIG_BLOCK,
                                                             signal.valid_signals()))
    process.terminate()
    assert process.wait(timeout=SECONDS) == 128 + signal.SIGTERM


def limited_to(size):
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def test_limit_of_file_sizes_is_an_error_with_its_reason(tmp_path):
    # What comes through a pipe is kept in a memory file, to which the limit applies as well.
    kernel = kernels.pvh_kernel(tmp_path, "    end\n", size=16 * 1024)  # less than a pipe holds
    result = subprocess.run([husk.HUSK, "plan", "-k", "/dev/stdin"], input=kernel.read_bytes(),
                            capture_output=True, timeout=SECONDS, preexec_fn=limited_to(4096),
                            check=False)
    assert result.returncode == 1
    assert result.stderr == b"husk: kernel /dev/stdin: cannot read the pipe: File too large\n"


@husk.needs_accelerator
def test_log_at_its_limit_does_not_end_the_guest(tmp_path):
    image = husk.firmware(tmp_path, """
        mov $2000, %cx
        mov $0x3f8, %dx
        mov $'x', %al
    1:  out %al, %dx
        loop 1b
        end
    """)
    log = tmp_path / "log"
    # The instance's own files are smaller than this.
    result = husk.run("run", "--firmware", image, "--log", log, preexec_fn=limited_to(1000))
    assert (result.returncode, result.stdout) == (0, "x" * 2000), result.stderr
    assert log.stat().st_size <= 1000
