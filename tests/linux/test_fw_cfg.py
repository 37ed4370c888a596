# SPDX-License-Identifier: Apache-2.0
"""Linux's own driver of QEMU's firmware configuration interface, found by ACPI."""
import struct

import husk
import initramfs
import pytest
import stock

VMLINUZ = stock.CLOUD
MODULE = stock.KERNELS / "cloud-amd64" / "modules" / "qemu_fw_cfg.ko"
SECONDS = 120
MIB = 1 << 20
RAM, RESERVED = 1, 2

pytestmark = [
    stock.needs(VMLINUZ, MODULE),
    stock.needs_busybox,
]

INIT = """
mount -t sysfs sys /sys
insmod /qemu_fw_cfg.ko
cd /sys/firmware/qemu_fw_cfg
echo revision $(cat rev)
for file in $(find by_name -type l | sort)
do
    echo $file $(cat $file/key) $(cat $file/size) $(od -An -v -tx1 $file/raw | tr -d ' \\n')
done
"""


@pytest.mark.parametrize("transfer, revision", [("dma", 3), ("port", 1)])
def test_linux_lists_and_reads_the_files(tmp_path, monkeypatch, transfer, revision):
    monkeypatch.setenv("HUSK_CACHE_DIR", str(tmp_path))
    archive = initramfs.make(tmp_path / "initramfs", INIT,
                             [("qemu_fw_cfg.ko", MODULE.read_bytes())])
    result = husk.run("run", "--accel", "soft", "-k", VMLINUZ, "-i", archive, "-m", "4096",
                      "--transfer", transfer, "--timeout", SECONDS, "-a", "quiet",
                      timeout=SECONDS + 30)
    e820 = b"".join(struct.pack("<QQI", *entry) for entry in [
        (0, 3072 * MIB, RAM),
        (0xE0000000, MIB, RESERVED),
        (0xFEFFC000, 0x4000, RESERVED),
        (0x100000000, 1024 * MIB, RAM),
    ])
    lines = [line.rstrip("\r") for line in result.stdout.split("\n")
             if line.strip() and not line.startswith("[")]
    assert lines == [f"revision {revision}",
                     f"by_name/etc/e820 32 {len(e820)} {e820.hex()}"], result.stdout
