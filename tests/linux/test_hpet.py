# SPDX-License-Identifier: Apache-2.0
"""Debian's generic kernel with the High Precision Event Timer as its only clock.

It looks for the interrupt of the 8254, whose place the HPET has taken, and so needs legacy
replacement; time then advances by the HPET's counter.
"""

import husk
import initramfs
import pytest
import stock

GENERIC = stock.GENERIC
SECONDS = 240

pytestmark = [
    stock.needs(GENERIC),
    stock.needs_busybox,
]

INIT = """
mount -t sysfs sys /sys
clocksource=/sys/devices/system/clocksource/clocksource0
for word in $(cat $clocksource/available_clocksource); do [ $word = hpet ] && echo offered; done
cat $clocksource/current_clocksource
read before rest </proc/uptime
sleep 1
read after rest </proc/uptime
awk "BEGIN { passed = int($after * 100 + 0.5) - int($before * 100 + 0.5)
             print (passed >= 100) ? \\"a second\\" : passed }"
"""


@pytest.mark.parametrize("options", [[], ["--deterministic"]], ids=["host time", "deterministic"])
def test_time_advances_by_the_hpet(tmp_path, monkeypatch, options):
    monkeypatch.setenv("HUSK_CACHE_DIR", str(tmp_path / "cache"))
    archive = initramfs.make(tmp_path / "initramfs", INIT)
    result = husk.run("run", "--accel", "soft", "--hpet", *options, "-k", GENERIC, "-i", archive,
                      "-m", "512", "--timeout", SECONDS, "-a", "quiet clocksource=hpet",
                      timeout=SECONDS + 30)
    lines = [line.rstrip("\r") for line in result.stdout.split("\n")
             if line.strip() and not line.startswith("[")]
    assert (result.returncode, lines) == (0, ["offered", "hpet", "a second"]), result.stdout
