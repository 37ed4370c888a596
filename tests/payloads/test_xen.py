# SPDX-License-Identifier: Apache-2.0
"""Debian's Xen: a gzip-compressed ELF32 with both Multiboot headers, alone and with Linux."""
import os
import pathlib

import husk
import initramfs
import payloads
import pytest
from terminal import Terminal

XEN = payloads.path("xen-hypervisor-4.17-amd64/boot/xen-*-amd64.gz")
LINUX = pathlib.Path(os.environ.get("HUSK_KERNELS", husk.ROOT / "build" / "kernels"),
                     "amd64", "vmlinuz")
CONSOLE = "com1=115200,8n1 console=com1"
SECONDS = 300

pytestmark = payloads.needs(XEN)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    directory = tmp_path / "cache"
    monkeypatch.setenv("HUSK_CACHE_DIR", str(directory))
    return directory


def unpacked(cache, kernel):
    """The kernel inside, which Xen need not unpack then."""
    before = set(cache.glob("*.elf"))
    assert husk.run("plan", kernel).returncode == 0
    return (set(cache.glob("*.elf")) - before).pop()


@pytest.mark.parametrize("protocol", ["multiboot1", "multiboot2"])
def test_prints_its_banner_and_the_memory_map_it_was_given(tmp_path, protocol):
    module = tmp_path / "module"
    module.write_bytes(bytes(4096))
    guest = Terminal("run", "--accel", "soft", "--protocol", protocol, "-m", "512M", XEN,
                     "-i", module, "-a", CONSOLE)
    for line in (b"(XEN) Xen version 4.", b"(XEN) Bootloader: husk ",
                 b"(XEN) Command line: com1=115200,8n1 console=com1",
                 b"(XEN) Multiboot-e820 RAM map:",
                 b"(XEN)  [0000000000100000, 000000001fffffff] (usable)",
                 b"(XEN) ACPI: RSDP 000E0000, 0024 (r2 HUSK  )",
                 b"(XEN) Could not construct domain 0"):  # of zeros
        guest.expect(line)


@payloads.needs(LINUX)
def test_starts_linux_as_its_first_domain(tmp_path, cache):
    archive = initramfs.make(tmp_path / "initramfs",
                             "mount -t sysfs sys /sys\ncat /sys/hypervisor/type")
    kernel = f"{unpacked(cache, LINUX)} console=hvc0 quiet cryptomgr.notests"
    result = husk.run("run", "--accel", "soft", "-m", "1G", XEN, "-i", kernel, "-i", archive,
                      "-a", f"{CONSOLE} dom0_mem=512M", "--timeout", SECONDS,
                      timeout=SECONDS + 30)
    assert result.returncode == 0, result.stdout
    lines = result.stdout.replace("\r", "").splitlines()
    assert "xen" in lines, result.stdout
    assert lines[-1] == "(XEN) Entering ACPI S5 state."


def test_is_unpacked_once():
    for outcome in ("put into", "found in"):
        assert f"copy: gzip-compressed, {outcome} the image cache; file offset 0x80 and " \
            "address 0x200000 differ" in husk.run("plan", "--protocol", "multiboot1", XEN).stdout
