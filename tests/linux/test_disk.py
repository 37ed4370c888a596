# SPDX-License-Identifier: Apache-2.0
"""Linux's own virtio_blk, on a disk of each engine and way to open it, all in one boot."""
import hashlib
import os
import random
import subprocess

import husk
import initramfs
import pytest
import stock

MODULES = stock.KERNELS / "cloud-amd64" / "modules"
# In the order in which they need each other.
NAMES = ["virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci",
         "virtio_blk"]
SECONDS = 120

pytestmark = [
    pytest.mark.skipif(not all((MODULES / f"{name}.ko").exists() for name in NAMES),
                       reason=f"no virtio in {MODULES}; tools/get-kernel cloud-amd64 fetches it"),
    stock.needs_busybox,
]

MIB = 1 << 20
SIZE = 8 * MIB
WRITTEN = (MIB, 2 * MIB)  # from, to
DISCARDED = (4 * MIB, 6 * MIB)
GROWN = SIZE + MIB

# In the guest's order: vda is the first.
WRITABLE = {"sync": "engine=sync,serial=first", "threads": "engine=threads",
            "mmap": "engine=mmap", "uring": "engine=uring", "auto": "queues=1", "direct": "direct"}
DISKS = {**WRITABLE, "ro": "ro", "ephemeral": "ephemeral"}

INIT = """
mount -t sysfs sys /sys
for name in %(names)s
do
    insmod /$name.ko
done
for disk in %(disks)s
do
    echo $disk read $(md5sum < /dev/$disk)
    dd if=/pattern of=/dev/$disk bs=64k seek=16 conv=fsync 2> /dev/null || echo $disk refuses
    echo 3 > /proc/sys/vm/drop_caches
    echo $disk written $(dd if=/dev/$disk bs=64k skip=16 count=16 2> /dev/null | md5sum)
    blkdiscard -o %(discard_from)d -l %(discard_size)d /dev/$disk 2> /dev/null
    echo $disk is $(cat /sys/block/$disk/ro) $(ls /sys/block/$disk/mq | wc -l) \
        $(cat /sys/block/$disk/queue/write_cache)
done
echo serial $(cat /sys/block/vda/serial)
sync
echo ready
while [ $(cat /sys/block/vda/size) = %(sectors)d ]
do
    sleep 0.1
done
echo grown $(cat /sys/block/vda/size)
"""


def letter(index):
    """What Linux calls the disk."""
    return "vd" + "abcdefgh"[index]


def make_archive(path, pattern):
    script = INIT % {
        "names": " ".join(NAMES), "disks": " ".join(letter(i) for i in range(len(DISKS))),
        "discard_from": DISCARDED[0], "discard_size": DISCARDED[1] - DISCARDED[0],
        "sectors": SIZE // 512}
    files = [(f"{name}.ko", (MODULES / f"{name}.ko").read_bytes()) for name in NAMES]
    return initramfs.make(path, script, [*files, ("pattern", pattern)])


def start(archive, files, environment):
    disks = [word for name, options in DISKS.items() for word in ("-d", f"{files[name]},{options}")]
    return subprocess.Popen(
        [husk.HUSK, "run", "--accel", "soft", "-k", stock.CLOUD, "-i", archive, "-m", "256",
         "-c", "2", "--timeout", str(SECONDS), "-a", "quiet", "--name", "disks", *disks],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=environment)


def digest(data):
    return hashlib.md5(data).hexdigest() + " -"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The guest's lines, and what the files were and are."""
    tmp_path = tmp_path_factory.mktemp("disk")
    pattern = b"written by the guest\n" * (MIB // 21) + b"." * (MIB % 21)
    files = {name: tmp_path / f"{name}.img" for name in DISKS}
    before = {}
    for number, (name, path) in enumerate(files.items()):
        before[name] = random.Random(number).randbytes(SIZE)
        path.write_bytes(before[name])
    blocks = {name: os.stat(path).st_blocks for name, path in files.items()}
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}
    process = start(make_archive(tmp_path / "initramfs", pattern), files, environment)
    lines = []
    for line in process.stdout:
        line = line.strip()
        if line and not line.startswith("["):
            lines.append(line)
        if line == "ready":
            os.truncate(files["sync"], GROWN)
            assert husk.run("resize", "disks", env=environment).returncode == 0
    assert process.wait() == 0, process.stderr.read()
    return {"lines": lines, "pattern": pattern, "files": files, "before": before,
            "blocks": blocks, "messages": process.stderr.read()}


def lines_of(run, name):
    disk = letter(list(DISKS).index(name))
    return [line[len(disk) + 1:] for line in run["lines"] if line.startswith(disk + " ")]


@pytest.mark.parametrize("name", WRITABLE)
def test_linux_reads_writes_and_discards(run, name):
    queues = 1 if name == "auto" else 2
    assert lines_of(run, name) == [f"read {digest(run['before'][name])}",
                                   f"written {digest(run['pattern'])}",
                                   f"is 0 {queues} write back"]
    data = run["files"][name].read_bytes()[:SIZE]
    expected = bytearray(run["before"][name])
    expected[slice(*WRITTEN)] = run["pattern"]
    expected[slice(*DISCARDED)] = bytes(DISCARDED[1] - DISCARDED[0])
    assert data == bytes(expected)
    freed = (run["blocks"][name] - os.stat(run["files"][name]).st_blocks) * 512
    # The host's file system may need a block or two to say where the holes are.
    assert 0 <= DISCARDED[1] - DISCARDED[0] - freed <= 16384


def test_a_read_only_disk_is_not_written(run):
    before = run["before"]["ro"]
    assert lines_of(run, "ro") == [f"read {digest(before)}", "refuses",
                                   f"written {digest(before[slice(*WRITTEN)])}",
                                   "is 1 2 write back"]
    assert run["files"]["ro"].read_bytes() == before


def test_an_ephemeral_disk_keeps_nothing(run):
    assert lines_of(run, "ephemeral") == [f"read {digest(run['before']['ephemeral'])}",
                                          f"written {digest(run['pattern'])}",
                                          "is 0 2 write back"]
    assert run["files"]["ephemeral"].read_bytes() == run["before"]["ephemeral"]


def test_the_guest_sees_serial_and_new_size(run):
    assert [line for line in run["lines"] if not line.startswith("vd")] == [
        "serial first", "ready", f"grown {GROWN // 512}"]


def test_the_operator_is_told_nothing(run):
    assert run["messages"] == ""
