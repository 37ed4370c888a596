# SPDX-License-Identifier: Apache-2.0
"""GRUB Invaders: a Multiboot 1 kernel that is placed by address fields, and needs a display."""
import husk
import payloads

INVADERS = payloads.path("grub-invaders/boot/invaders.exec")

pytestmark = payloads.needs(INVADERS)


def test_says_that_there_is_no_display_for_it():
    result = husk.run("run", "--accel", "soft", "-m", "16M", INVADERS, "--timeout", 3)
    assert (result.returncode, result.stdout, result.stderr) == (124, "", (
        "husk: the guest has printed nothing, but has drawn on a text screen (at 0xb8000); "
        "husk's machine has no display, only a serial console\n"
        "husk: stopped after --timeout 3 s\n"))
