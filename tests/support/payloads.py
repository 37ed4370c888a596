# SPDX-License-Identifier: Apache-2.0
"""Programs for bare machines that Debian ships, where tools/get-payloads has put them."""
import os
import pathlib

import husk
import pytest

PAYLOADS = pathlib.Path(os.environ.get("HUSK_PAYLOADS", husk.ROOT / "build" / "payloads"))


def path(pattern):
    """The file of a payload; names with a version in them are patterns."""
    return next(iter(sorted(PAYLOADS.glob(pattern))), PAYLOADS / pattern)


def needs(*files):
    """Skips a test, and says which file it misses."""
    missing = [str(file) for file in files if not file.exists()]
    return pytest.mark.skipif(bool(missing), reason=f"{', '.join(missing)} is missing; "
                              "tools/get-payloads and tools/get-kernel fetch it")
