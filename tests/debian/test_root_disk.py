# SPDX-License-Identifier: Apache-2.0
"""Debian's root file system on a raw disk."""
import os

import guest
import husk
import pytest

pytestmark = guest.needs_image

MIB = 1 << 20


def allocated_bytes(file):
    """What du shows (stat(2) counts in 512 bytes)."""
    return os.stat(file).st_blocks * 512


def test_debian_writes_discards_restarts_and_leaves_a_clean_disk(tmp_path):
    image = guest.copy(tmp_path)
    size = image.stat().st_size
    debian = guest.Guest.with_kernel("root=/dev/vda", "-c", "2", "-d", image).log_in()
    assert debian.has_started_well()
    assert debian.run("nproc; findmnt -no SOURCE /; cat /sys/block/vda/ro") == "2\n/dev/vda\n0\n"
    # Loaded by udev: what Debian frees goes back to the host.
    assert debian.run("ls /sys/bus/virtio/drivers/virtio_balloon | grep -c virtio") == "1\n"
    debian.run("echo written before the restart >/root/note")

    empty = allocated_bytes(image)
    debian.run("head -c 64M /dev/zero | tr '\\0' x >/root/large; sync")
    full = allocated_bytes(image)
    assert full >= empty + 64 * MIB
    debian.run("rm /root/large; sync; fstrim /")
    assert allocated_bytes(image) <= full - 60 * MIB  # others write meanwhile
    assert image.stat().st_size == size

    debian.type(b"reboot\n")
    debian.log_in()
    assert debian.run("cat /root/note") == "written before the restart\n"
    assert debian.run("dmesg | grep -c 'EXT4-fs error' || true") == "0\n"
    debian.run("echo and after it >>/root/note")
    assert debian.power_off() == 0

    assert guest.is_clean(image)
    assert guest.content(image, "/root/note") == "written before the restart\nand after it\n"


@pytest.fixture(name="shared_image", scope="module")
def make_shared_image(tmp_path_factory):
    """One that may only be read."""
    image = guest.copy(tmp_path_factory.mktemp("shared"))
    image.chmod(0o444)
    return image


def both_log_in(*options):
    guests = [guest.Guest.with_kernel(*options) for _ in range(2)]
    return [debian.log_in() for debian in guests]


def each_keeps_its_changes(guests):
    """Also after its caches are gone; the file system of the image is below them."""
    for number, debian in enumerate(guests):
        assert debian.run("findmnt -no FSTYPE /") == "overlay\n"
        debian.run(f"echo guest {number} >/root/note; sync; echo 3 >/proc/sys/vm/drop_caches")
    for number, debian in enumerate(guests):
        assert debian.run("cat /root/note") == f"guest {number}\n"


def test_two_guests_run_from_one_read_only_disk(shared_image):
    before = shared_image.stat()
    guests = both_log_in(f"root=/dev/vda {guest.OVERLAY}", "-d", f"{shared_image},ro")
    each_keeps_its_changes(guests)
    assert guests[0].run("cat /sys/block/vda/ro") == "1\n"

    writer = husk.run("run", "--accel", "soft", "-k", guest.VMLINUZ, "-d", shared_image)
    assert writer.returncode == 1
    assert writer.stderr == (
        f"husk: disk {shared_image}: is in use by a reader, so it cannot be opened for writing: "
        "open it read-only or ephemeral, or give each guest a copy\n")

    assert [debian.power_off() for debian in guests] == [0, 0]
    assert shared_image.stat().st_mtime_ns == before.st_mtime_ns
    assert guest.is_clean(shared_image)


def read_and_mapped(guests, image):
    """What of the image each guest's process maps when all have read their libraries. A host that
    takes back what has not been used for seconds may do so in between: then they read again."""
    for _ in range(5):
        for debian in guests:
            assert debian.run("cat /usr/lib/x86_64-linux-gnu/lib*.so* | wc -l") != "0\n"
        found = [guest.mapped(debian.process, image) for debian in guests]
        if all(pages["Shared_Clean"] >= 32 * 1024 for pages in found):
            break
    return found


def test_two_guests_share_the_pages_of_one_persistent_memory(shared_image):
    """The root is mapped into the guests: what both have read is in the host's memory once,
    and not a byte of it is a guest's own."""
    before = shared_image.stat()
    guests = both_log_in(f"root=/dev/pmem0 rootflags=dax {guest.OVERLAY}", "--pmem",
                         f"{shared_image},ro")
    each_keeps_its_changes(guests)
    for debian in guests:
        assert "dax" in debian.run("findmnt -no OPTIONS /run/overlay/below")
    for pages in read_and_mapped(guests, shared_image):
        assert pages["Shared_Clean"] >= 32 * 1024
        assert pages["Private_Dirty"] + pages["Shared_Dirty"] + pages["Anonymous"] == 0
        assert pages["Pss"] <= 0.75 * pages["Rss"]
    assert [debian.power_off() for debian in guests] == [0, 0]
    assert shared_image.stat().st_mtime_ns == before.st_mtime_ns
    assert guest.is_clean(shared_image)
