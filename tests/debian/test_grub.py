# SPDX-License-Identifier: Apache-2.0
"""SeaBIOS finds GRUB on a disk, and GRUB Debian."""
import pathlib

import guest
import pytest

SEABIOS = pathlib.Path("/usr/share/seabios/bios-256k.bin")

pytestmark = [
    guest.needs_image,
    pytest.mark.skipif(not SEABIOS.exists(), reason=f"no {SEABIOS}; it is in the package seabios"),
]


def test_seabios_loads_grub_and_grub_loads_debian():
    before = guest.DISK.stat()
    debian = guest.Guest("--firmware", SEABIOS, "-d", f"{guest.DISK},ephemeral")
    debian.expect(b"GRUB loading.")
    debian.log_in()
    assert debian.has_started_well()
    assert debian.run("findmnt -no SOURCE /") == "/dev/vda1\n"
    debian.run("echo kept in memory >/root/note")
    assert debian.power_off() == 0
    assert guest.DISK.stat().st_mtime_ns == before.st_mtime_ns
