# SPDX-License-Identifier: Apache-2.0
"""Debian's cloud kernel under --deterministic: two boots are the same to the last instruction,
also where the second has a busy host."""
import contextlib
import json
import re
import subprocess
import sys

import husk
import initramfs
import stock

VMLINUZ = stock.CLOUD
SECONDS = 300

pytestmark = [
    stock.needs(VMLINUZ),
    stock.needs_busybox,
]

# Sleeps, interrupts, random numbers, the clock: all that could differ. The crash leaves its
# registers in the kernel's last words.
INIT = """
mount -t sysfs sys /sys
date
echo +2 > /sys/class/rtc/rtc0/wakealarm
sleep 3
cat /proc/uptime /proc/interrupts
head -c 32 /dev/urandom | md5sum
ls -lR /proc/self/ | md5sum
echo c > /proc/sysrq-trigger
"""


def boot(archive):
    """What the guest printed, and how many instructions it took until it was off."""
    result = husk.run("run", "--deterministic", "-k", VMLINUZ, "-i", archive, "-m", "256",
                      "--boot-timer=json", "--no-reboot", "--timeout", SECONDS,
                      "-a", "panic=-1", timeout=SECONDS + 30)
    assert result.returncode == 4, result.stderr
    counters = json.loads(result.stderr.splitlines()[-1])["counters"]
    return result.stdout, counters["retired_instructions"]


@contextlib.contextmanager
def busy_host():
    """One more that wants the processor all the time."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        try:
            yield
        finally:
            process.kill()


def test_a_boot_and_its_crash_repeat_exactly(tmp_path):
    archive = initramfs.make(tmp_path / "initramfs", INIT)
    printed, instructions = boot(archive)
    assert "Thu Jan  1 00:00:0" in printed
    assert re.search(r"^ *8: +1 .*rtc0", printed, re.MULTILINE)  # its alarm
    assert "Kernel panic - not syncing" in printed
    with busy_host():
        again, instructions_again = boot(archive)
    assert again == printed
    assert instructions_again == instructions > 100_000_000
