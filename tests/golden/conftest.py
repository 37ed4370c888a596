# SPDX-License-Identifier: Apache-2.0
"""Adds --update, which records instead of comparing."""
import pytest


def pytest_addoption(parser):
    parser.addoption("--update", action="store_true",
                     help="write what husk prints into the golden files")


@pytest.fixture
def update(request):
    return request.config.getoption("--update")
