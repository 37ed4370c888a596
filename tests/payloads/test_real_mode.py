# SPDX-License-Identifier: Apache-2.0
"""Programs that dress up as Linux but want a BIOS below them: they are started in real mode, by
SeaBIOS and husk's option ROM."""
import subprocess

import payloads
from terminal import Terminal

SEABIOS = payloads.path("seabios/usr/share/seabios/bios-256k.bin")
IPXE = payloads.path("ipxe/boot/ipxe.lkrn")
GRUB_MODULES = payloads.path("grub-pc-bin/usr/lib/grub/i386-pc")
GRUB_MKIMAGE = payloads.path("grub-common/usr/bin/grub-mkimage")

GRUB_SCRIPT = """
serial --unit=0 --speed=115200
terminal_output serial
echo "GRUB is up"
halt
"""


@payloads.needs(SEABIOS, IPXE)
def test_ipxe_runs_the_commands_it_is_given():
    guest = Terminal("run", "--accel", "soft", "-m", "64M", "--firmware", SEABIOS, IPXE,
                     "--cmdline", "echo hello from iPXE")
    guest.expect(b"iPXE initialising devices...ok")
    guest.expect(b"hello from iPXE")


@payloads.needs(SEABIOS, GRUB_MODULES, GRUB_MKIMAGE)
def test_grub_runs_its_script_and_halts(tmp_path):
    script = tmp_path / "grub.cfg"
    script.write_text(GRUB_SCRIPT)
    core = tmp_path / "core.img"
    subprocess.run([GRUB_MKIMAGE, "-d", GRUB_MODULES, "-O", "i386-pc", "-p", "/boot/grub",
                    "-c", script, "-o", core, "serial", "terminal", "echo", "halt"], check=True)
    image = tmp_path / "grub"
    image.write_bytes((GRUB_MODULES / "lnxboot.img").read_bytes() + core.read_bytes())
    guest = Terminal("run", "--accel", "soft", "-m", "64M", "--firmware", SEABIOS, image)
    guest.expect(b"GRUB is up")
    assert guest.end() == 0
