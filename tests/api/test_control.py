# SPDX-License-Identifier: Apache-2.0
"""husk list, stat, stop, kill, pause and resume, and the names they go by."""
import json
import os
import re
import signal
import socket

import husk
import pytest
from assembly import ECHO, LISTENS, STUBBORN
from instances import receive

HEADER = "NAME  STATE  PID  UPTIME  MEMORY  CPUS  KERNEL\n"
NAMED = ["stat", "stop", "kill", "pause", "resume", "resize", "console"]


def outcome(*arguments):
    result = husk.run(*arguments)
    return result.returncode, result.stdout, result.stderr


# ---- without a guest ----

def test_an_empty_list_is_a_header_and_an_empty_document(runtime):
    assert outcome("list") == (0, HEADER, "")
    code, text, _ = outcome("list", "--json")
    assert (code, json.loads(text)) == (0, {"schema": 1, "instances": []})
    assert not (runtime / "husk").exists()


@pytest.mark.parametrize("command", NAMED)
def test_without_instances_there_is_nothing_to_control(runtime, command):
    assert outcome(command) == (1, "", "husk: no instance is running\n")
    assert outcome(command, "web") == (
        1, "", 'husk: no running instance is named "web"; see: husk list\n')


@pytest.mark.parametrize("command", NAMED)
def test_names_outside_the_rules_are_a_usage_error(runtime, command):
    assert outcome(command, "a/b") == (
        2, "", "husk: an instance name consists of A-Z a-z 0-9 . _ -, "
        "character 2 of this one is another\n")
    assert outcome(command, "a", "b") == (
        2, "", "husk: one instance at a time: 'b' is one too many\n")


@pytest.mark.parametrize("arguments, message", [
    (["list", "--jsno"], "unknown option '--jsno'; did you mean '--json'?"),
    (["list", "web"], "unexpected argument 'web'"),
    (["stat", "--json=1"], "--json takes no value"),
    (["pause", "--json"], "unknown option '--json'; --help lists the options"),
    (["stop", "--timeot", "5"], "unknown option '--timeot'; did you mean '--timeout'?"),
    (["stop", "--timeout"], "--timeout needs a value: --timeout SECONDS"),
    (["stop", "--timeout", "soon"], "--timeout 'soon': must be 0 to 86400 seconds"),
    (["stop", "--timeout=-1"], "--timeout '-1': must be 0 to 86400 seconds"),
    (["stop", "--timeout=86401"], "--timeout '86401': must be 0 to 86400 seconds"),
    (["console", "--no-inptu"], "unknown option '--no-inptu'; did you mean '--no-input'?"),
])
def test_usage_errors(runtime, arguments, message):
    assert outcome(*arguments) == (2, "", f"husk: {message}\n")


@pytest.mark.parametrize("command", ["list", *NAMED])
def test_help_goes_to_standard_output(command):
    code, text, errors = outcome(command, "--help")
    assert (code, errors) == (0, "")
    assert text.startswith(f"Usage: husk {command}")


def test_a_base_directory_open_to_others_is_refused(runtime):
    (runtime / "husk").mkdir(mode=0o700)
    os.chmod(runtime / "husk", 0o777)
    assert outcome("list") == (
        1, "", f"husk: {runtime}/husk is open to others (mode 0777): chmod 700 it\n")


# ---- looking ----

@husk.needs_accelerator
def test_list_shows_what_runs(guests):
    web = guests("web", ECHO, "--memory", "64", "--cpus", "2")
    code, text, errors = outcome("list")
    assert (code, errors) == (0, "")
    header, row = text.splitlines()
    assert header.split() == HEADER.split()
    assert re.fullmatch(rf"web +running +{web.process.pid} +\d+s +64M +2 +{web.image}", row)
    assert row.index("running") == header.index("STATE")
    assert row.index(str(web.image)) == header.index("KERNEL")


@husk.needs_accelerator
def test_list_json_has_the_documents_of_all(guests):
    beta = guests("beta", ECHO)
    alpha = guests("alpha", ECHO, "--memory", "1G")
    document = json.loads(outcome("list", "--json")[1])
    assert document["schema"] == 1
    assert [entry["name"] for entry in document["instances"]] == ["alpha", "beta"]
    first, second = document["instances"]
    assert first["uptime_ms"] > 0
    del first["uptime_ms"]
    assert first == {"name": "alpha", "state": "running", "pid": alpha.process.pid,
                     "accel": first["accel"], "kernel": str(alpha.image),
                     "protocol": "firmware", "memory_bytes": 1 << 30, "vcpus": 1}
    assert second["pid"] == beta.process.pid


@husk.needs_accelerator
def test_stat_shows_counters_plan_stages_and_memory(guests):
    web = guests("web", ECHO)
    with web.console() as console:
        receive(console, b"R")
        console.sendall(b"12345")
        receive(console, b"12345")
    code, text, _ = outcome("stat", "web", "--json")
    document = json.loads(text)
    assert (code, document["schema"], document["name"]) == (0, 1, "web")
    assert document["counters"]["port_exits"] > 0
    assert document["counters"]["console_bytes_out"] == 6
    assert document["counters"]["console_bytes_in"] == 5
    assert set(document["plan_bytes"]) == {"mapped", "copied", "zeroed", "generated"}
    assert sum(document["plan_bytes"].values()) >= husk.FIRMWARE_BYTES
    stages = document["stages_ms"]
    assert 0 < stages["config"] <= stages["plan"] <= stages["memory"] <= stages["init_end"]
    assert stages["start_user"] is None and stages["end"] is None
    memory = document["process"]
    assert 0 < memory["private_bytes"] <= memory["pss_bytes"] <= memory["rss_bytes"]

    lines = dict(line.split(maxsplit=1) for line in outcome("stat")[1].splitlines())
    assert lines["name"] == "web"
    assert lines["state"] == "running"
    assert lines["counters.console_bytes_out"] == "6"
    assert lines["stages_ms.end"] == "-"
    assert "schema" not in lines


@husk.needs_accelerator
def test_an_instance_that_does_not_answer_is_listed_as_such(guests):
    web = guests("web", ECHO, "--memory", "64")
    web.process.send_signal(signal.SIGSTOP)
    row = outcome("list")[1].splitlines()[1]
    assert re.fullmatch(rf"web +no answer +{web.process.pid} +- +64M +1 +{web.image}", row)


# ---- pause and resume ----

@husk.needs_accelerator
def test_a_paused_guest_does_nothing_until_it_is_resumed(guests):
    web = guests("web", ECHO)
    with web.console() as console:
        receive(console, b"R")
        assert outcome("pause") == (0, "", "")
        assert json.loads(outcome("stat", "--json")[1])["state"] == "paused"
        console.sendall(b"abc")
        console.settimeout(0.5)
        with pytest.raises(socket.timeout):
            console.recv(1)
        before = json.loads(outcome("stat", "--json")[1])["counters"]["port_exits"]
        assert json.loads(outcome("stat", "--json")[1])["counters"]["port_exits"] == before
        assert outcome("pause", "web") == (0, "", "")
        assert outcome("resume") == (0, "", "")
        console.settimeout(30)
        receive(console, b"abc")
    assert json.loads(outcome("stat", "--json")[1])["state"] == "running"


# ---- stop and kill ----

@husk.needs_accelerator
def test_stop_presses_the_power_button_and_waits(guests):
    web = guests("web", LISTENS)
    assert outcome("stop", "web") == (0, "", "")
    assert web.process.poll() == 0 or web.wait() == 0
    assert not web.directory.exists()


@husk.needs_accelerator
def test_stop_ends_a_guest_that_does_not_listen_at_once(guests):
    web = guests("web", ECHO)
    assert outcome("stop", "--timeout", "86400") == (0, "", "")
    assert web.wait() == 5
    assert not web.directory.exists()


@husk.needs_accelerator
def test_stop_ends_a_guest_that_ignores_the_button_after_the_timeout(guests):
    web = guests("web", STUBBORN)
    assert outcome("stop", "--timeout=1", "web") == (0, "", "")
    assert web.wait() == 5


@husk.needs_accelerator
def test_stop_ends_a_paused_guest(guests):
    web = guests("web", LISTENS)
    assert outcome("pause") == (0, "", "")
    assert outcome("stop") == (0, "", "")
    assert web.wait() == 5


@husk.needs_accelerator
def test_stop_without_an_answer_says_how_to_go_on(guests):
    web = guests("web", LISTENS)
    web.process.send_signal(signal.SIGSTOP)
    assert outcome("stop", "web") == (
        1, "", "husk: instance web: does not answer (timed out after 5 s); "
        "to end it by force: husk kill web\n")


@husk.needs_accelerator
def test_kill_does_not_ask_the_guest(guests):
    web = guests("web", LISTENS)
    assert outcome("kill", "web") == (0, "", "")
    assert web.wait() == 5


@husk.needs_accelerator
def test_kill_ends_an_instance_that_does_not_answer(guests):
    web = guests("web", LISTENS)
    web.process.send_signal(signal.SIGSTOP)
    assert outcome("kill") == (0, "", "")
    assert web.wait() == -signal.SIGKILL
    assert outcome("list") == (0, HEADER, "")
    assert not web.directory.exists()


# ---- names ----

@husk.needs_accelerator
def test_of_two_instances_one_must_be_named(guests):
    web = guests("web", ECHO)
    database = guests("database", ECHO)
    assert outcome("stop") == (
        2, "", "husk: 2 instances are running, name one of them: database, web\n")
    assert outcome("stop", "wep") == (
        1, "", 'husk: no running instance is named "wep"; did you mean "web"?\n')
    assert outcome("stop", "web") == (0, "", "")
    assert web.wait() == 5
    assert database.process.poll() is None
    assert outcome("stop") == (0, "", "")
    assert database.wait() == 5


@husk.needs_accelerator
def test_a_name_can_be_used_once_at_a_time(guests):
    web = guests("web", ECHO)
    result = husk.run("run", "--firmware", web.image, "--name", "web")
    assert (result.returncode, result.stdout, result.stderr) == (
        1, "", f'husk: instance name "web" is in use by process {web.process.pid}: '
        "choose another --name, or end that one with: husk stop web\n")
    assert web.process.poll() is None


@husk.needs_accelerator
def test_kill_minus_9_leaves_a_name_that_can_be_used_again(guests):
    web = guests("web", ECHO)
    web.process.kill()
    assert web.wait() == -signal.SIGKILL
    assert (web.directory / "api.sock").exists()
    again = guests("web", ECHO)
    assert outcome("stat", "web")[0] == 0
    assert len(outcome("list")[1].splitlines()) == 2
    assert outcome("stop") == (0, "", "")
    assert again.wait() == 5


@husk.needs_accelerator
def test_without_a_name_the_pid_makes_one(runtime, tmp_path):
    image = husk.firmware(tmp_path, "    putc 'K'\n    end\n")
    result = husk.run("run", "--firmware", image)
    assert (result.returncode, result.stdout) == (0, "K")
    # Names that start with a dot are husk's own, such as the measured speeds.
    assert [path for path in (runtime / "husk").iterdir() if path.name[0] != "."] == []
