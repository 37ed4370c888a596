# SPDX-License-Identifier: Apache-2.0
"""A stock kernel and programs under the lockstep checker: each fifth block of translated code does
what the interpreter does. (All blocks take twice the time; --check 1 by hand.)"""
import re
import subprocess

import husk
import initramfs
import stock

SECONDS = 240

pytestmark = [stock.needs(stock.CLOUD), stock.needs_busybox]

# What the boot takes is about thrice that.
BLOCKS_AT_LEAST = 4_000_000

WORK = """
seq 1 2000 >/tmp/numbers
md5sum </tmp/numbers
gzip -c /tmp/numbers | gunzip -c | sha256sum
sort -r /tmp/numbers | md5sum
awk '{ sum += $1 * 1.5; if ($1 % 7 == 0) n++ } END { print sum, n }' /tmp/numbers
"""


def work_here(directory):
    script = WORK.replace("/tmp/", f"{directory}/")
    for command in ("seq", "md5sum", "sha256sum", "gzip", "gunzip", "sort", "awk"):
        script = script.replace(f"{command} ", f"/bin/busybox {command} ")
    return subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True,
                          check=True).stdout.splitlines()


def test_a_boot_and_programs_pass_the_lockstep_checker(tmp_path):
    archive = initramfs.make(tmp_path / "initramfs", WORK)
    result = husk.run("run", "--accel", "soft", "--check", "5", "-v", "-k", stock.CLOUD,
                      "-i", archive, "-m", "256", "--timeout", SECONDS, "-a", "quiet",
                      timeout=SECONDS + 30)
    assert result.returncode == 0, result.stderr
    printed = [line.rstrip("\r") for line in result.stdout.split("\n")]
    assert [line for line in printed if line and not line.startswith("[")] == work_here(tmp_path)
    compared = re.search(r"soft: (\d+) blocks of translated code compared", result.stderr)
    assert int(compared[1]) > BLOCKS_AT_LEAST
