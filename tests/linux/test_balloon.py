# SPDX-License-Identifier: Apache-2.0
"""Linux's own balloon driver: what a guest has freed is the host's again, and the guest goes on."""
import hashlib
import json
import shutil
import tempfile
import time

import husk
import initramfs
import pytest
import stock
import terminal

VMLINUZ = stock.CLOUD
MODULES = stock.KERNELS / "cloud-amd64" / "modules"
# In the order in which they need each other.
NAMES = ["virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci",
         "virtio_balloon"]
SECONDS = 120
MIB = 1 << 20

pytestmark = [
    pytest.mark.skipif(not all((MODULES / f"{name}.ko").exists() for name in NAMES),
                       reason=f"no balloon in {MODULES}; tools/get-kernel cloud-amd64 fetches it"),
    stock.needs_busybox,
]

INIT = "\n".join([f"insmod /{name}.ko" for name in NAMES] + [
    "mount -t tmpfs tmp /tmp",
    "echo up; setsid cttyhack sh -c 'while read line; do eval \"$line\"; done'"])


@pytest.fixture(name="guest")
def make_guest(tmp_path, monkeypatch):
    runtime = tempfile.mkdtemp(prefix="husk-test-", dir="/tmp")  # short: it holds sockets
    monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
    monkeypatch.setenv("HUSK_CACHE_DIR", str(tmp_path))
    archive = initramfs.make(
        tmp_path / "initramfs", INIT,
        [(f"{name}.ko", (MODULES / f"{name}.ko").read_bytes()) for name in NAMES])
    guest = terminal.Terminal("run", "--name", "guest", "--accel", "soft", "-k", VMLINUZ, "-i",
                              archive, "-m", "512", "-a", "quiet", "--reclaim", "off")
    guest.expect(b"up\r")
    yield guest
    terminal.Terminal.end_all()
    shutil.rmtree(runtime)


def statistics():
    return json.loads(husk.run("stat", "guest", "--json").stdout)


def wait_for(condition):
    """The statistics of the guest as soon as they fulfil the condition."""
    deadline = time.monotonic() + SECONDS
    while not condition(seen := statistics()):
        assert time.monotonic() < deadline, seen
        time.sleep(0.2)
    return seen


def ram(seen):
    """What the host would get back of what the guest has written."""
    return seen["process"]["kinds"]["guest_ram"]["private_bytes"]


def run(guest, command, last):
    """Until the command has printed this at last."""
    guest.type(command.encode() + b"\n")
    return guest.expect(last.encode())


def checksum(guest, file):
    digest = hashlib.sha256(initramfs.BUSYBOX.read_bytes()).hexdigest()
    run(guest, f"sha256sum <{file}", digest)


def power_off(guest):
    guest.type(b"poweroff -f\n")
    assert guest.end() == 0


def test_what_a_guest_has_freed_is_the_hosts_again(guest):
    wait_for(lambda seen: seen["balloon"]["reported_bytes"] > 0)
    run(guest, "dd if=/dev/zero of=/tmp/large bs=1M count=192 2>/dev/null; echo fil''led", "filled")
    run(guest, "cat /bin/busybox /bin/busybox >/tmp/kept; echo kep''t", "kept")
    filled = statistics()
    assert ram(filled) >= 192 * MIB
    run(guest, "rm /tmp/large; echo fre''ed", "freed")
    # All but what lies in blocks of less than 2 MiB, which Linux does not report.
    after = wait_for(lambda seen: ram(seen) <= ram(filled) - 160 * MIB)
    assert after["balloon"]["reported_bytes"] >= filled["balloon"]["reported_bytes"] + 160 * MIB
    assert after["balloon"]["kept_bytes"] == after["balloon"]["poisoned_bytes"] == 0

    # What it had kept is there, and what was the host's works as memory.
    checksum(guest, "/bin/busybox")
    size = initramfs.BUSYBOX.stat().st_size
    run(guest, f"head -c {size} /tmp/kept >/tmp/half; echo cu''t", "cut")
    checksum(guest, "/tmp/half")
    run(guest, "for i in $(seq 60); do cat /bin/busybox; done >/tmp/again; echo agai''n", "again")
    run(guest, f"tail -c {size} /tmp/again >/tmp/last; echo las''t", "last")
    checksum(guest, "/tmp/last")
    power_off(guest)


def free_memory(guest):
    """In bytes, as the guest counts it."""
    before = run(guest, "echo fr''ee $(grep MemFree /proc/meminfo) en''d", "end")
    return int(before.split()[-2]) * 1024


def balloon(size):
    result = husk.run("balloon", "guest", size)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_a_guest_does_without_what_it_is_asked_for(guest):
    free = free_memory(guest)
    balloon("256")
    wait_for(lambda seen: seen["balloon"]["actual_bytes"] == 256 * MIB)
    assert abs(free - 256 * MIB - free_memory(guest)) < 16 * MIB
    # Each look at the statistics asks for the next ones.
    known = wait_for(lambda seen: seen["balloon"]["guest"]["free_bytes"] < free - 240 * MIB)
    assert known["balloon"]["inflated_bytes"] == 256 * MIB
    assert None not in known["balloon"]["guest"].values()
    assert known["balloon"]["guest"]["total_bytes"] > 450 * MIB

    # What is wanted of it is wanted of the next kernel, too.
    guest.type(b"reboot -f\n")
    guest.expect(b"up\r")
    wait_for(lambda seen: seen["balloon"]["actual_bytes"] == 256 * MIB)
    balloon("0")
    wait_for(lambda seen: seen["balloon"]["actual_bytes"] == 0)
    assert abs(free - free_memory(guest)) < 16 * MIB
    checksum(guest, "/bin/busybox")
    power_off(guest)
