# SPDX-License-Identifier: Apache-2.0
"""What the end-to-end tests share: the husk binary, accelerators of this host, tiny guests.

HUSK names the binary (default: build/husk beside the tests). Guests are a few lines of assembly,
assembled on the spot into a firmware image that starts at the reset vector.
"""
import functools
import json
import os
import pathlib
import signal
import subprocess

import assembly
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HUSK = os.environ.get("HUSK", str(ROOT / "build" / "src" / "husk"))

FIRMWARE_BYTES = 4096

# What is ignored here, as under nohup, would stay ignored in husk; tests send these signals.
for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, signal.SIG_DFL)

# 16 bytes below 4 GiB: a jump to the start of the image.
RESET_VECTOR = """
    .org 0xff0
    jmp start
    .org 0x1000
"""


def run(*arguments, **options):
    """Runs husk to its end; text in and out."""
    options.setdefault("timeout", 60)
    options.setdefault("stdin", subprocess.DEVNULL if "input" not in options else None)
    if "input" in options:
        del options["stdin"]
    return subprocess.run([HUSK, *map(str, arguments)], capture_output=True, text=True,
                          check=False, **options)


@functools.lru_cache(maxsize=None)
def missing_accelerator():
    """Why no guest can run here, or None."""
    choice = json.loads(run("doctor", "--json").stdout)["auto"]
    return None if choice["works"] else choice["reason"]


needs_accelerator = pytest.mark.skipif(missing_accelerator() is not None,
                                       reason=f"no accelerator: {missing_accelerator()}")


def firmware(directory, body):
    """Assembles `body` (16-bit code) into a firmware image and returns its path."""
    image = pathlib.Path(directory) / "guest.bin"
    image.write_bytes(assembly.assemble(directory, 16, 0, body + RESET_VECTOR))
    assert image.stat().st_size == FIRMWARE_BYTES
    return image
