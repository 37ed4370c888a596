# SPDX-License-Identifier: Apache-2.0
"""Leaves no guest, no mount and no process behind."""
import tempfile

import faulty
import linux_guest
import pytest


@pytest.fixture(scope="session", autouse=True)
def shared_cache(tmp_path_factory):
    """One image cache for all of these, of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HUSK_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def archive(tmp_path_factory):
    return linux_guest.make_archive(tmp_path_factory.mktemp("initramfs") / "initramfs")


@pytest.fixture(scope="session", autouse=True)
def runtime():
    """An empty runtime directory; a short one, for it holds sockets."""
    with tempfile.TemporaryDirectory(prefix="husk-test-", dir="/tmp") as directory, \
            pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_RUNTIME_DIR", directory)
        yield


@pytest.fixture(scope="module", autouse=True)
def nothing_is_left():
    """Not even by a test that has failed."""
    yield
    linux_guest.Guest.kill_all()
    faulty.FaultyFile.close_all()
    faulty.SmallHost.unmount_all()


@pytest.fixture
def boot(archive, tmp_path):
    """Starts a Linux guest with the options given."""
    yield lambda *options: linux_guest.Guest(archive, tmp_path, *options)
    linux_guest.Guest.kill_all()
