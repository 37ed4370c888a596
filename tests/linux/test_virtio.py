# SPDX-License-Identifier: Apache-2.0
"""Linux's own virtio drivers, which find the devices on the PCI bus."""

import husk
import initramfs
import pytest
import stock

VMLINUZ = stock.CLOUD
MODULES = stock.KERNELS / "cloud-amd64" / "modules"
# In the order in which they need each other.
NAMES = ["virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci",
         "virtio-rng"]
SECONDS = 120

pytestmark = [
    pytest.mark.skipif(not all((MODULES / f"{name}.ko").exists() for name in NAMES),
                       reason=f"no virtio in {MODULES}; tools/get-kernel cloud-amd64 fetches it"),
    stock.needs_busybox,
]

LOAD = "\n".join(f"insmod /{name}.ko" for name in NAMES)

INIT = f"""
mount -t sysfs sys /sys
mount -t proc proc /proc
for device in /sys/bus/pci/devices/*
do
    echo $(basename $device) $(cat $device/vendor) $(cat $device/device) $(cat $device/class)
done
grep ' : PCI ' /proc/iomem
{LOAD}
echo available $(cat /sys/class/misc/hw_random/rng_available)
echo driver $(basename $(readlink /sys/bus/virtio/devices/virtio0/driver))
echo bytes $(head -c 3000 /dev/hwrng | wc -c)
echo kinds $(head -c 3000 /dev/hwrng | od -An -v -tx1 | tr -s ' ' '\\n' | sort -u | grep -c .)
echo interrupts $(grep -c virtio0 /proc/interrupts)
"""


def boot(tmp_path, *arguments):
    archive = initramfs.make(
        tmp_path / "initramfs", INIT,
        [(f"{name}.ko", (MODULES / f"{name}.ko").read_bytes()) for name in NAMES])
    result = husk.run("run", "--accel", "soft", "-k", VMLINUZ, "-i", archive, "-m", "256",
                      "--timeout", SECONDS, "-a", "quiet", *arguments, timeout=SECONDS + 30)
    return [line.rstrip("\r") for line in result.stdout.split("\n")
            if line.strip() and not line.startswith("[")]


@pytest.mark.parametrize("options, interrupts", [([], 2), (["-a", "pci=nomsi"], 1)],
                         ids=["msix", "line"])
def test_linux_reads_entropy(tmp_path, monkeypatch, options, interrupts):
    monkeypatch.setenv("HUSK_CACHE_DIR", str(tmp_path))
    assert boot(tmp_path, *options) == [
        "0000:00:00.0 0x1b36 0x0008 0x060000",
        "0000:00:02.0 0x1af4 0x1044 0x00ff00",
        "0000:00:16.0 0x1af4 0x1045 0x00ff00",
        "c0000000-dfffffff : PCI Bus 0000:00",
        "e0000000-e00fffff : PCI MMCONFIG 0000 [bus 00-00]",
        "800000000-fffffffff : PCI Bus 0000:00",
        "available virtio_rng.0",
        "driver virtio_rng",
        "bytes 3000",
        "kinds 256",
        f"interrupts {interrupts}",
    ]


@pytest.mark.parametrize("options", [["--no-rng", "--no-balloon"], ["--deterministic"]],
                         ids=["asked", "deterministic"])
def test_a_guest_can_be_without_them(tmp_path, monkeypatch, options):
    monkeypatch.setenv("HUSK_CACHE_DIR", str(tmp_path))
    lines = boot(tmp_path, *options)
    assert [line for line in lines if line.startswith("0000:")] == [
        "0000:00:00.0 0x1b36 0x0008 0x060000"]
