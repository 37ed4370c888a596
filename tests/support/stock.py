# SPDX-License-Identifier: Apache-2.0
"""Debian's stock kernels, where tools/get-kernel puts them, and the marks of tests that need one."""
import os
import pathlib

import husk
import initramfs
import pytest

KERNELS = pathlib.Path(os.environ.get("HUSK_KERNELS", husk.ROOT / "build" / "kernels"))
CLOUD = KERNELS / "cloud-amd64" / "vmlinuz"
GENERIC = KERNELS / "amd64" / "vmlinuz"


def why_missing(file):
    return f"{file} is missing; tools/get-kernel {file.relative_to(KERNELS).parts[0]} fetches it"


def needs(*files):
    """Skips a test without these; the last one is named."""
    return pytest.mark.skipif(not all(file.exists() for file in files),
                              reason=why_missing(files[-1]))


needs_busybox = pytest.mark.skipif(not initramfs.BUSYBOX.exists(), reason="no /bin/busybox")
