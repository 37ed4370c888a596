# SPDX-License-Identifier: Apache-2.0
"""Running instances of husk with tiny guests, and what is asked of them."""
import http.client
import json
import signal
import socket
import subprocess
import time

import husk

SECONDS = 30


class Connection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path):
        super().__init__("localhost", timeout=SECONDS)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(SECONDS)
        self.sock.connect(self.path)


class Instance:
    """A `husk run` of its own."""

    def __init__(self, runtime, directory, name, program, options):
        self.name = name
        self.directory = runtime / "husk" / name
        images = directory / name
        images.mkdir(exist_ok=True)
        self.image = husk.firmware(images, program)
        self.process = subprocess.Popen(
            [husk.HUSK, "run", "--firmware", self.image, "--name", name, *options],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def wait_ready(self):
        """Until the guest has said R and the instance answers."""
        assert self.process.stdout.read(1) == b"R", self.process.stderr.read()
        deadline = time.monotonic() + SECONDS
        while husk.run("stat", self.name).returncode != 0:
            assert time.monotonic() < deadline, "the instance does not answer"
            time.sleep(0.02)

    def wait(self):
        """The exit code, once it has ended."""
        return self.process.wait(timeout=SECONDS)

    def finish(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()

    def request(self, method, path, body=None):
        """Status and parsed body (None if there is none)."""
        connection = Connection(self.directory / "api.sock")
        connection.request(method, path, body=body)
        response = connection.getresponse()
        text = response.read()
        connection.close()
        return response.status, json.loads(text) if text else None

    def console(self):
        connected = socket.socket(socket.AF_UNIX)
        connected.settimeout(SECONDS)
        connected.connect(str(self.directory / "console.sock"))
        return connected


def receive(connected, wanted):
    """Reads exactly `wanted`."""
    got = b""
    while len(got) < len(wanted):
        piece = connected.recv(len(wanted) - len(got))
        assert piece, f"closed after {got!r}"
        got += piece
    assert got == wanted
