# SPDX-License-Identifier: Apache-2.0
"""A husk command on a pseudo-terminal."""
import os
import pty
import select
import subprocess
import termios
import time

import husk

SECONDS = 30


class Terminal:
    running = []
    seconds = SECONDS

    def __init__(self, *arguments):
        self.parent, self.child = pty.openpty()
        self.before = termios.tcgetattr(self.child)
        self.process = subprocess.Popen([husk.HUSK, *map(str, arguments)], stdin=self.child,
                                        stdout=self.child, stderr=self.child)
        self.seen = b""
        Terminal.running.append(self)

    def read(self, seconds):
        """Takes what has come, or comes within these seconds; whether there was any."""
        ready, _, _ = select.select([self.parent], [], [], seconds)
        if ready:
            self.seen += os.read(self.parent, 4096)
        return bool(ready)

    def expect(self, wanted):
        """Reads until `wanted` has come, and returns what came before it."""
        deadline = time.monotonic() + self.seconds
        while wanted not in self.seen:
            come = self.read(max(0, deadline - time.monotonic()))
            assert come, f"{wanted!r} did not come; seen: {self.seen!r}"
        before, self.seen = self.seen.split(wanted, 1)
        return before

    def type(self, text):
        _, ready, _ = select.select([], [self.parent], [], self.seconds)
        assert ready, "nobody reads what is typed"
        os.write(self.parent, text)

    def end(self):
        """The exit code; the terminal must be as it was."""
        code = self.process.wait(timeout=self.seconds)
        Terminal.running.remove(self)
        assert termios.tcgetattr(self.child) == self.before, "terminal modes not restored"
        os.close(self.parent)
        os.close(self.child)
        return code

    @classmethod
    def end_all(cls):
        """What a failed test has left running."""
        while cls.running:
            cls.running.pop().process.kill()
