# SPDX-License-Identifier: Apache-2.0
"""For all tests in Python: none leaves a husk behind, also when it fails. `--update` records
what is compared with files instead of comparing it."""
import pytest
from terminal import Terminal


def pytest_addoption(parser):
    parser.addoption("--update", action="store_true",
                     help="write what husk or its guest prints into the files it is compared with")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Tests run side by side (./check), but under KVM one at a time: where that emulates, several
    guests would be late for each other."""
    for item in items:
        if "kvm" in item.name:
            item.add_marker(pytest.mark.xdist_group("kvm"))


@pytest.fixture
def update(request):
    return request.config.getoption("--update")


@pytest.fixture(autouse=True)
def no_terminal_stays_open():
    yield
    Terminal.end_all()
