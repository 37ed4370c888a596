# SPDX-License-Identifier: Apache-2.0
"""Memtest86+: a bzImage of boot protocol 2.12 that is no Linux, and has its own console."""
import payloads
import pytest
from terminal import Terminal

FILES = {bits: payloads.path(f"memtest86+/boot/memtest86+{bits}.bin") for bits in ("x64", "ia32")}

pytestmark = payloads.needs(*FILES.values())


@pytest.mark.parametrize("bits", FILES)
def test_starts_testing_the_memory_it_was_given(bits):
    guest = Terminal("run", "--accel", "soft", "-m", "16M", FILES[bits], "-a", "console=ttyS0")
    for text in (b"Memtest86+ v6.10", b"husk software CPU", b"Memory  :   16MB",
                 b"[Address test, walking ones, no cache", b"of 15."):
        guest.expect(text)
