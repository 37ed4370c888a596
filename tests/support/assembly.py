# SPDX-License-Identifier: Apache-2.0
"""Tiny guest programs: assembly (AT&T syntax) to bytes, and a few programs that tests share."""
import pathlib
import subprocess

# `end` powers off by ACPI (S5 type 5, SLP_EN).
MACROS = """
    .macro outb_imm port, value
        mov $\\port, %dx
        mov $\\value, %al
        out %al, %dx
    .endm
    .macro putc value
        outb_imm 0x3f8, \\value
    .endm
    .macro end
        mov $0x604, %dx
        mov $0x3400, %ax
        out %ax, %dx
        hlt
    .endm
    .text
    .globl start
start:
"""

IDLE = "1:  hlt\n    jmp 1b\n"
READY_THEN_IDLE = "    putc 'R'\n" + IDLE

# Says R, then sends back what it reads from COM1; 'q' powers off, 'z' is an undefined instruction.
ECHO = """
    putc 'R'
1:  mov $0x3fd, %dx
    in %dx, %al
    test $1, %al
    jz 1b
    mov $0x3f8, %dx
    in %dx, %al
    cmp $'q', %al
    je 2f
    cmp $'z', %al
    je 3f
    out %al, %dx
    jmp 1b
2:  end
3:  ud2
"""

# Enables the power button in PM1a, says R, and powers off when it is pressed.
LISTENS = """
    mov $0x602, %dx
    mov $0x100, %ax
    out %ax, %dx
    putc 'R'
1:  mov $0x600, %dx
    in %dx, %ax
    test $0x100, %ax
    jz 1b
    end
"""
# The same, but it does not do what it is asked.
STUBBORN = LISTENS.replace("jz 1b\n    end", "jmp 1b")


def assemble(directory, bits, address, body):
    """The bytes of `body` as 16 or 32-bit code that starts at `address`."""
    source = pathlib.Path(directory) / "guest.S"
    compiled, linked, flat = (source.with_suffix(suffix) for suffix in (".o", ".elf", ".flat"))
    source.write_text(f"    .code{bits}\n" + MACROS + body)
    subprocess.run(["as", "--32", "-o", compiled, source], check=True)
    subprocess.run(["ld", "-m", "elf_i386", f"-Ttext={address:#x}", "-e", "start", "-o", linked,
                    compiled], check=True)
    subprocess.run(["objcopy", "-O", "binary", "-j", ".text", linked, flat], check=True)
    return flat.read_bytes()
