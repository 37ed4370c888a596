# SPDX-License-Identifier: Apache-2.0
"""`husk plan` against recorded plans, as text and as JSON, and its refusals against theirs.

After a wanted change: /usr/bin/python3 -m pytest tests/golden --update, then read the diff.
"""
import json
import os
import pathlib
import re
import subprocess

import husk
import images
import pytest

GOLDEN = pathlib.Path(__file__).parent / "plan"

PLANS = {
    "elf-pvh": ["vmlinux"],
    "elf-pvh-initrd": ["vmlinux", "-i", "initrd", "--", "quiet"],
    "elf-pvh-two-initrds": ["vmlinux", "-i", "microcode", "-i", "initrd"],
    "elf-pvh-8-gib-4-cpus": ["vmlinux", "-i", "initrd", "-m", "8G", "-c", "4"],
    "elf-odd-alignment": ["vmlinux-odd"],
    "elf-images-copy": ["vmlinux", "-i", "initrd", "--images", "copy"],
    "elf-linux64": ["vmlinux", "-i", "initrd", "--protocol", "linux64"],
    "elf-without-note-linux64": ["vmlinux-without-note", "--protocol", "linux64"],
    "elf-compressed": ["vmlinux.gz"],
    "elf-compressed-no-cache": ["vmlinux.gz", "--no-cache"],
    "bzimage-pvh": ["vmlinuz", "-i", "initrd"],
    "bzimage-named-vmlinux": ["vmlinux-in-name-only"],
    "bzimage-pvh-no-cache": ["vmlinuz", "--no-cache"],
    "bzimage-linux64": ["vmlinuz", "-i", "initrd", "--protocol", "linux64"],
    "bzimage-without-note": ["vmlinuz-without-note", "-i", "initrd"],
    "bzimage-linux32": ["vmlinuz-32", "-i", "initrd"],
    "bzimage-odd-setup": ["vmlinuz-odd"],
    "bzimage-fixed-address": ["vmlinuz-fixed", "-i", "initrd"],
    "elf-pvh-pmem": ["vmlinux", "-m", "4G", "--pmem", "root.img", "--pmem", "odd.img,ro"],
    "firmware": ["--firmware", "bios.bin"],
    "firmware-bzimage": ["--firmware", "bios.bin", "vmlinuz", "-i", "microcode", "-i", "initrd"],
    "firmware-pvh": ["--firmware", "bios.bin", "vmlinux", "-i", "initrd", "-m", "8G"],
    "firmware-multiboot1": ["--firmware", "bios.bin", "vmlinux-multiboot", "-i", "initrd words"],
    "firmware-multiboot2": ["--firmware", "bios.bin", "multiboot2", "-i", "initrd words"],
    "multiboot1": ["vmlinux-multiboot", "-i", "initrd two words,microcode", "--", "quiet"],
    "multiboot1-low": ["multiboot-low", "-i", "initrd"],
    "multiboot1-flat": ["multiboot-flat", "-i", "initrd"],
    "multiboot1-flat-odd": ["multiboot-flat-odd"],
    "multiboot2": ["multiboot2", "-i", "initrd two words,microcode", "-m", "8G", "-c", "2"],
    "multiboot2-relocatable": ["multiboot2-relocatable", "-m", "32"],
    "multiboot-before-pvh": ["multiboot-both-pvh"],
    "multiboot1-named": ["multiboot-both-pvh", "--protocol", "multiboot1"],
}

REFUSALS = {
    "missing": ["absent"],
    "directory": ["folder"],
    "empty": ["empty"],
    "truncated": ["truncated"],
    "text": ["notes.txt"],
    "initrd-as-kernel": ["initrd"],
    "ext4-as-kernel": ["root.ext4"],
    "compressed-initrd-as-kernel": ["initrd.gz"],
    "compressed-and-truncated": ["vmlinux-cut.gz"],
    "initrd-missing": ["vmlinux", "-i", "absent"],
    "initrd-directory": ["vmlinux", "-i", "folder"],
    "initrd-empty": ["vmlinux", "-i", "empty"],
    "initrd-ext4": ["vmlinux", "-i", "root.ext4"],
    "no-note": ["vmlinux-without-note"],
    "no-note-pvh": ["vmlinuz-without-note", "--protocol", "pvh"],
    "no-64-bit-entry": ["vmlinuz-32", "--protocol", "linux64"],
    "linux32-of-an-elf": ["vmlinux", "--protocol", "linux32"],
    "multiboot-too-late": ["vmlinux-multiboot-late"],
    "multiboot-absent": ["vmlinux", "--protocol", "multiboot1"],
    "multiboot2-absent": ["vmlinux", "--protocol", "multiboot2"],
    "multiboot-requirement": ["multiboot-requirement"],
    "multiboot-entry": ["multiboot-entry"],
    "multiboot2-tag": ["multiboot2-tag"],
    "multiboot2-request": ["multiboot2-request"],
    "multiboot2-console": ["multiboot2-console"],
    "multiboot2-memory-to-move-to": ["multiboot2-relocatable", "-m", "16"],
    "multiboot-memory-for-kernel": ["vmlinux-multiboot", "-m", "2"],
    "multiboot-memory-for-modules": ["vmlinux-multiboot", "-m", "16", "-i", "initrd-16-mib"],
    "multiboot-linux64": ["multiboot-flat", "--protocol", "linux64"],
    "firmware-linux64": ["--firmware", "bios.bin", "vmlinux", "--protocol", "linux64"],
    "firmware-memory": ["--firmware", "bios.bin", "vmlinuz-32", "-m", "18"],
    "memory-for-kernel": ["vmlinuz-32", "-m", "18"],
    "memory-for-initrd": ["vmlinuz-32", "-m", "20", "-i", "initrd-16-mib"],
    "pmem-missing": ["vmlinux", "--pmem", "absent,ro"],
    "pmem-directory": ["vmlinux", "--pmem", "folder,ro"],
    "pmem-size": ["vmlinux", "--pmem", "odd.img"],
    "cmdline": ["vmlinuz", "--cmdline", "x" * 2048],
    "firmware-by-pvh": ["--firmware", "bios.bin", "--protocol", "pvh"],
}


@pytest.fixture
def plan(tmp_path, monkeypatch):
    """Runs `husk plan` among the files of images.py, with an empty image cache."""
    images.write_all(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HUSK_CACHE_DIR", str(tmp_path / "cache"))
    for name in [name for name in os.environ if name.startswith("HUSK_")]:
        if name != "HUSK_CACHE_DIR":
            monkeypatch.delenv(name)

    def run(*arguments):
        result = husk.run("plan", *arguments)
        # The cache names an entry by its content and lies in a new directory each time.
        return result, re.sub(r"[0-9a-f]{64}", "DIGEST",
                              result.stdout.replace(str(tmp_path), "DIRECTORY"))
    return run


def compare(path, printed, update):
    if update:
        path.write_text(printed)
    assert path.exists(), f"{path.name} is not recorded yet; run with --update"
    assert printed == path.read_text()


@pytest.mark.parametrize("name", PLANS)
def test_plan_as_text(name, plan, update):
    result, printed = plan(*PLANS[name])
    assert (result.returncode, result.stderr) == (0, "")
    compare(GOLDEN / f"{name}.txt", printed, update)


@pytest.mark.parametrize("name", PLANS)
def test_plan_as_json(name, plan, update):
    result, printed = plan("--json", *PLANS[name])
    assert (result.returncode, result.stderr) == (0, "")
    compare(GOLDEN / f"{name}.json", printed, update)


@pytest.mark.parametrize("name", PLANS)
def test_the_sums_are_those_of_the_ranges(name, plan):
    document = json.loads(plan("--json", *PLANS[name])[0].stdout)
    sums = dict.fromkeys(["map", "copy", "zero", "generated"], 0)
    end = 0
    for entry in document["ranges"]:
        assert entry["gpa"] >= end
        assert (entry["reason"] != "") == (entry["kind"] == "copy")
        end = entry["gpa"] + entry["size_bytes"]
        sums[entry["kind"]] += entry["size_bytes"]
    assert document["bytes"] == {"mapped": sums["map"], "copied": sums["copy"],
                                 "zeroed": sums["zero"], "generated": sums["generated"]}


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_output_that_cannot_be_written_is_an_error(plan, form):
    assert plan("vmlinux")[0].returncode == 0
    with open("/dev/full", "w", encoding="utf-8") as full:
        result = subprocess.run([husk.HUSK, "plan", *form, "vmlinux"], stdout=full,
                                stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    assert result.returncode == 1
    assert result.stderr == ("husk: cannot write to standard output: "
                             "No space left on device\n")


def test_a_path_that_is_no_utf_8_still_gives_json(plan):
    os.rename("vmlinux", b"vmlinu\xff")
    result, printed = plan("--json", os.fsdecode(b"vmlinu\xff"))
    assert result.returncode == 0, result.stderr
    assert json.loads(printed)["files"][0]["path"] == "vmlinu?"


def test_refusals(plan, update):
    """One distinct sentence for each fault, all in one file."""
    lines = []
    for name, arguments in REFUSALS.items():
        result, printed = plan(*arguments)
        assert (result.returncode, printed) == (1, ""), name
        lines.append(f"{name}: {result.stderr}")
    assert len({line.split(": ", 1)[1] for line in lines}) == len(lines)
    compare(GOLDEN / "refusals.txt", "".join(lines), update)
