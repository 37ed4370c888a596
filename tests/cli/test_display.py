# SPDX-License-Identifier: Apache-2.0
"""A guest that draws on a display that it has not got."""
import husk
import pytest

pytestmark = husk.needs_accelerator

DRAW = """
start:
    mov $0xb800, %ax
    mov %ax, %ds
    movw $0x0758, 0x20
"""
PRINT = """
    mov $0x3f8, %dx
    mov $'x', %al
    out %al, %dx
"""
END = """
    mov $0xf4, %dx
    out %al, %dx
    hlt
"""
HINT = ("husk: the guest has printed nothing, but has drawn on a text screen (at 0xb8000); "
        "husk's machine has no display, only a serial console\n")


@pytest.mark.parametrize("code, hint", [(DRAW + END, HINT), (DRAW + PRINT + END, ""),
                                        ("start:" + END, "")])
def test_is_told_of_if_it_prints_nothing(tmp_path, code, hint):
    image = husk.firmware(tmp_path, code)
    result = husk.run("run", "--firmware", image, "--debug-exit", "0xf4", "-m", "2M")
    assert result.stderr == hint
