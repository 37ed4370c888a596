# SPDX-License-Identifier: Apache-2.0
"""Kernel files of every kind that husk plans for, with a pattern where code would be.

Their sizes and contents never change, so plans for them can be compared byte for byte.
"""
import dataclasses
import struct
import zlib

import kernels

PAGE = 4096
EM_X86_64 = 62
PT_LOAD, PT_NOTE = 1, 4
CODE_BYTES = 0x1800


@dataclasses.dataclass
class Segment:
    """One PT_LOAD."""
    gpa: int
    file_offset: int
    file_bytes: int
    bss_bytes: int = 0


# A page and a half of text at 1 MiB; whole pages of data with bss at 2 MiB.
SEGMENTS = (Segment(0x100000, 0x1000, 0x1800),
            Segment(0x200000, 0x3000, 0x2000, bss_bytes=0x5000))


def pattern(size):
    return bytes((i * 7 + i // 256) & 0xff for i in range(size))


def elf64(segments=SEGMENTS, with_note=True):
    """An x86-64 ELF that is entered at the start of its first segment."""
    entry = segments[0].gpa
    note = kernels.note("Xen", kernels.XEN_ELFNOTE_PHYS32_ENTRY, struct.pack("<Q", entry))
    rows = [struct.pack("<IIQQQQQQ", PT_LOAD, 7, part.file_offset, part.gpa, part.gpa,
                        part.file_bytes, part.file_bytes + part.bss_bytes, PAGE)
            for part in segments]
    if with_note:
        rows.append(struct.pack("<IIQQQQQQ", PT_NOTE, 4, kernels.NOTE_OFFSET, 0, 0, len(note),
                                len(note), 4))
    header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 2, EM_X86_64, 1, entry, 64, 0,
                         0, 64, 56, len(rows), 0, 0, 0)
    file = bytearray(pattern(max(part.file_offset + part.file_bytes for part in segments)))
    file[:PAGE] = (header + b"".join(rows)).ljust(PAGE, b"\0")
    if with_note:
        file[kernels.NOTE_OFFSET:kernels.NOTE_OFFSET + len(note)] = note
    return bytes(file)


def with_bytes(file, offset, replacement):
    return file[:offset] + replacement + file[offset + len(replacement):]


def with_multiboot(file, header_offset, flags=0, fields=b""):
    """A Multiboot 1 header: its flags, and the fields that they announce."""
    magic = 0x1badb002
    header = struct.pack("<III", magic, flags, -(magic + flags) & 0xffffffff)
    return with_bytes(file, header_offset, header + fields)


def multiboot_addresses(header, load, load_end=0, bss_end=0, entry=None):
    """What flag 16 announces; the entry is where loading starts if not given."""
    return struct.pack("<IIIII", header, load, load_end, bss_end,
                       load if entry is None else entry)


def with_multiboot2(file, header_offset, *tags):
    """A Multiboot 2 header; each tag is (type, flags, content)."""
    magic = 0xe85250d6
    body = b"".join((struct.pack("<HHI", kind, flags, 8 + len(content)) + content).ljust(
        (8 + len(content) + 7) // 8 * 8, b"\0") for kind, flags, content in
        (*tags, (0, 0, b"")))
    length = 16 + len(body)
    header = struct.pack("<IIII", magic, 0, length, -(magic + length) & 0xffffffff)
    return with_bytes(file, header_offset, header + body)


def stored_gzip(data):
    """Gzip without compression: the same bytes with every version of zlib."""
    packer = zlib.compressobj(level=0, wbits=31)
    return packer.compress(data) + packer.flush()


def bzimage(payload=b"", xloadflags=1, setup_sectors=7, relocatable=True):
    """A bzImage of boot protocol 2.15: 0x1800 bytes of code, then `payload`."""
    kernel = pattern(CODE_BYTES) + payload
    kernel += b"\0" * (-len(kernel) % 16)
    setup = bytearray(pattern((setup_sectors + 1) * 512))
    setup[0x1f1:0x270] = b"\0" * (0x270 - 0x1f1)

    def put(offset, form, value):
        struct.pack_into("<" + form, setup, offset, value)

    put(0x1f1, "B", setup_sectors)
    put(0x1f4, "I", len(kernel) // 16)   # syssize
    put(0x1fe, "H", 0xaa55)              # boot_flag
    put(0x200, "H", 0x6aeb)              # jump over the header, whose end it tells: 0x26c
    put(0x202, "I", 0x53726448)          # "HdrS"
    put(0x206, "H", 0x020f)              # version
    put(0x211, "B", 1)                   # loadflags: LOADED_HIGH
    put(0x22c, "I", 0x7fffffff)          # initrd_addr_max
    put(0x230, "I", 0x200000)            # kernel_alignment
    put(0x234, "B", relocatable)         # relocatable_kernel
    put(0x236, "H", xloadflags)          # bit 0: 64-bit entry
    put(0x238, "I", 2047)                # cmdline_size
    put(0x248, "I", CODE_BYTES)          # payload_offset
    put(0x24c, "I", len(payload))        # payload_length
    put(0x258, "Q", 0x1000000)           # pref_address
    put(0x260, "I", 0x400000)            # init_size
    return bytes(setup) + kernel


FILES = {
    "vmlinux": elf64(),
    "vmlinux-without-note": elf64(with_note=False),
    "vmlinux-multiboot": with_multiboot(elf64(with_note=False), 0x1000),
    "vmlinux-multiboot-late": with_multiboot(elf64(with_note=False), 8196),
    "multiboot-low": with_multiboot(elf64((Segment(0x1000, 0x1000, 0x8000, bss_bytes=0x90000),),
                                          with_note=False), 0x1000),
    "multiboot-flat": with_multiboot(
        pattern(0x2800), 0x40, 1 << 16,
        multiboot_addresses(0x100040, 0x100000, 0x102400, 0x106000)),
    "multiboot-flat-odd": with_multiboot(
        pattern(0x2800), 0x40, 1 << 16, multiboot_addresses(0x100048, 0x100010)),
    "multiboot-requirement": with_multiboot(elf64(with_note=False), 0x1000, 1 << 3 | 1 << 15),
    "multiboot-entry": with_multiboot(
        pattern(0x2800), 0x40, 1 << 16, multiboot_addresses(0x100040, 0x100000, entry=0xfffff)),
    "multiboot2": with_multiboot2(elf64(with_note=False), 0x1000),
    "multiboot2-relocatable": with_multiboot2(
        elf64(with_note=False), 0x1000,
        (10, 0, struct.pack("<IIII", 0x1000000, 0x3ffffff, 0x200000, 2))),
    "multiboot2-tag": with_multiboot2(elf64(with_note=False), 0x1000, (0x4242, 0, b"")),
    "multiboot2-request": with_multiboot2(elf64(with_note=False), 0x1000,
                                          (1, 0, struct.pack("<II", 6, 0x4242))),
    "multiboot2-console": with_multiboot2(elf64(with_note=False), 0x1000,
                                          (4, 0, struct.pack("<I", 1))),
    "multiboot-both-pvh": with_multiboot2(with_multiboot(elf64(), 0x1800), 0x1000),
    "vmlinux-odd": elf64((Segment(0x100000, 0x1200, 0x1800), Segment(0x200010, 0x3010, 0x1ff0),
                          Segment(0x300800, 0x5800, 0x100))),
    "vmlinuz": bzimage(stored_gzip(elf64())),
    "vmlinux-in-name-only": bzimage(stored_gzip(elf64())),
    "vmlinuz-without-note": bzimage(stored_gzip(elf64(with_note=False))),
    "vmlinux.gz": stored_gzip(elf64()),
    "vmlinux-cut.gz": stored_gzip(elf64())[:-9],
    "initrd.gz": stored_gzip(b"070701" + pattern(0x1800)),
    "vmlinuz-32": bzimage(xloadflags=0),
    "vmlinuz-fixed": bzimage(relocatable=False),
    "vmlinuz-odd": bzimage(setup_sectors=6),
    "initrd": b"070701" + pattern(0x1800),
    "microcode": b"070701" + pattern(100),
    "root.ext4": b"\0" * 0x438 + b"\x53\xef" + b"\0" * 0x400,
    "bios.bin": pattern(0x21000),
    "empty": b"",
    "truncated": elf64()[:0x2000],
    "notes.txt": b"this is no kernel\n",
}


def write_all(directory):
    for name, content in FILES.items():
        (directory / name).write_bytes(content)
    (directory / "folder").mkdir()
    with open(directory / "initrd-16-mib", "wb") as sparse:
        sparse.truncate(16 << 20)
    for name, size in [("root.img", 4 << 20), ("odd.img", 5000)]:
        with open(directory / name, "wb") as sparse:
            sparse.truncate(size)
