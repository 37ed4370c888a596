# SPDX-License-Identifier: Apache-2.0
"""What a running instance says of its disks. (That guests use them is shown in tests/linux.)"""
import json
import os
import time

import husk
from assembly import ECHO

SECONDS = 30
NONE = {"requests": 0, "bytes": 0, "errors": 0}


def make_disk(directory, size=1 << 20):
    path = directory / "a.img"
    path.touch()
    os.truncate(path, size)
    return path


@husk.needs_accelerator
def test_stat_shows_disks_and_their_counters(guests, tmp_path):
    path = make_disk(tmp_path)
    web = guests("web", ECHO, "-d", f"{path},ro,engine=threads", "-d", f"{path},ephemeral",
                 "-c", "3")
    document = web.request("GET", "/stat")[1]
    assert document["pause_reason"] is None
    assert document["disks"] == [
        {"path": str(path), "size_bytes": 1 << 20, "read_only": True, "engine": "threads",
         "engine_reason": "asked for", "queues": 3, "in_flight": 0, "held": 0, "reads": NONE,
         "writes": NONE, "flushes": NONE, "discards": NONE, "write_zeroes": NONE},
        {"path": str(path), "size_bytes": 1 << 20, "read_only": False, "engine": "mmap",
         "engine_reason": "a private map keeps writes from the file", "queues": 3, "in_flight": 0,
         "held": 0, "reads": NONE, "writes": NONE, "flushes": NONE, "discards": NONE,
         "write_zeroes": NONE}]
    lines = dict(line.split(maxsplit=1) for line in husk.run("stat", "web").stdout.splitlines())
    assert lines["pause_reason"] == "-"
    assert lines["disks.0.path"] == str(path)
    assert lines["disks.0.read_only"] == "yes"
    assert lines["disks.1.read_only"] == "no"
    assert lines["disks.1.write_zeroes.requests"] == "0"


@husk.needs_accelerator
def test_resize_takes_the_files_new_size(guests, tmp_path):
    path = make_disk(tmp_path)
    web = guests("web", ECHO, "-d", path)
    os.truncate(path, 3 << 20)
    assert web.request("GET", "/stat")[1]["disks"][0]["size_bytes"] == 1 << 20
    result = husk.run("resize", "web")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    deadline = time.monotonic() + SECONDS
    while web.request("GET", "/stat")[1]["disks"][0]["size_bytes"] != 3 << 20:
        assert time.monotonic() < deadline
        time.sleep(0.01)


@husk.needs_accelerator
def test_a_disk_ends_with_its_guest_and_can_be_used_again(guests, tmp_path):
    path = make_disk(tmp_path)
    first = guests("first", ECHO, "-d", path)
    refused = husk.run("run", "--firmware", first.image, "-d", path)
    assert (refused.returncode, refused.stderr) == (
        1, f"husk: disk {path}: is in use by another writer: give each guest a copy, or open it "
        "read-only or ephemeral in all\n")
    assert json.loads(husk.run("list", "--json").stdout)["instances"][0]["name"] == "first"
    assert husk.run("kill", "first").returncode == 0
    first.wait()
    guests("second", ECHO, "-d", path)
