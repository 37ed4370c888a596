# SPDX-License-Identifier: Apache-2.0
"""Linux's virtio_console, as a pipe and as a terminal of a changing size."""
import fcntl
import signal
import struct
import subprocess
import termios

import husk
import initramfs
import pytest
import stock
import terminal

VMLINUZ = stock.CLOUD
MODULES = stock.KERNELS / "cloud-amd64" / "modules"
# In the order in which they need each other.
NAMES = ["virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci",
         "virtio_console"]
SECONDS = 180

pytestmark = [
    pytest.mark.skipif(not all((MODULES / f"{name}.ko").exists() for name in NAMES),
                       reason=f"no console in {MODULES}; tools/get-kernel cloud-amd64 fetches it"),
    stock.needs_busybox,
]

LOAD = "\n".join(f"insmod /{name}.ko" for name in NAMES)


@pytest.fixture(name="command")
def make_command(tmp_path, monkeypatch):
    """The arguments that let /session run on the console."""
    monkeypatch.setenv("HUSK_CACHE_DIR", str(tmp_path))

    def command(session):
        files = [(f"{name}.ko", (MODULES / f"{name}.ko").read_bytes()) for name in NAMES]
        archive = initramfs.make(
            tmp_path / "initramfs",
            f"mount -t sysfs sys /sys\n{LOAD}\nsetsid sh -c 'sh /session <>/dev/hvc0 >&0 2>&1'",
            files + [("session", session.encode())])
        return ["run", "--accel", "soft", "-k", VMLINUZ, "-i", archive, "-m", "256", "--console",
                "virtio", "--timeout", SECONDS, "-a", "quiet"]
    return command


def test_output_and_input_pass_whole_and_wait_for_each_other(command):
    # The input is there long before its reader; the output is more than the queue holds.
    text = "".join(f"line {i}\n" for i in range(2000))
    result = husk.run(*command("""
stty -echo raw
echo ready
head -c %d | md5sum
seq 1 20000
""" % len(text)), input=text, timeout=SECONDS + 30)
    lines = [line.rstrip("\r") for line in result.stdout.splitlines()]
    lines = lines[lines.index("ready"):]
    expected = subprocess.run(["md5sum"], input=text, capture_output=True, text=True,
                              check=True).stdout.strip()
    assert lines[1] == expected
    assert lines[2:] == [str(i) for i in range(1, 20001)]
    assert (result.returncode, result.stderr) == (0, "")


def set_size(console, rows, columns):
    fcntl.ioctl(console.child, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    console.process.send_signal(signal.SIGWINCH)


def test_size_of_the_terminal_is_known_and_follows_it(command, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(terminal, "SECONDS", SECONDS)
    console = terminal.Terminal(*command("""
echo begin
while [ "$(stty size)" != "40 100" ]; do sleep 0.1; done
echo first
while [ "$(stty size)" != "50 120" ]; do sleep 0.1; done
echo second
while [ "$(stty size)" != "60 140" ]; do sleep 0.1; done
echo third
"""), "--name", "guest")
    set_size(console, 40, 100)
    console.expect(b"first")
    set_size(console, 50, 120)
    console.expect(b"second")
    attached = terminal.Terminal("console", "guest")
    attached.expect(b"Ctrl-A x detaches")
    set_size(attached, 60, 140)
    console.expect(b"third")
    assert console.end() == 0
    assert attached.end() == 0
