# SPDX-License-Identifier: Apache-2.0
"""Initramfs archives (cpio, format newc) made on the spot."""
import pathlib
import stat

BUSYBOX = pathlib.Path("/bin/busybox")


def entry(number, name, mode, data=b""):
    """One archive member; fields as Linux's Documentation/driver-api/early-userspace has them."""
    path = name.encode() + b"\0"
    fields = [number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(path), 0]
    head = b"070701" + b"".join(b"%08x" % field for field in fields) + path
    return head + b"\0" * (-len(head) % 4) + data + b"\0" * (-len(data) % 4)


def make(path, init, files=(), busybox=BUSYBOX):
    """busybox with all its commands in /bin, `init` (a shell script) as /init, and (name, bytes)
    programs."""
    script = f"""#!/bin/busybox sh
/bin/busybox mkdir -p /proc /sys /dev /tmp
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t devtmpfs dev /dev
{init}
poweroff -f
"""
    members = [("bin", stat.S_IFDIR | 0o755, b""),
               ("bin/busybox", stat.S_IFREG | 0o755, busybox.read_bytes()),
               ("init", stat.S_IFREG | 0o755, script.encode())]
    members += [(name, stat.S_IFREG | 0o755, data) for name, data in files]
    archive = b"".join(entry(number, *member) for number, member in enumerate(members, 1))
    path.write_bytes(archive + entry(0, "TRAILER!!!", 0))
    return path
