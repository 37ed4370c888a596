# SPDX-License-Identifier: Apache-2.0
"""Runs the guests that print what Multiboot hands over, and compares with expected/NAME.txt:
every byte of it, the same on each accelerator.

What the specifications leave to the boot loader, such as addresses, is compared as well: a
change there should be seen. `--update` writes what the software CPU prints instead.
"""
import re
import shutil
import subprocess

import pytest
from test_guests import ACCELERATORS, DEBUG_EXIT_PORT, EXPECTED, GUEST_DONE, GUEST_TIMEOUT_S
from test_guests import HUSK, IMAGES

MODULES = {
    "first.mod": bytes((i * 5 + i // 256) & 0xff for i in range(8192)),  # whole pages
    "second.mod": b"a module of one line\n",
}
WITH_MODULES = ["--initrd", "first.mod with  words,second.mod"]

# name: (image, options)
GUESTS = {
    "multiboot1-elf32": ("multiboot1-elf32.elf", WITH_MODULES),
    "multiboot1-elf64": ("multiboot1-elf64.elf", []),
    "multiboot1-modules": ("multiboot1-modules.elf", WITH_MODULES),
    "multiboot1-video": ("multiboot1-video.elf", []),
    "multiboot1-low": ("multiboot1-low.elf", WITH_MODULES),
    "multiboot1-flat": ("multiboot1-flat.bin", WITH_MODULES),
    "multiboot1-whole": ("multiboot1-whole.bin", ["--memory", "5G"]),
    "multiboot1-addresses": ("multiboot1-addresses.elf", []),
    "multiboot2-elf32": ("multiboot2-elf32.elf", WITH_MODULES),
    "multiboot2-elf64": ("multiboot2-elf64.elf", []),
    "multiboot2-flat": ("multiboot2-flat.bin", WITH_MODULES),
    "multiboot2-lowest": ("multiboot2-lowest.elf", WITH_MODULES),
    "multiboot2-highest": ("multiboot2-highest.elf", WITH_MODULES),
    "multiboot2-requests": ("multiboot2-requests.elf", WITH_MODULES),
}


def rotating_sum(data):
    """What the guests print as the sum of a module's bytes (report.inc)."""
    total = 0
    for byte in data:
        total = ((total << 1 | total >> 31) + byte) & 0xffffffff
    return f"0x{total:08x}"


def without_version(printed):
    """The loader's name has husk's version in it, and its tag that name's length."""
    match = re.search(r"(tag 2, (\d+) bytes|boot_loader_name): (husk \S+)", printed)
    assert match, printed
    if match[2]:
        assert int(match[2]) == 8 + len(match[3]) + 1
    return (printed[:match.start()] + re.sub(r"\d+ bytes", "N bytes", match[1]) +
            ": husk VERSION" + printed[match.end():])


def run(directory, accelerator, image, *options):
    """In a folder of its own, as the command line's first word is the kernel's path."""
    shutil.copy(IMAGES / image, directory / "kernel")
    for name, content in MODULES.items():
        (directory / name).write_bytes(content)
    result = subprocess.run(
        [HUSK, "run", "--accel", accelerator, "--kernel", "kernel", "--memory", "32",
         "--debug-console", "--debug-exit", str(DEBUG_EXIT_PORT),
         "--timeout", str(GUEST_TIMEOUT_S), "--cmdline", "one  two=3", *options],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        timeout=2 * GUEST_TIMEOUT_S, cwd=directory)
    assert result.returncode == GUEST_DONE, result.stdout + result.stderr
    return result.stdout


@pytest.mark.parametrize("accelerator", ACCELERATORS)
@pytest.mark.parametrize("name", GUESTS)
def test_prints_what_it_was_handed(name, accelerator, tmp_path, update):
    if ACCELERATORS[accelerator]:
        pytest.skip(ACCELERATORS[accelerator])
    image, options = GUESTS[name]
    printed = without_version(run(tmp_path, accelerator, image, *options))
    path = EXPECTED / f"{name}.txt"
    if accelerator == "soft" and update:
        path.write_text(printed)
    assert printed == path.read_text()
    for content in MODULES.values() if options == WITH_MODULES else ():
        assert f"{len(content)} bytes, sum {rotating_sum(content)}, string: " in printed


# What a kernel with all three headers says of the way it was entered.
@pytest.mark.parametrize("protocol, way", [
    ("auto", "as Multiboot 2"), ("pvh", "by PVH"), ("multiboot1", "as Multiboot 1"),
    ("multiboot2", "as Multiboot 2")])
@pytest.mark.parametrize("accelerator", ACCELERATORS)
def test_protocol_chooses_among_headers(accelerator, protocol, way, tmp_path):
    if ACCELERATORS[accelerator]:
        pytest.skip(ACCELERATORS[accelerator])
    printed = run(tmp_path, accelerator, "multiboot_all.elf", "--protocol", protocol)
    assert printed == f"entered {way}\n"
