# SPDX-License-Identifier: Apache-2.0
"""Locks of every kind, between processes and threads on two processors."""
import pathlib
import subprocess

import husk
import initramfs
import stock

SECONDS = 240
STARTS = 3
ROUNDS = 1000

pytestmark = [stock.needs(stock.CLOUD), stock.needs_busybox]

SOURCE = pathlib.Path(__file__).with_name("locks.c")


def test_locks_keep_what_they_promise(tmp_path):
    program = tmp_path / "locks"
    subprocess.run(["gcc", "-O2", "-static", "-pthread", "-o", program, SOURCE], check=True)
    contests = subprocess.run([program, "1"], capture_output=True, text=True,
                              check=True).stdout.splitlines()
    archive = initramfs.make(tmp_path / "initramfs",
                             f"for start in $(seq {STARTS}); do /locks {ROUNDS}; done",
                             [("locks", program.read_bytes())])
    result = husk.run("run", "--accel", "soft", "-c", "2", "-k", stock.CLOUD, "-i", archive,
                      "-m", "256", "--timeout", SECONDS, "-a", "quiet", timeout=SECONDS + 30)
    assert result.returncode == 0, result.stderr
    printed = [line.rstrip("\r") for line in result.stdout.split("\n")]
    assert [line for line in printed if line and not line.startswith("[")] == STARTS * contests
