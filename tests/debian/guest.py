# SPDX-License-Identifier: Apache-2.0
"""The Debian that tools/make-debian-image has made, and a husk that runs it."""
import os
import pathlib
import re
import subprocess
import time

import husk
import pytest
from terminal import Terminal

DEBIAN = pathlib.Path(os.environ.get("HUSK_DEBIAN", husk.ROOT / "build" / "debian"))
ROOT = DEBIAN / "root.img"
DISK = DEBIAN / "disk.img"
VMLINUZ = DEBIAN / "vmlinuz"
INITRD = DEBIAN / "initrd.img"

needs_image = pytest.mark.skipif(
    not DISK.exists(), reason=f"no {DISK}; tools/make-debian-image --partitioned makes it")

# Linux does without the self-tests of its ciphers, which are a good part of its boot.
APPEND = "quiet cryptomgr.notests"
# A root that is never written to, and that fsck therefore has no business with.
OVERLAY = "ro overlay fsck.mode=skip"


def copy(directory):
    """An image of one's own, with the holes of the original. It is on the disk: what is still to be
    written there counts as dirty, whoever maps it."""
    image = directory / "root.img"
    subprocess.run(["cp", "--sparse=always", ROOT, image], check=True)
    subprocess.run(["sync", image], check=True)
    return image


def is_clean(image):
    """What e2fsck finds in a file system that nobody repairs: nothing."""
    checked = subprocess.run(["e2fsck", "-fn", image], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    return True


def content(image, path):
    """A file in a file system that is not mounted."""
    return subprocess.run(["debugfs", "-R", f"cat {path}", image], capture_output=True, text=True,
                          check=True).stdout


class Guest(Terminal):
    """Debian on the software CPU, seen from its serial console."""
    seconds = 600

    def __init__(self, *options):
        super().__init__("run", "--accel", "soft", "-m", "384", *options)

    @classmethod
    def with_kernel(cls, append, *options):
        return cls("-k", VMLINUZ, "-i", INITRD, "-a", f"{APPEND} {append}", *options)

    def log_in(self):
        """Until a shell that shows neither prompt nor echo waits for commands."""
        self.expect(b"debian login: ")
        self.type(b"root\n")
        self.expect(b"root@debian:~# ")
        self.type(b"stty -echo; dmesg -n 1; echo re''ady; PS1= exec sh\n")
        self.expect(b"ready")
        return self

    def run(self, command):
        """What the command prints; it must succeed."""
        self.type(command.encode() + b"; echo en''ded $?\n")
        printed = self.expect(b"ended ").replace(b"\r", b"").lstrip(b"\n")
        assert self.expect(b"\r") == b"0", f"{command}: {printed!r}"
        return printed.decode()

    def has_started_well(self):
        """Waits for the end of systemd's start (systemctl's own --wait would need a D-Bus
        daemon); a unit that has failed fails the test."""
        state = "systemctl is-system-running"
        self.run(f"while {state} | grep -q start; do sleep 0.2; done; {state}")
        return True

    def power_off(self):
        """The exit code of husk. Nobody else reads what the guest says meanwhile."""
        self.type(b"sync; poweroff\n")
        deadline = time.monotonic() + self.seconds
        while self.process.poll() is None and time.monotonic() < deadline:
            self.read(0.1)
        return self.end()


def mapped(process, file):
    """Sums of the lines of smaps about a process's maps of a file, in KiB (proc(5))."""
    sums = {}
    ours = False
    for line in pathlib.Path(f"/proc/{process.pid}/smaps").read_text().splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            ours = line.endswith(str(file))
        elif ours and line.endswith(" kB"):
            name, size = line.split(":")
            sums[name] = sums.get(name, 0) + int(size.split()[0])
    return sums
