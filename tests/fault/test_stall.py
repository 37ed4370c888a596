# SPDX-License-Identifier: Apache-2.0
"""A host's storage that does not answer stops nobody but who waits for it, and husk can be ended
all the same."""
import json
import os
import pathlib
import re
import select
import signal
import subprocess
import time

import faulty
import husk
import pytest
from linux_guest import needs_kernel

ENGINES = ["sync", "threads", "mmap", "uring"]
DISK_BYTES = 1 << 20
SECONDS = 60
# What guest/agent.c computes when it is told to spin.
SPUN = "ok 3644761281"
PATIENCE = "the host has not answered for 3 s; husk ends without it"

pytestmark = [faulty.needs_fuse, needs_kernel]


@pytest.fixture
def storage(tmp_path):
    yield faulty.FaultyFile(tmp_path, DISK_BYTES)
    faulty.FaultyFile.close_all()


@pytest.fixture
def healthy(tmp_path):
    path = tmp_path / "healthy.img"
    path.touch()
    os.truncate(path, DISK_BYTES)
    return path


def disks_of(name):
    return json.loads(husk.run("stat", "--json", name).stdout)["disks"]


def stall_a_read(guest, storage):
    """Begins to read sectors of vda that no cache has. The tag."""
    storage.tell("hold", "read")
    tag = guest.begin("read", "vda", 1024, 8)
    storage.tell("wait", 1)
    return tag


def assert_the_rest_goes_on(guest, name):
    """Both vCPUs, the serial console, another disk, and who controls husk from outside."""
    assert [guest.do("spin", cpu) for cpu in (0, 1)] == [SPUN, SPUN]
    assert guest.do("write", "vdb", 8, 8, 7) == "ok"
    assert guest.do("flush", "vdb") == "ok"
    assert guest.do("read", "vdb", 8, 8) == "ok 7"
    assert husk.run("pause", name).returncode == 0
    assert husk.run("resume", name).returncode == 0
    assert disks_of(name)[0]["in_flight"] > 0


# ---- ways to end; each gets a process and a name, and gives the exit code ----

def is_pending(number, process):
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    masks = re.findall(r"^(?:Shd|Sig)Pnd:\t(\w+)$", status, re.MULTILINE)
    return any(int(mask, 16) >> (number - 1) & 1 for mask in masks)


def interrupt_twice(guest, _):
    """The first one is the power button, and this guest does nothing about it. Two at once would
    be one."""
    guest.process.send_signal(signal.SIGINT)
    while is_pending(signal.SIGINT, guest.process):
        time.sleep(0.01)
    guest.process.send_signal(signal.SIGINT)
    return guest.wait()


def stop(guest, name):
    assert husk.run("stop", "--timeout", "0", name).returncode == 0
    return guest.wait()


def kill(guest, name):
    assert husk.run("kill", name).returncode == 0
    return guest.wait()


def kill_9(guest, _):
    guest.process.kill()
    return guest.wait()


ENDS = {"sync": (interrupt_twice, 130), "threads": (stop, 5), "mmap": (kill, 5),
        "uring": (kill_9, -signal.SIGKILL)}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_stalled_disk_stops_nobody_else(boot, storage, healthy, engine):
    guest = boot("-c", 2, "--name", "stalled", "-d", f"{storage.path},engine={engine}",
                 "-d", f"{healthy},engine={engine}")
    reading = stall_a_read(guest, storage)
    assert_the_rest_goes_on(guest, "stalled")
    assert not guest.has_ended(reading)
    storage.tell("release")
    assert guest.expect(reading) == "ok 0"

    for operation in ("write", "fsync"):
        storage.tell("hold", operation)
    writing = guest.begin("write", "vda", 1024, 8, 9)
    flushing = guest.begin("flush", "vda")
    storage.tell("wait", 1)
    assert_the_rest_goes_on(guest, "stalled")
    assert not guest.has_ended(flushing)
    storage.tell("release")
    assert (guest.expect(writing), guest.expect(flushing)) == ("ok", "ok")
    assert guest.do("read", "vda", 1024, 8) == "ok 9"

    end, code = ENDS[engine]
    storage.tell("hold", "read")
    guest.begin("read", "vda", 512, 8)
    storage.tell("wait", 1)
    assert end(guest, "stalled") == code
    told = [] if end == kill_9 else [f"husk: disk {storage.path}: {PATIENCE}"]
    assert guest.messages() == told


def test_reboot_and_power_off_wait_for_the_host(boot, storage):
    """Its answer may still be written to the guest's memory."""
    guest = boot("--name", "stalled", "-d", storage.path)
    stall_a_read(guest, storage)
    guest.begin("reboot")
    assert disks_of("stalled")[0]["in_flight"] > 0
    storage.tell("release")
    guest.expect("ready")
    assert guest.do("read", "vda", 1024, 8) == "ok 0"

    storage.tell("hold", "read")
    guest.begin("read", "vda", 512, 8)
    storage.tell("wait", 1)
    guest.begin("poweroff")
    assert disks_of("stalled")[0]["in_flight"] > 0
    storage.tell("release")
    assert (guest.wait(), guest.messages()) == (0, [])


class BareGuest:
    """One of the guests without an operating system."""

    def __init__(self, name, *options):
        self.process = subprocess.Popen(
            [husk.HUSK, "run", "--accel", "soft", "-k", faulty.BUILD / name, "-m", "16",
             *map(str, options)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            bufsize=0)  # else a line read with the one before is nothing to select

    def line(self):
        ready, _, _ = select.select([self.process.stdout], [], [], SECONDS)
        assert ready, "the guest says nothing"
        return self.process.stdout.readline().strip().decode()

    def press_key(self):
        self.process.stdin.write(b" ")
        self.process.stdin.flush()

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_reset_of_the_device_in_flight_is_done_when_the_host_has_answered(storage, engine):
    """And the vCPU goes on."""
    for operation in ("read", "write"):
        storage.tell("hold", operation)
    guest = BareGuest("resetter.elf", "-d", f"{storage.path},engine={engine}")
    try:
        assert guest.line() == "begun"
        storage.tell("wait", 1)
        guest.press_key()
        assert guest.line() == "resetting"
        storage.tell("release")
        assert [guest.line(), guest.line()] == ["reset", "written"]
    finally:
        guest.kill()
    # The last write, which no earlier one has come in behind.
    assert storage.path.read_bytes()[:4096] == b"\xff" * 4096
