# SPDX-License-Identifier: Apache-2.0
"""What the command line says of disks before any guest uses them: refusals, locks, plans."""
import fcntl
import json
import os

import husk
import pytest

GUEST = "    putc 'O'\n    end\n"


def image(directory, name="a.img", size=4096):
    path = directory / name
    path.touch()
    os.truncate(path, size)
    return path


def run(directory, *arguments):
    """Exit code, console and messages of a guest that does nothing."""
    result = husk.run("run", "--firmware", husk.firmware(directory, GUEST), *arguments,
                      cwd=directory)
    return result.returncode, result.stdout, result.stderr


@husk.needs_accelerator
def test_a_guest_with_each_kind_of_disk_ends_as_without(tmp_path):
    image(tmp_path)
    image(tmp_path, "with,comma.img")
    assert run(tmp_path, "-d", "a.img,ro", "--disk", "a.img,ephemeral", "-drive",
               "file=with,,comma.img,format=raw,if=virtio") == (0, "O", "")


@pytest.mark.parametrize("disk, message", [
    ("a.img,format=qcow2", "husk: -d: format 'qcow2' is not supported, only raw is; make a raw disk "
     "of it first, as with 'qemu-img convert -O raw'\n"),
    ("a.img,engine=fast", "husk: -d: engine 'fast' is unknown; choose auto, sync, threads, mmap or "
     "uring\n"),
    ("a.img,readonyl", "husk: -d: 'readonyl' is no option of a disk; did you mean 'readonly'?\n"),
])
def test_what_cannot_be_meant_is_a_usage_error(tmp_path, disk, message):
    assert run(tmp_path, "-d", disk) == (2, "", message)


@pytest.mark.parametrize("disk, message", [
    ("absent.img", "husk: disk absent.img: cannot open: No such file or directory\n"),
    (".", "husk: disk .: cannot open: Is a directory\n"),
    (".,ro", "husk: disk .: is a directory, not a disk\n"),
    ("/dev/null", "husk: disk /dev/null: is neither a regular file nor a block device\n"),
    ("empty.img", "husk: disk empty.img: has 0 bytes: a disk needs at least one sector of 512\n"),
])
@husk.needs_accelerator
def test_a_file_that_is_no_disk_is_named_with_the_reason(tmp_path, disk, message):
    image(tmp_path, "empty.img", 0)
    assert run(tmp_path, "-d", disk) == (1, "", message)


@husk.needs_accelerator
def test_bytes_behind_the_last_sector_are_warned_of(tmp_path):
    image(tmp_path, size=1000)
    assert run(tmp_path, "-d", "a.img") == (
        0, "O", "husk: disk a.img: has 1000 bytes, which is no multiple of 512: the guest does not "
        "see the last 488\n")


@husk.needs_accelerator
def test_a_file_is_one_writers_alone(tmp_path):
    image(tmp_path)
    taken = ("husk: disk a.img: is in use by another writer: give each guest a copy, or open it "
             "read-only or ephemeral in all\n")
    assert run(tmp_path, "-d", "a.img", "-d", "a.img") == (1, "", taken)
    assert run(tmp_path, "-d", "a.img", "-d", "a.img,ro") == (1, "", taken)
    assert run(tmp_path, "-d", "a.img,ro", "-d", "a.img") == (
        1, "", "husk: disk a.img: is in use by a reader, so it cannot be opened for writing: open it "
        "read-only or ephemeral, or give each guest a copy\n")


@husk.needs_accelerator
def test_a_file_that_another_process_writes_is_refused_and_can_be_planned_with(tmp_path):
    path = image(tmp_path)
    with open(path, "r+b") as other:
        fcntl.lockf(other, fcntl.LOCK_EX)
        code, _, message = run(tmp_path, "-d", "a.img,ro")
        assert (code, message[:44]) == (1, "husk: disk a.img: is in use by another write")
        assert run(tmp_path, "-d", "a.img", "--dry-run")[0] == 0
        assert husk.run("plan", "--firmware", tmp_path / "guest.bin", "-d", path).returncode == 0


def plan(directory, *arguments):
    return husk.run("plan", "--firmware", husk.firmware(directory, GUEST), *arguments,
                    cwd=directory)


def test_plan_shows_disks(tmp_path):
    image(tmp_path)
    image(tmp_path, "odd.img", 1025)
    arguments = ["-d", "a.img,ro,direct,rerror=stop,serial=abc,queues=2", "-d",
                 "odd.img,ephemeral,werror=report"]
    text = plan(tmp_path, *arguments).stdout
    assert text[text.index("\ndisks\n"):text.index("\n\nmemory map")] == (
        "\ndisks\n"
        "  a.img: 4096 bytes, ro, direct, engine auto, werror enospc-stop, rerror stop\n"
        "  odd.img: 1025 bytes, no multiple of 512: the guest does not see the last 1, ephemeral, "
        "engine auto, werror report, rerror report")
    assert json.loads(plan(tmp_path, "--json", *arguments).stdout)["disks"] == [
        {"path": "a.img", "size_bytes": 4096, "read_only": True, "ephemeral": False, "direct": True,
         "engine": "auto", "on_write_error": "enospc-stop", "on_read_error": "stop",
         "serial": "abc", "queues": 2, "note": None},
        {"path": "odd.img", "size_bytes": 1025, "read_only": False, "ephemeral": True,
         "direct": False, "engine": "auto", "on_write_error": "report",
         "on_read_error": "report", "serial": "", "queues": None,
         "note": "no multiple of 512: the guest does not see the last 1"}]


def test_plan_names_a_disk_that_is_not_there(tmp_path):
    result = plan(tmp_path, "-d", "absent.img")
    assert (result.returncode, result.stdout, result.stderr) == (
        1, "", "husk: disk absent.img: cannot open: No such file or directory\n")


@husk.needs_accelerator
def test_firecrackers_drives_are_disks(tmp_path):
    image(tmp_path)
    (tmp_path / "vm.json").write_text(json.dumps({
        "boot-source": {"boot_args": "quiet"},
        "drives": [{"drive_id": "rootfs", "path_on_host": "a.img", "is_root_device": True,
                    "is_read_only": False}]}))
    document = json.loads(plan(tmp_path, "--json", "--config", "vm.json").stdout)
    assert [(disk["path"], disk["serial"]) for disk in document["disks"]] == [("a.img", "rootfs")]
    assert run(tmp_path, "--config", "vm.json") == (0, "O", "")
