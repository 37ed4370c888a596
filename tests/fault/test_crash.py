# SPDX-License-Identifier: Apache-2.0
"""kill -9 of husk, and a loss of power of the storage, while a guest writes: what the guest saw
flushed is there. The guest is guest/writer.c."""
import array
import os
import pathlib
import random
import re
import signal
import subprocess

import faulty
import husk
import pytest

WRITER = faulty.BUILD / "writer.elf"
BLOCK_BYTES = 4096
BLOCKS = 256
STRIDE = 37
KILLS = 50
POWER_CUTS = 25  # of each engine
# After how many reports of the guest at most; those to a real disk take their time.
REPORTS = 40
REPORTS_OF_A_FILE = 10
ENGINES = ["sync", "threads", "mmap", "uring"]


def words(tag, number):
    """What write number `number` of run `tag` has written."""
    first = tag << 40 | number << 16
    return array.array("Q", range(first, first + BLOCK_BYTES // 8))


def is_no_older(found, tag, number):
    """Whether a block has what that write has written, or what later ones to the same block have:
    the guest may be ahead of its reports, and be killed in the midst of a write."""
    if found == words(tag, number):
        return True
    return all(word >> 40 == tag and word & 0xffff == index and
               (word >> 16 & 0xffffff) in range(number, 1 << 24, BLOCKS)
               for index, word in enumerate(found))


def lost_writes(image, tag, flushed):
    """Those of the flushed writes that are not in the image."""
    content = array.array("Q", image.read_bytes())
    size = BLOCK_BYTES // 8
    at = {number: number * STRIDE % BLOCKS * size
          for number in range(max(0, flushed - BLOCKS), flushed)}
    return [number for number, start in at.items()
            if not is_no_older(content[start:start + size], tag, number)]


def run_until_killed(path, engine, tag, reports):
    """Kills husk when the guest has reported so many times. How many writes the guest has last
    reported as flushed."""
    with subprocess.Popen(
            [husk.HUSK, "run", "--accel", "soft", "-k", WRITER, "--cmdline", str(tag), "-m", "16",
             "-d", f"{path},engine={engine}"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        seen = [process.stdout.readline() for _ in range(reports)]
        process.send_signal(signal.SIGKILL)
        text = b"".join(seen) + process.stdout.read()
        errors = process.stderr.read()
    assert (process.returncode, errors) == (-signal.SIGKILL, b"")
    return int(re.findall(rb"^flushed (\d+)$", text.replace(b"\r", b""), re.MULTILINE)[-1])


def test_what_was_flushed_survives_a_kill_of_husk(tmp_path):
    """Each start takes the disk over from an engine that was killed just before."""
    image = tmp_path / "disk.img"
    image.touch()
    os.truncate(image, BLOCKS * BLOCK_BYTES)
    chance = random.Random(0)
    for tag in range(1, KILLS + 1):
        engine = ENGINES[tag % len(ENGINES)]
        flushed = run_until_killed(image, engine, tag, chance.randint(2, REPORTS_OF_A_FILE))
        assert lost_writes(image, tag, flushed) == [], (engine, tag, flushed)


@pytest.fixture
def loop_device(tmp_path):
    """A block device, with an image behind it."""
    image = tmp_path / "disk.img"
    image.touch()
    os.truncate(image, BLOCKS * BLOCK_BYTES)
    made = subprocess.run(["losetup", "--find", "--show", image], capture_output=True, text=True,
                          check=False)
    if made.returncode != 0:
        pytest.skip(f"no loop device: {faulty.complaint(made)}")
    yield pathlib.Path(made.stdout.strip())
    subprocess.run(["losetup", "--detach", made.stdout.strip()], check=True)


def test_what_was_flushed_to_a_block_device_survives_a_kill_of_husk(loop_device):
    for tag, engine in enumerate(ENGINES, 1):
        flushed = run_until_killed(loop_device, engine, tag, REPORTS_OF_A_FILE)
        assert lost_writes(loop_device, tag, flushed) == [], (engine, flushed)


@faulty.needs_fuse
@pytest.mark.parametrize("engine", ENGINES)
def test_what_was_flushed_survives_a_loss_of_power(tmp_path, engine):
    """The storage forgets what no fsync has reached."""
    storage = faulty.FaultyFile(tmp_path, BLOCKS * BLOCK_BYTES)
    chance = random.Random(engine)
    for tag in range(1, POWER_CUTS + 1):
        flushed = run_until_killed(storage.path, engine, tag, chance.randint(2, REPORTS))
        assert lost_writes(storage.stable, tag, flushed) == [], (tag, flushed)
