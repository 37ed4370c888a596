# SPDX-License-Identifier: Apache-2.0
"""What idle guests of one kernel take of the host's memory, and that they do not notice."""
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
SECONDS = 120
MIB = 1 << 20

pytestmark = [stock.needs(VMLINUZ), stock.needs_busybox]

INIT = "echo up; setsid cttyhack sh -c 'while read line; do eval \"$line\"; done'"


@pytest.fixture(name="start")
def make_start(tmp_path, monkeypatch):
    """start(name): an idle guest. All have one library of common pages."""
    runtime = tempfile.mkdtemp(prefix="husk-test-", dir="/tmp")  # short: it holds sockets
    monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
    monkeypatch.setenv("HUSK_CACHE_DIR", str(tmp_path))
    archive = initramfs.make(tmp_path / "initramfs", INIT)

    def start(name, *options):
        return terminal.Terminal("run", "--name", name, "--accel", "soft", "-k", VMLINUZ, "-i",
                                 archive, "-m", "256", "-a", "quiet", *options)
    yield start
    terminal.Terminal.end_all()
    shutil.rmtree(runtime)


def statistics(name):
    return json.loads(husk.run("stat", name, "--json").stdout)


def wait_for(name, condition):
    """The statistics of the guest as soon as they fulfil the condition."""
    deadline = time.monotonic() + SECONDS
    while not condition(seen := statistics(name)):
        assert time.monotonic() < deadline, seen
        time.sleep(0.5)
    return seen


def shares(seen):
    return seen["counters"]["idle_common_bytes"] > 10 * MIB


def checksum_in_guest(guest):
    guest.type(b"sha256sum </bin/busybox\n")
    digest = hashlib.sha256(initramfs.BUSYBOX.read_bytes()).hexdigest()
    guest.expect(digest.encode())


def test_idle_guests_share_what_they_have_in_common(start):
    guests = {name: start(name) for name in ("one", "two")}
    for guest in guests.values():
        guest.expect(b"up\r")
    for name, guest in guests.items():
        seen = wait_for(name, shares)
        kinds = seen["process"]["kinds"]
        assert seen["counters"]["idle_zero_bytes"] > MIB
        # What no other guest has, husk included; before the look there are some 60 MiB.
        assert seen["process"]["private_bytes"] < 32 * MIB, kinds
        assert sum(kind["rss_bytes"] for kind in kinds.values()) == seen["process"]["rss_bytes"]
        checksum_in_guest(guest)

    # A reset starts from the files again, whatever was mapped over them.
    guests["one"].type(b"reboot -f\n")
    guests["one"].expect(b"up\r")
    checksum_in_guest(guests["one"])
    checksum_in_guest(guests["two"])
    for guest in guests.values():
        guest.type(b"poweroff -f\n")
        assert guest.end() == 0


def test_without_sharing_zeros_are_given_back_all_the_same(start):
    guest = start("alone", "--reclaim", "private")
    guest.expect(b"up\r")
    seen = wait_for("alone", lambda seen: seen["counters"]["idle_looks"] > 0)
    assert seen["counters"]["idle_zero_bytes"] > MIB
    assert seen["counters"]["idle_common_bytes"] == 0
    checksum_in_guest(guest)
    guest.type(b"poweroff -f\n")
    assert guest.end() == 0
