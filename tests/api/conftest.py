# SPDX-License-Identifier: Apache-2.0
"""Gives each test instances of its own."""
import pathlib
import shutil
import tempfile

import instances
import pytest


@pytest.fixture
def runtime(monkeypatch):
    """An empty runtime directory; a short one, for it holds sockets."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix="husk-test-", dir="/tmp"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(directory))
    yield directory
    shutil.rmtree(directory)


@pytest.fixture
def guests(runtime, tmp_path):
    """Starts guests: guests(name, program); those left at the end are killed."""
    started = []

    def start(name, program, *options):
        instance = instances.Instance(runtime, tmp_path, name, program, options)
        started.append(instance)
        instance.wait_ready()
        return instance

    yield start
    for instance in started:
        instance.finish()
