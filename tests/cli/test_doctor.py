# SPDX-License-Identifier: Apache-2.0
"""husk doctor: it tells what the other commands then do."""
import json

import husk
import pytest


@pytest.fixture
def runtime(tmp_path, monkeypatch):
    """A runtime directory in which nothing is known yet."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path


def doctor():
    result = husk.run("doctor", "--json")
    assert result.stderr == ""
    return json.loads(result.stdout)


@husk.needs_accelerator
def test_run_takes_what_doctor_says_and_for_the_same_reason(runtime, tmp_path):
    choice = doctor()["auto"]
    image = husk.firmware(tmp_path, "    putc 'K'\n    end\n")
    result = husk.run("run", "-v", "--firmware", image)
    assert (result.returncode, result.stdout) == (0, "K")
    assert f"husk: accelerator {choice['name']}: {choice['reason']}\n" in result.stderr


@husk.needs_accelerator
def test_speeds_are_measured_once(runtime):
    first = doctor()["accelerators"]
    assert (runtime / "husk" / ".speed").exists()
    assert doctor()["accelerators"] == first


@husk.needs_accelerator
def test_auto_is_the_fastest(runtime):
    document = doctor()
    speeds = {row["name"]: row["mips"] for row in document["accelerators"] if row["works"]}
    assert speeds[document["auto"]["name"]] == max(speeds.values())


def test_text_names_the_same_accelerators(runtime):
    names = [row["name"] for row in doctor()["accelerators"]]
    lines = husk.run("doctor").stdout.splitlines()
    assert [line.split()[0] for line in lines[: len(names)]] == names
    assert lines[len(names)].split()[0] == "auto"
