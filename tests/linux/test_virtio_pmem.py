# SPDX-License-Identifier: Apache-2.0
"""Linux's own drivers for persistent memory: an ext4 image that it maps instead of reading it."""
import hashlib
import os
import shutil
import subprocess

import husk
import initramfs
import pytest
import stock

VMLINUZ = stock.CLOUD
MODULES = stock.KERNELS / "cloud-amd64" / "modules"
# In the order in which they need each other.
NAMES = ["virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci",
         "libnvdimm", "nd_btt", "nd_virtio", "nd_pmem", "virtio_pmem"]
SECONDS = 180
MIB = 1 << 20
IMAGE_BYTES = 64 * MIB

pytestmark = [
    pytest.mark.skipif(not all((MODULES / f"{name}.ko").exists() for name in NAMES),
                       reason=f"no pmem in {MODULES}; tools/get-kernel cloud-amd64 fetches it"),
    pytest.mark.skipif(shutil.which("mke2fs", path="/sbin:/usr/sbin") is None,
                       reason="no mke2fs; e2fsprogs has it"),
    stock.needs_busybox,
]

# What Debian's initramfs does with these words of the command line.
INIT = "\n".join([f"insmod /{name}.ko" for name in NAMES] + [r"""
mkdir /disk
for word in $(cat /proc/cmdline)
do
    case $word in
    root=*) root=${word#root=} ;;
    rootflags=*) flags=${word#rootflags=} ;;
    ro | rw) mode=$word ;;
    esac
done
while [ ! -b "$root" ]; do sleep 0.1; done
mount -t ext4 -o "$mode,$flags" "$root" /disk || poweroff -f
exec switch_root /disk /sbin/init
"""])

# The program that runs this is in the image, too: it is executed where the file is mapped.
SECOND_INIT = r"""#!/bin/busybox sh
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sys /sys
echo mounted $(grep ' / ext4 ' /proc/mounts)
echo sectors $(cat /sys/class/block/pmem0/size)
md5sum /random | cut -c1-32
. /test
sync
poweroff -f
"""


def tool(name, *arguments):
    return subprocess.run([shutil.which(name, path="/sbin:/usr/sbin"), *map(str, arguments)],
                          check=True, capture_output=True, text=True).stdout


def make_image(directory, test, size=IMAGE_BYTES):
    """A root file system with busybox, 3 MB of noise and the script `test`; and their MD5 sum."""
    tree = directory / "tree"
    for name in ["bin", "sbin", "proc", "sys", "dev", "tmp"]:
        (tree / name).mkdir(parents=True)
    noise = os.urandom(3_000_000)
    (tree / "random").write_bytes(noise)
    (tree / "test").write_text(test)
    (tree / "bin" / "busybox").write_bytes(initramfs.BUSYBOX.read_bytes())
    (tree / "sbin" / "init").write_text(SECOND_INIT)
    for program in ["bin/busybox", "sbin/init"]:
        (tree / program).chmod(0o755)
    for command in ["mount", "grep", "cat", "cut", "md5sum", "dd", "poweroff", "sync", "sh"]:
        (tree / "bin" / command).symlink_to("busybox")
    image = directory / "root.img"
    with open(image, "wb") as stream:
        stream.truncate(size)
    tool("mke2fs", "-q", "-t", "ext4", "-b", "4096", "-d", tree, image)
    return image, hashlib.md5(noise).hexdigest()


@pytest.fixture(name="archive")
def make_archive(tmp_path, monkeypatch):
    monkeypatch.setenv("HUSK_CACHE_DIR", str(tmp_path))
    return initramfs.make(tmp_path / "initramfs", INIT,
                          [(f"{name}.ko", (MODULES / f"{name}.ko").read_bytes())
                           for name in NAMES])


def boot(archive, pmem, words):
    result = husk.run("run", "--accel", "soft", "-k", VMLINUZ, "-i", archive, "-m", "256",
                      "--timeout", SECONDS, "--pmem", pmem, "-a",
                      f"quiet root=/dev/pmem0 rootflags=dax {words}", timeout=SECONDS + 30)
    return [line.rstrip("\r") for line in result.stdout.split("\n")
            if line.strip() and not line.startswith("[")], result.stderr


def test_root_is_read_and_written_where_it_is_mapped(tmp_path, archive):
    image, digest = make_image(tmp_path, "echo kept > /written")
    lines, errors = boot(archive, image, "rw")
    assert lines == ["mounted /dev/pmem0 / ext4 rw,relatime,dax=always 0 0",
                     f"sectors {IMAGE_BYTES // 512}", digest]
    assert errors == ""
    tool("e2fsck", "-fn", image)
    assert tool("debugfs", "-R", "cat written", image) == "kept\n"


def test_read_only_root_is_never_written(tmp_path, archive):
    # Linux takes whole pieces of 2 MiB; behind the end of the file there are zeros.
    image, digest = make_image(tmp_path, "mount -t devtmpfs dev /dev\n"
                               "dd if=/random of=/dev/pmem0 bs=4096 count=1 seek=16000 "
                               "conv=notrunc,fsync 2>/dev/null; echo flushed: $?",
                               IMAGE_BYTES - MIB // 2)
    before = hashlib.md5(image.read_bytes()).hexdigest()
    lines, errors = boot(archive, f"{image},ro", "ro")
    assert lines == ["mounted /dev/pmem0 / ext4 ro,relatime,dax=always 0 0",
                     f"sectors {IMAGE_BYTES // 512}", digest, "flushed: 1"]
    assert errors == f"husk: pmem {image}: the guest's flush failed: Read-only file system\n"
    assert hashlib.md5(image.read_bytes()).hexdigest() == before
