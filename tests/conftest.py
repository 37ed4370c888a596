# SPDX-License-Identifier: Apache-2.0
"""For all tests in Python: none leaves a husk behind, also when it fails."""
import pytest
from terminal import Terminal


@pytest.fixture(autouse=True)
def no_terminal_stays_open():
    yield
    Terminal.end_all()
