# SPDX-License-Identifier: Apache-2.0
"""Tiny kernels made on the spot: an ELF64 with a PVH note and 32-bit code."""
import pathlib
import struct

import assembly

PAGE = 4096
LOAD_ADDRESS = 0x100000
NOTE_OFFSET = 0x800
XEN_ELFNOTE_PHYS32_ENTRY = 18


def note(owner, kind, descriptor):
    """One ELF note, name and descriptor padded to 4."""
    name = owner.encode() + b"\0"
    padded = [part + b"\0" * (-len(part) % 4) for part in (name, descriptor)]
    return struct.pack("<III", len(name), len(descriptor), kind) + padded[0] + padded[1]


def pvh_elf(code, file_offset=PAGE, size=None, with_note=True, bss=0):
    """An ELF64 whose only segment is `code`, grown with a pattern to `size` bytes."""
    size = size or len(code)
    body = code + bytes(i & 0xff for i in range(len(code), size))
    notes = note("Xen", XEN_ELFNOTE_PHYS32_ENTRY, struct.pack("<Q", LOAD_ADDRESS))
    header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 2, 62, 1, LOAD_ADDRESS, 64, 0,
                         0, 64, 56, 2 if with_note else 1, 0, 0, 0)
    load = struct.pack("<IIQQQQQQ", 1, 7, file_offset, LOAD_ADDRESS, LOAD_ADDRESS, size,
                       size + bss, PAGE)
    notes_row = struct.pack("<IIQQQQQQ", 4, 4, NOTE_OFFSET, 0, 0, len(notes), len(notes), 4)
    head = header + load + (notes_row if with_note else b"")
    head += b"\0" * (NOTE_OFFSET - len(head)) + (notes if with_note else b"")
    return head + b"\0" * (file_offset - len(head)) + body


def pvh_kernel(directory, body, **options):
    """Writes such a kernel from assembly and returns its path."""
    path = pathlib.Path(directory) / "kernel.elf"
    path.write_bytes(pvh_elf(assembly.assemble(directory, 32, LOAD_ADDRESS, body), **options))
    return path
