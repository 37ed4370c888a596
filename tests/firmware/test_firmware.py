# SPDX-License-Identifier: Apache-2.0
"""Debian's firmware images start at the reset vector and start the kernel that fw_cfg holds.

What the guests print is compared with what they print when husk itself loads them, so the
byte port, DMA and no firmware at all must come to the same.
"""
import os
import pathlib
import re
import struct

import assembly
import husk
import initramfs
import pytest
import stock
from terminal import Terminal

GUESTS = pathlib.Path(os.environ.get("HUSK_BUILD", husk.ROOT / "build")) / "tests" / "guests"
EXPECTED = pathlib.Path(__file__).parent / "expected"
VMLINUZ = stock.CLOUD

# name: (file, Debian package)
FIRMWARE = {
    "seabios-128k": ("/usr/share/seabios/bios.bin", "seabios"),
    "seabios-256k": ("/usr/share/seabios/bios-256k.bin", "seabios"),
    "qboot": ("/usr/share/qemu/qboot.rom", "qemu-system-data"),
    "ovmf": ("/usr/share/ovmf/OVMF.fd", "ovmf"),
}
SEABIOS = ["seabios-128k", "seabios-256k"]
TRANSFERS = ["dma", "port"]

SECONDS = 240
DEBUG_EXIT_PORT = "0xf4"
GUEST_DONE = 0x10 << 1 | 1
COMMAND_LINE = "a=1 -- last word"
INITRD = b"initrd: its bytes to the last one\n"


def firmware(name):
    """The path of a firmware image; skips the test if it is not installed."""
    path, package = FIRMWARE[name]
    if not os.path.exists(path):
        pytest.skip(f"{path} is missing; it is in the package {package}")
    return path


def run_guest(tmp_path, kernel, *options, accelerator="soft"):
    """Runs a test guest; returns what it wrote to the debug console, without the firmware's
    own messages there, which end when the kernel is entered."""
    initrd = tmp_path / "initrd"
    initrd.write_bytes(INITRD)
    result = husk.run("run", "--accel", accelerator, "-k", kernel, "-i", initrd, "-m", "64",
                      "--cmdline", COMMAND_LINE, "--console", "none", "--debug-console",
                      "--debug-exit", DEBUG_EXIT_PORT, "--timeout", SECONDS, *options,
                      timeout=SECONDS + 30)
    assert result.returncode == GUEST_DONE, result.stdout + result.stderr
    return re.split(r"Booting from [0-9a-f]{4}:[0-9a-f]{4}\n", result.stdout)[-1]


# ---- bzImage ----


@pytest.mark.parametrize("transfer", TRANSFERS)
@pytest.mark.parametrize("name", [*SEABIOS, "qboot"])
def test_bzimage_is_entered_in_real_mode(tmp_path, name, transfer):
    printed = run_guest(tmp_path, GUESTS / "setup16.bin", "--firmware", firmware(name),
                        "--transfer", transfer)
    assert printed == (EXPECTED / "setup16.tap").read_text()


@pytest.mark.parametrize("options", [["-m", "4M"], ["-m", "5G"], ["-c", "4"]],
                         ids=" ".join)
@pytest.mark.parametrize("name", [*SEABIOS, "qboot"])
def test_small_and_large_machines(tmp_path, name, options):
    printed = run_guest(tmp_path, GUESTS / "setup16.bin", "--firmware", firmware(name), *options)
    assert printed == (EXPECTED / "setup16.tap").read_text()


@pytest.mark.skipif(not os.access("/dev/kvm", os.R_OK | os.W_OK),
                    reason="/dev/kvm cannot be used")
def test_bzimage_is_entered_in_real_mode_under_kvm(tmp_path):
    """By qboot, whose few instructions an emulating KVM can take."""
    printed = run_guest(tmp_path, GUESTS / "setup16.bin", "--firmware", firmware("qboot"),
                        accelerator="kvm")
    assert printed == (EXPECTED / "setup16.tap").read_text()


# ---- kernels that are entered in protected mode ----


def facts(printed):
    """What a guest prints, without what is another matter with firmware: where the
    information lies, the end of RAM that firmware keeps, and its own ACPI tables."""
    other = re.compile(r"ebx: |mem_upper: |memory map: |  0x[0-9a-f]{16} |tag \d+, .*memory map|"
                       r"tag 4, |tag 1[45], .*RSDP|(not )?ok 1[56] - .*RSDP")
    return [line for line in printed.splitlines() if not other.match(line)]


@pytest.mark.parametrize("transfer", TRANSFERS)
@pytest.mark.parametrize("name", SEABIOS)
@pytest.mark.parametrize("kernel", [
    "multiboot1-elf32.elf", "multiboot1-elf64.elf", "multiboot1-flat.bin",
    "multiboot2-elf32.elf", "pvh32.elf", "pvh64.elf"])
def test_kernel_finds_what_it_finds_without_firmware(tmp_path, kernel, name, transfer):
    printed = run_guest(tmp_path, GUESTS / kernel, "--firmware", firmware(name),
                        "--transfer", transfer)
    assert facts(printed) == facts(run_guest(tmp_path, GUESTS / kernel))


@pytest.mark.parametrize("transfer", TRANSFERS)
def test_kernel_on_both_sides_of_the_bios_leaves_it_alone(tmp_path, transfer):
    """Its segments lie below 640 KiB and its module above 1 MiB, and come as one piece."""
    kernel = GUESTS / "multiboot1-low.elf"
    printed = run_guest(tmp_path, kernel, "--firmware", firmware("seabios-256k"),
                        "--transfer", transfer)
    assert facts(printed) == facts(run_guest(tmp_path, kernel))


def test_memory_map_leaves_out_what_firmware_keeps(tmp_path):
    printed = run_guest(tmp_path, GUESTS / "multiboot1-elf32.elf", "--firmware",
                        firmware("seabios-256k"))
    assert "mem_upper: 63488\n" in printed
    assert "  0x0000000003f00000 0x0000000000100000 type 2, size 20\n" in printed


@pytest.mark.parametrize("transfer", TRANSFERS)
def test_transfer_port_leaves_firmware_without_dma(tmp_path, transfer):
    result = husk.run("run", "--accel", "soft", "--firmware", firmware("seabios-256k"),
                      "-k", GUESTS / "setup16.bin", "-m", "64", "--console", "none",
                      "--debug-console", "--debug-exit", DEBUG_EXIT_PORT, "--transfer",
                      transfer, "--timeout", SECONDS, timeout=SECONDS + 30)
    assert "Found QEMU fw_cfg\n" in result.stdout
    assert ("fw_cfg DMA interface supported" in result.stdout) == (transfer == "dma")


# ---- Linux ----

needs_linux = [
    stock.needs(VMLINUZ),
    stock.needs_busybox,
]
INIT = """
echo up on $(nproc)
dmesg | grep -q 'ACPI: Interpreter enabled' && echo with ACPI
"""


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=needs_linux) for name in ("seabios-256k", "qboot", "ovmf")])
def test_stock_kernel_reaches_user_space(tmp_path, name):
    archive = initramfs.make(tmp_path / "initramfs", INIT)
    result = husk.run("run", "--accel", "soft", "--firmware", firmware(name), "-k", VMLINUZ,
                      "-i", archive, "-m", "512", "--timeout", SECONDS,
                      timeout=SECONDS + 30)
    lines = [line.rstrip("\r") for line in result.stdout.split("\n")]
    assert result.returncode == 0, result.stdout
    assert "up on 1" in lines and "with ACPI" in lines, result.stdout
    assert ("EFI stub" in result.stdout) == (name == "ovmf")


# ---- the machine around firmware ----


def real_mode_kernel(directory, body):
    """A bzImage that is nothing but a setup part with `body` (16-bit code) in it."""
    sectors, header_end = 4, 0x268
    image = bytearray((sectors + 1) * 512 + 512)
    code = assembly.assemble(directory, 16, header_end - 0x200, body)
    image[0x1f1] = sectors
    struct.pack_into("<I", image, 0x1f4, 512 // 16)
    struct.pack_into("<H2B4sH", image, 0x1fe, 0xaa55, 0xeb, header_end - 0x202, b"HdrS",
                     0x20c)
    image[0x211] = 0x01
    struct.pack_into("<II", image, 0x22c, 0x7fffffff, 0x1000)
    struct.pack_into("<I", image, 0x238, 255)
    struct.pack_into("<I", image, 0x260, 0x1000)
    image[header_end:header_end + len(code)] = code
    path = pathlib.Path(directory) / "kernel.bin"
    path.write_bytes(image)
    return path


# A byte of CMOS, which a reset leaves alone, tells the second start from the first.
RESETS_ONCE = """
    outb_imm 0x70, 0x40
    in $0x71, %al
    test %al, %al
    jnz 1f
    outb_imm 0xe9, '1'
    outb_imm 0x71, 0x01
    outb_imm 0xcf9, 0x02
    outb_imm 0xcf9, 0x06
    hlt
1:  outb_imm 0xe9, '2'
    end
"""


@pytest.mark.parametrize("name", [*SEABIOS, "qboot"])
def test_reset_starts_firmware_and_kernel_again(tmp_path, name):
    kernel = real_mode_kernel(tmp_path, RESETS_ONCE)
    result = husk.run("run", "--accel", "soft", "--firmware", firmware(name), "-k", kernel,
                      "-m", "64", "--console", "none", "--debug-console", "--timeout",
                      SECONDS, timeout=SECONDS + 30)
    told = r"12" if name == "qboot" else r"SeaBIOS.*1SeaBIOS.*2"
    assert result.returncode == 0, result.stdout + result.stderr
    assert re.fullmatch(told, result.stdout, re.DOTALL), result.stdout


@pytest.mark.parametrize("name", SEABIOS)
def test_firmware_without_a_kernel_says_so_on_the_console(name):
    terminal = Terminal("run", "--accel", "soft", "--firmware", firmware(name), "-m", "64")
    terminal.expect(b"No bootable device")
