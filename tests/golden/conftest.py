# SPDX-License-Identifier: Apache-2.0
"""Makes tests/support importable, and adds --update, which records instead of comparing."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))


def pytest_addoption(parser):
    parser.addoption("--update", action="store_true",
                     help="write what husk prints into the golden files")


@pytest.fixture
def update(request):
    return request.config.getoption("--update")
