# SPDX-License-Identifier: Apache-2.0
"""Disks whose host fails: a file that misbehaves on command (faulty_file.c), and small file
systems."""
import os
import pathlib
import select
import subprocess
import tempfile

import husk
import pytest

BUILD = pathlib.Path(os.environ.get("HUSK_BUILD", husk.ROOT / "build")) / "tests" / "fault"
PROGRAM = BUILD / "faulty_file"
SECONDS = 60


def complaint(process):
    """What a program that has failed has said last, or its exit code."""
    return (process.stderr.splitlines() or [f"exit code {process.returncode}"])[-1]


def why_no_fuse():
    """Why no file system can be served here, or None."""
    if not PROGRAM.exists():
        return f"{PROGRAM} is missing: libfuse3-dev was not there when husk was built"
    with tempfile.NamedTemporaryFile() as place, tempfile.NamedTemporaryFile() as file:
        tried = subprocess.run([PROGRAM, place.name, file.name], stdin=subprocess.DEVNULL,
                               capture_output=True, text=True, check=False)
    return f"no FUSE: {complaint(tried)}" if tried.returncode != 0 else None


def why_no_mount():
    """Why no file system can be mounted here, or None."""
    with tempfile.TemporaryDirectory() as place:
        tried = subprocess.run(["mount", "-t", "tmpfs", "husk", place], capture_output=True,
                               text=True, check=False)
        if tried.returncode != 0:
            return complaint(tried)
        subprocess.run(["umount", place], check=True)
    return None


def needs(why_not):
    reason = why_not()
    return pytest.mark.skipif(reason is not None, reason=reason or "")


needs_fuse = needs(why_no_fuse)
needs_mount = needs(why_no_mount)


class FaultyFile:
    """`path` is what husk opens; `file` holds its bytes, `stable` those that an fsync has
    reached."""
    running = []

    def __init__(self, directory, size):
        self.path = directory / "faulty.img"
        self.file = directory / "behind.img"
        self.stable = directory / "stable.img"
        self.path.touch()
        for image in (self.file, self.stable):
            image.touch()
            os.truncate(image, size)
        self.process = subprocess.Popen([PROGRAM, self.path, self.file, self.stable],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        FaultyFile.running.append(self)
        assert self.answer() == b"ok\n"

    def answer(self):
        ready, _, _ = select.select([self.process.stdout], [], [], SECONDS)
        assert ready, "the faulty file does not answer"
        return self.process.stdout.readline()

    def tell(self, *command):
        """A command of faulty_file.c."""
        self.process.stdin.write(" ".join(map(str, command)).encode() + b"\n")
        self.process.stdin.flush()
        assert self.answer() == b"ok\n", command

    def close(self):
        """Requests that still wait are answered by the host's kernel."""
        FaultyFile.running.remove(self)
        self.process.stdin.close()
        self.process.wait(timeout=SECONDS)
        self.process.stdout.close()

    @classmethod
    def close_all(cls):
        while cls.running:
            cls.running[-1].close()


class SmallHost:
    """A tmpfs of its own."""
    mounted = []

    def __init__(self, directory, size):
        self.directory = directory
        self.directory.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "husk", self.directory],
                       check=True)
        SmallHost.mounted.append(self)

    @classmethod
    def unmount_all(cls):
        while cls.mounted:
            subprocess.run(["umount", "--lazy", cls.mounted.pop().directory], check=True)
