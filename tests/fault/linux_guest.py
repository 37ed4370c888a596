# SPDX-License-Identifier: Apache-2.0
"""Debian's stock cloud kernel with guest/agent.c, which does to disks what a test says."""
import os
import select
import stat
import subprocess
import time

import faulty
import husk
import initramfs
import stock

MODULES = stock.KERNELS / "cloud-amd64" / "modules"
# In the order of guest/agent.c.
NAMES = ["virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci",
         "virtio_blk"]
SECONDS = 60

needs_kernel = stock.needs(stock.CLOUD, *(MODULES / f"{name}.ko" for name in NAMES))


def make_archive(path):
    """The initramfs: the agent and the modules that it loads."""
    members = [("init", stat.S_IFREG | 0o755, (faulty.BUILD / "agent").read_bytes())]
    members += [(f"{name}.ko", stat.S_IFREG | 0o644, (MODULES / f"{name}.ko").read_bytes())
                for name in NAMES]
    entries = [initramfs.entry(number, *member) for number, member in enumerate(members, 1)]
    path.write_bytes(b"".join(entries) + initramfs.entry(0, "TRAILER!!!", 0))
    return path


class Guest:
    """A running husk. Disks are vda, vdb and so on, in the order of their options. Linux does
    without the self-tests of its ciphers, which are two thirds of its boot."""
    running = []

    def __init__(self, archive, directory, *options):
        self.errors = directory / "errors"
        self.outcomes = {}
        self.tags = 0
        self.seen = b""
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [husk.HUSK, "run", "--accel", "soft", "-k", stock.CLOUD, "-i", archive,
                 "-m", "128", "-a", "loglevel=1 cryptomgr.notests", *map(str, options)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)
        Guest.running.append(self)
        self.expect("ready")

    # ---- its console ----

    def read_lines(self, deadline):
        """Waits for output, and takes the whole lines of it."""
        ready, _, _ = select.select([self.process.stdout], [], [],
                                    max(0, deadline - time.monotonic()))
        assert ready, f"nothing more came; last: {self.seen!r}"
        piece = os.read(self.process.stdout.fileno(), 65536)
        assert piece, f"husk has ended: {self.messages()}"
        *lines, self.seen = (self.seen + piece).split(b"\n")
        for line in lines:
            tag, _, outcome = line.decode(errors="replace").strip().partition(" ")
            self.outcomes[tag] = outcome

    def expect(self, tag):
        """The outcome of that command."""
        deadline = time.monotonic() + SECONDS
        while tag not in self.outcomes:
            self.read_lines(deadline)
        return self.outcomes.pop(tag)

    def begin(self, *command):
        """Sends a command; the tag by which to ask for its outcome."""
        self.tags += 1
        tag = f"t{self.tags}"
        self.process.stdin.write(" ".join(map(str, [tag, *command])).encode() + b"\n")
        self.process.stdin.flush()
        return tag

    def do(self, *command):
        return self.expect(self.begin(*command))

    def has_ended(self, tag):
        """Whether its outcome was there before that of a command that needs no disk."""
        self.do("spin", 0)
        return tag in self.outcomes

    # ---- husk ----

    def messages(self):
        """What husk has told the operator so far."""
        return self.errors.read_text().splitlines()

    def wait(self):
        """The exit code."""
        code = self.process.wait(timeout=SECONDS)
        self.forget()
        return code

    def forget(self):
        if self in Guest.running:
            Guest.running.remove(self)
        self.process.stdin.close()
        self.process.stdout.close()

    @classmethod
    def kill_all(cls):
        while cls.running:
            guest = cls.running[-1]
            guest.process.kill()
            guest.forget()
