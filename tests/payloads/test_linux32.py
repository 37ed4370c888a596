# SPDX-License-Identifier: Apache-2.0
"""Debian's 32-bit Linux with PAE: a bzImage without a 64-bit entry; the ELF32 inside has a PVH
note of 4 bytes."""
import husk
import initramfs
import payloads
import pytest

VMLINUZ = payloads.path("linux-image-686-pae/boot/vmlinuz-*")
BUSYBOX = payloads.path("busybox-static/bin/busybox")
SECONDS = 300

pytestmark = payloads.needs(VMLINUZ, BUSYBOX)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def only_cache(cache, monkeypatch):
    monkeypatch.setenv("HUSK_CACHE_DIR", str(cache))


@pytest.mark.parametrize("image, protocol", [("vmlinuz", "auto"), ("vmlinuz", "linux32"),
                                             ("vmlinux", "auto")])
def test_reaches_user_space(tmp_path, cache, image, protocol):
    archive = initramfs.make(tmp_path / "initramfs", "uname -m", busybox=BUSYBOX)
    assert husk.run("plan", VMLINUZ).returncode == 0
    kernel = VMLINUZ if image == "vmlinuz" else next(cache.glob("*.elf"))
    result = husk.run("run", "--accel", "soft", "--protocol", protocol, "-m", "128M", kernel,
                      "-i", archive, "-a", "quiet cryptomgr.notests", "--timeout", SECONDS,
                      timeout=SECONDS + 30)
    assert result.returncode == 0, result.stdout
    assert "i686" in result.stdout.replace("\r", "").splitlines()


def test_has_no_64_bit_entry():
    result = husk.run("plan", "--protocol", "linux64", VMLINUZ)
    assert (result.returncode, result.stderr) == (1, (
        f"husk: kernel {VMLINUZ}: has no 64-bit entry (xloadflags 0x0004, bit 0 clear); use "
        "--protocol linux32\n"))
