# SPDX-License-Identifier: Apache-2.0
"""Hosts that fail: the guest gets the error, the operator one message, and nothing dies.

One guest an engine has a disk for each kind of trouble. What is told is compared as a whole at
the end.
"""
import os
import re
import time

import faulty
import husk
import linux_guest
import pytest
from linux_guest import needs_kernel

ENGINES = ["sync", "threads", "mmap", "uring"]
KIB = 1024
MIB = 1024 * KIB
SECTOR = 512
DISK_BYTES = MIB
NO_SPACE = 28
NO_SUPPORT = 95
INPUT_OUTPUT = 5
FULL = "No space left on device"
BROKEN = "Input/output error"

pytestmark = [faulty.needs_fuse, faulty.needs_mount, needs_kernel]


def image(path, size, content=b""):
    path.write_bytes(content)
    os.truncate(path, size)
    return path


def fill(directory):
    """Takes all the room of a file system. Gives the file that has it."""
    filler = directory / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while file.write(b"f" * 4 * KIB) > 0:
                pass
        except OSError as error:
            assert error.errno == NO_SPACE
    return filler


class Machine:
    """A guest, and its disks by name: `device` has what Linux calls them."""

    def __init__(self, engine, archive, directory):
        self.engine = engine
        self.name = f"faults-{engine}"
        self.expected = []
        self.device = {}
        self.path = {}
        self.options = ["--name", self.name]
        self.faulty = {}
        for name in ("reads", "writes", "flushes", "room", "mixed", "ephemeral",
                     "stopped-reads", "stopped-flushes"):
            (directory / name).mkdir()
            self.faulty[name] = faulty.FaultyFile(directory / name, DISK_BYTES)
        small = {name: faulty.SmallHost(directory / f"{name}-host", size)
                 for name, size in (("full", "16m"), ("stop", "256k"), ("default", "256k"))}
        self.filler = {name: fill(small[name].directory) for name in ("stop", "default")}

        self.add("reads", self.faulty["reads"].path)
        self.add("writes", self.faulty["writes"].path)
        self.add("flushes", self.faulty["flushes"].path)
        self.add("room", self.faulty["room"].path, "werror=report")
        self.add("mixed", self.faulty["mixed"].path)
        self.add("full", image(small["full"].directory / "disk.img", 32 * MIB),
                 "werror=report")
        self.add("stop", image(small["stop"].directory / "disk.img", DISK_BYTES), "werror=stop")
        self.add("default", image(small["default"].directory / "disk.img", DISK_BYTES))
        self.add("shrinking", image(directory / "shrinking.img", DISK_BYTES))
        self.add("read-only", image(directory / "read-only.img", DISK_BYTES, b"\x07" * 4 * KIB),
                 "ro")
        self.path["read-only"].chmod(0o444)
        self.add("stopped-reads", self.faulty["stopped-reads"].path, "rerror=stop")
        self.add("stopped-flushes", self.faulty["stopped-flushes"].path, "werror=stop")
        if engine == "mmap":
            self.add("ephemeral", self.faulty["ephemeral"].path, "ephemeral")
        self.guest = linux_guest.Guest(archive, directory, *self.options)

    def add(self, name, path, *more):
        self.device[name] = f"vd{chr(ord('a') + len(self.device))}"
        self.path[name] = path
        self.options += ["-d", ",".join([str(path), f"engine={self.engine}", *more])]

    def do(self, command, name, *arguments):
        return self.guest.do(command, self.device[name], *arguments)

    def begin(self, command, name, *arguments):
        return self.guest.begin(command, self.device[name], *arguments)

    def expect_message(self, name, text):
        """It must come, in its place, and no other."""
        self.expected.append(f"husk: disk {self.path[name]}: {text}")

    def expect_pause(self, name, text):
        self.expect_message(name, f"{text}; the guest is paused. Mend that, then: husk resume "
                            f"{self.name}")

    def wait_until_paused(self):
        deadline = time.monotonic() + linux_guest.SECONDS
        while "\nstate                        paused\n" not in husk.run("stat", self.name).stdout:
            assert time.monotonic() < deadline, "the guest is not paused"
            time.sleep(0.02)

    def resume(self):
        assert husk.run("resume", self.name).returncode == 0


@pytest.fixture(scope="module", params=ENGINES)
def machine(request, archive, tmp_path_factory):
    started = Machine(request.param, archive, tmp_path_factory.mktemp("machine"))
    yield started
    linux_guest.Guest.kill_all()
    faulty.FaultyFile.close_all()
    faulty.SmallHost.unmount_all()


def test_a_read_that_the_host_fails_is_an_error_of_that_read(machine):
    machine.faulty["reads"].tell("fail", "read", INPUT_OUTPUT)
    assert machine.do("read", "reads", 1024, 8) == "EIO"
    machine.faulty["reads"].tell("heal")
    assert machine.do("read", "reads", 1024, 8) == "ok 0"
    machine.expect_message("reads", f"read of 4096 bytes at byte 524288 failed: {BROKEN}")


def test_a_short_write_of_the_host_is_completed(machine):
    if machine.engine == "mmap":
        return  # the host's kernel writes then, and takes a short write for a whole one
    storage = machine.faulty["reads"]
    storage.tell("short", "write")
    assert machine.do("write", "reads", 256, 64, 3) == "ok"
    storage.tell("heal")
    assert machine.do("read", "reads", 256, 64) == "ok 3"
    assert storage.file.read_bytes()[256 * SECTOR:320 * SECTOR] == b"\3" * 64 * SECTOR


def test_a_write_that_the_host_fails_is_an_error_of_that_write(machine):
    """Or of the next FLUSH, if it is only then that the host writes."""
    storage = machine.faulty["writes"]
    storage.tell("fail", "write", INPUT_OUTPUT)
    written = machine.do("write", "writes", 1024, 8, 5)
    if machine.engine == "mmap":
        assert (written, machine.do("flush", "writes")) == ("ok", "EIO")
        machine.expect_message("writes", f"flush failed: {BROKEN}")
    else:
        assert written == "EIO"
        machine.expect_message("writes", f"write of 4096 bytes at byte 524288 failed: {BROKEN}")
    storage.tell("heal")
    assert machine.do("write", "writes", 1024, 8, 6) == "ok"
    assert machine.do("read", "writes", 1024, 8) == "ok 6"


def test_a_flush_that_failed_once_never_succeeds_again(machine):
    """What the host could not write then it may have forgotten."""
    storage = machine.faulty["flushes"]
    storage.tell("fail", "fsync", INPUT_OUTPUT)
    assert machine.do("write", "flushes", 8, 8, 5) == "ok"
    assert machine.do("flush", "flushes") == "EIO"
    storage.tell("heal")
    assert machine.do("flush", "flushes") == "EIO"
    assert machine.do("write", "flushes", 8, 8, 6) == "ok"
    assert machine.do("read", "flushes", 8, 8) == "ok 6"
    machine.expect_message("flushes", f"flush failed: {BROKEN}")


def test_room_that_cannot_be_reserved(machine):
    """The engine mmap asks for room before it writes. A host that has none fails the write, and
    with one that cannot tell the write is made by a system call."""
    storage = machine.faulty["room"]
    storage.tell("fail", "allocate", NO_SPACE)
    written = machine.do("write", "room", 64, 8, 5)
    if machine.engine == "mmap":
        assert written == "EIO"
        machine.expect_message("room", f"write of 4096 bytes at byte 32768 failed: {FULL}")
    else:
        assert written == "ok"
    storage.tell("fail", "allocate", NO_SUPPORT)
    assert machine.do("write", "room", 64, 8, 6) == "ok"
    assert machine.do("read", "room", 64, 8) == "ok 6"
    assert storage.file.read_bytes()[64 * SECTOR:72 * SECTOR] == b"\6" * 8 * SECTOR


def test_a_full_host_fails_writes_and_is_told_once(machine):
    assert machine.do("write", "full", 0, 32 * MIB // SECTOR, 5) == "EIO"
    assert machine.do("flush", "full") == "ok"
    machine.expect_message("full", f"write of N bytes at byte N failed: {FULL}")


@pytest.mark.parametrize("name", ["stop", "default"])
def test_a_guest_that_stops_for_a_full_host_loses_nothing(machine, name):
    first = machine.begin("write", name, 1024, 8, 5)
    machine.wait_until_paused()
    machine.filler[name].unlink()
    machine.resume()
    assert machine.guest.expect(first) == "ok"
    assert machine.do("flush", name) == "ok"
    assert machine.do("read", name, 1024, 8) == "ok 5"
    assert machine.path[name].read_bytes()[512 * KIB:516 * KIB] == b"\5" * 4 * KIB
    machine.expect_pause(name, f"write of 4096 bytes at byte 524288 failed: {FULL}")


def test_a_resume_without_room_stops_again(machine):
    name = "stop"
    filler = fill(machine.path[name].parent)
    writing = machine.begin("write", name, 1536, 8, 6)
    for again in (True, True, False):
        machine.wait_until_paused()
        machine.expect_pause(name, f"write of 4096 bytes at byte 786432 failed: {FULL}")
        if again:
            machine.resume()
    filler.unlink()
    machine.resume()
    assert machine.guest.expect(writing) == "ok"
    assert machine.do("read", name, 1536, 8) == "ok 6"


def test_a_guest_that_stops_for_a_failed_read_gets_it_in_the_end(machine):
    storage = machine.faulty["stopped-reads"]
    storage.tell("fail", "read", INPUT_OUTPUT)
    reading = machine.begin("read", "stopped-reads", 1024, 8)
    machine.wait_until_paused()
    storage.tell("heal")
    machine.resume()
    assert machine.guest.expect(reading) == "ok 0"
    machine.expect_pause("stopped-reads", f"read of 4096 bytes at byte 524288 failed: {BROKEN}")


def test_a_guest_that_stops_for_a_failed_flush_gets_the_error_in_the_end(machine):
    """Another try would succeed, and might be a lie."""
    storage = machine.faulty["stopped-flushes"]
    assert machine.do("write", "stopped-flushes", 8, 8, 5) == "ok"
    storage.tell("fail", "fsync", INPUT_OUTPUT)
    flushing = machine.begin("flush", "stopped-flushes")
    machine.wait_until_paused()
    storage.tell("heal")
    machine.resume()
    assert machine.guest.expect(flushing) == "EIO"
    machine.expect_pause("stopped-flushes", f"flush failed: {BROKEN}")


def test_only_a_full_host_stops_the_guest_unless_told_otherwise(machine):
    if machine.engine == "mmap":
        machine.faulty["mixed"].tell("fail", "allocate", INPUT_OUTPUT)
    machine.faulty["mixed"].tell("fail", "write", INPUT_OUTPUT)
    assert machine.do("write", "mixed", 8, 8, 5) == "EIO"
    machine.expect_message("mixed", f"write of 4096 bytes at byte 4096 failed: {BROKEN}")


def test_a_file_that_has_become_shorter_fails_reads_of_what_is_gone(machine):
    assert machine.do("write", "shrinking", 0, 8, 4) == "ok"
    os.truncate(machine.path["shrinking"], 4 * KIB)
    assert machine.do("read", "shrinking", 1024, 8) == "EIO"
    assert machine.do("read", "shrinking", 0, 8) == "ok 4"
    machine.expect_message("shrinking", f"read of 4096 bytes at byte 524288 failed: {BROKEN}")


def test_a_file_that_has_grown_is_a_larger_disk(machine):
    os.truncate(machine.path["shrinking"], 2 * DISK_BYTES)
    assert husk.run("resize", machine.name).returncode == 0
    deadline = time.monotonic() + linux_guest.SECONDS
    while machine.do("size", "shrinking") != f"ok {2 * DISK_BYTES // SECTOR}":
        assert time.monotonic() < deadline, "the guest does not see the new size"
    for sector, byte in ((8, 1), (1024, 2), (4088, 3)):
        assert machine.do("write", "shrinking", sector, 8, byte) == "ok"
        assert machine.do("read", "shrinking", sector, 8) == f"ok {byte}"
    assert machine.do("flush", "shrinking") == "ok"
    content = machine.path["shrinking"].read_bytes()
    for sector, byte in ((0, 4), (8, 1), (1024, 2), (4088, 3)):
        assert content[sector * SECTOR:(sector + 8) * SECTOR] == bytes([byte]) * 8 * SECTOR


def test_an_ephemeral_disk_gets_over_an_error_of_the_host(machine):
    if machine.engine != "mmap":
        return
    storage = machine.faulty["ephemeral"]
    assert machine.do("write", "ephemeral", 512, 8, 1) == "ok"
    storage.tell("fail", "read", INPUT_OUTPUT)
    assert machine.do("read", "ephemeral", 1024, 8) == "EIO"
    assert machine.do("write", "ephemeral", 1025, 1, 2) == "EIO"
    assert machine.do("read", "ephemeral", 512, 8) == "ok 1"
    storage.tell("heal")
    assert machine.do("read", "ephemeral", 1024, 8) == "ok 0"
    assert machine.do("write", "ephemeral", 1025, 1, 2) == "ok"
    assert machine.do("read", "ephemeral", 1025, 1) == "ok 2"
    assert machine.do("read", "ephemeral", 1032, 8) == "ok 0"
    assert storage.file.read_bytes() == bytes(DISK_BYTES)
    machine.expect_message("ephemeral", f"read of 4096 bytes at byte 524288 failed: {BROKEN}")


def test_a_read_only_file_is_read_and_never_changed(machine):
    path = machine.path["read-only"]
    before = (path.stat().st_mtime_ns, path.read_bytes())
    assert machine.do("read", "read-only", 0, 8) == "ok 7"
    assert machine.do("write", "read-only", 0, 8, 9) == "EPERM"
    assert machine.do("read", "read-only", 0, 8) == "ok 7"
    assert (path.stat().st_mtime_ns, path.read_bytes()) == before


def test_nothing_has_died_and_nothing_else_was_told(machine):
    machine.guest.begin("poweroff")
    assert machine.guest.wait() == 0
    told = machine.guest.messages()
    full = f"husk: disk {machine.path['full']}: "
    told = [re.sub(r"\d+ bytes at byte \d+", "N bytes at byte N", line)
            if line.startswith(full) else line for line in told]
    assert told == machine.expected
