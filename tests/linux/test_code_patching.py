# SPDX-License-Identifier: Apache-2.0
"""A running kernel patches its own code while another processor runs it: static keys, probes and
the calls of the function tracer."""
import husk
import initramfs
import stock

SECONDS = 240

pytestmark = [stock.needs(stock.CLOUD), stock.needs_busybox]

ROUNDS = 3

# The last round goes on while functions are traced.
PATCHING = f"""
mount -t sysfs sys /sys
mount -t tracefs tracing /sys/kernel/tracing
cd /sys/kernel/tracing
(while :; do seq 1 50 | sort -r; done) >/dev/null &
worker=$!
for round in $(seq 1 {ROUNDS}); do
    echo 1 >/proc/sys/kernel/sched_schedstats
    echo 1 >events/sched/enable
    echo "p:probe$round do_sys_openat2" >kprobe_events
    echo 1 >events/kprobes/enable
    [ $round = {ROUNDS} ] && echo function >current_tracer
    cat /proc/version >/dev/null
    [ $(awk '{{ print $2 }}' kprobe_profile) -gt 0 ] && echo "round $round"
    echo nop >current_tracer
    echo 0 >events/kprobes/enable
    echo >kprobe_events
    echo 0 >events/sched/enable
    echo 0 >/proc/sys/kernel/sched_schedstats
done
kill $worker
dmesg | grep -E "BUG: |Oops|general protection|invalid opcode|int3" | grep -v "soft lockup"
"""


def test_code_is_patched_while_another_processor_runs_it(tmp_path):
    archive = initramfs.make(tmp_path / "initramfs", PATCHING)
    result = husk.run("run", "--accel", "soft", "-c", "2", "-k", stock.CLOUD, "-i", archive,
                      "-m", "512", "--timeout", SECONDS, "-a", "quiet", timeout=SECONDS + 30)
    assert result.returncode == 0, result.stderr
    printed = [line.rstrip("\r") for line in result.stdout.split("\n")]
    assert ([line for line in printed if line and not line.startswith("[")] ==
            [f"round {number}" for number in range(1, ROUNDS + 1)])
