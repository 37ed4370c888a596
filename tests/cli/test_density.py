# SPDX-License-Identifier: Apache-2.0
"""Many small guests at once: all come up, none is lost, all end when told."""
import json
import pathlib
import shutil
import signal
import subprocess
import tempfile

import husk
import kernels
import pytest

COUNT = 200
SECONDS = 60
# Says R and sleeps with interrupts off.
READY_THEN_SLEEP = """
    putc 'R'
1:  hlt
    jmp 1b
"""

@pytest.fixture(name="runtime")
def make_runtime(monkeypatch):
    directory = tempfile.mkdtemp(prefix="husk-test-", dir="/tmp")  # short: it holds sockets
    monkeypatch.setenv("XDG_RUNTIME_DIR", directory)
    yield pathlib.Path(directory)
    shutil.rmtree(directory)


@pytest.fixture(name="guests")
def start_guests(tmp_path, runtime):
    assert runtime.exists()
    kernel = kernels.pvh_kernel(tmp_path, READY_THEN_SLEEP)
    processes = [subprocess.Popen([husk.HUSK, "run", "--accel", "soft", "-m", "16", "--name",
                                   f"guest{i}", "-k", kernel],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
                 for i in range(COUNT)]
    yield processes
    for process in processes:
        process.kill()
        process.wait()
        process.stdout.close()


def private_kib(process):
    lines = pathlib.Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines()[1:]
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))


def test_two_hundred_guests_come_up_and_end(guests):
    for process in guests:
        assert process.stdout.read(1) == b"R"
    listed = json.loads(husk.run("list", "--json").stdout)["instances"]
    assert {instance["name"] for instance in listed} == {f"guest{i}" for i in range(COUNT)}
    assert all(instance["state"] == "running" for instance in listed)
    # Beside the one page that the guest has written.
    assert sum(map(private_kib, guests)) < COUNT * 3 * 1024
    for process in guests:
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGTERM)
    assert [process.wait(timeout=SECONDS) for process in guests] == [128 + signal.SIGTERM] * COUNT
    assert json.loads(husk.run("list", "--json").stdout)["instances"] == []
