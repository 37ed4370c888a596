# SPDX-License-Identifier: Apache-2.0
"""The balloon of a running instance whose guest has no driver for it. (That guests use theirs is
shown in tests/linux.)"""
import husk
import pytest
from assembly import ECHO

MIB = 1 << 20
UNKNOWN = {"swap_in_bytes": None, "swap_out_bytes": None, "major_faults": None,
           "minor_faults": None, "free_bytes": None, "total_bytes": None, "available_bytes": None,
           "cache_bytes": None, "huge_page_allocations": None, "huge_page_failures": None}


def outcome(*arguments):
    result = husk.run(*arguments)
    return result.returncode, result.stdout, result.stderr


@husk.needs_accelerator
def test_a_target_shows_in_the_statistics(guests):
    web = guests("web", ECHO, "-m", "64")
    assert web.request("GET", "/stat")[1]["balloon"] == {
        "target_bytes": 0, "actual_bytes": 0, "inflated_bytes": 0, "reported_bytes": 0,
        "kept_bytes": 0, "poisoned_bytes": 0, "guest": UNKNOWN}
    assert outcome("balloon", "web", "63") == (0, "", "")
    assert web.request("GET", "/stat")[1]["balloon"]["target_bytes"] == 63 * MIB
    assert outcome("balloon", "0M") == (0, "", "")  # it is the only instance
    assert web.request("GET", "/stat")[1]["balloon"]["target_bytes"] == 0
    assert web.request("PATCH", "/balloon", '{"amount_mib": 2}') == (204, None)
    lines = dict(line.split(maxsplit=1) for line in husk.run("stat", "web").stdout.splitlines())
    assert lines["balloon.target_bytes"] == str(2 * MIB)
    assert lines["balloon.guest.free_bytes"] == "-"


@husk.needs_accelerator
def test_a_guest_cannot_do_without_all_of_its_memory(guests):
    guests("web", ECHO, "-m", "64")
    assert outcome("balloon", "web", "64") == (
        1, "", "husk: instance web: the guest cannot do without 64 MiB: it has 64\n")


@husk.needs_accelerator
@pytest.mark.parametrize("option, reason", [
    ("--no-balloon", "--no-balloon has left it out"),
    ("--prefault", "--huge-pages and --prefault leave it out"),
    ("--deterministic", "--deterministic leaves it out"),
])
def test_a_guest_without_a_balloon_says_why(guests, option, reason):
    web = guests("web", ECHO, option)
    assert web.request("GET", "/stat")[1]["balloon"] is None
    assert outcome("balloon", "web", "1") == (
        1, "", f"husk: instance web: the guest has no balloon: {reason}\n")


@pytest.mark.parametrize("arguments, message", [
    ([], "no size is given; write MiB, such as 64"),
    (["web", "much"], "'much' is not a size; write MiB, or a number with K, M, G or T behind it, "
     "such as 512 or 2G"),
    (["web", "100K"], "'100K': must be whole MiB"),
    (["a", "b", "1"], "one instance at a time: '1' is one too many"),
    (["a/b", "1"], "an instance name consists of A-Z a-z 0-9 . _ -, character 2 of this one is "
     "another"),
])
def test_what_cannot_be_meant_is_a_usage_error(runtime, arguments, message):
    assert outcome("balloon", *arguments) == (2, "", f"husk: {message}\n")


def test_without_instances_there_is_no_balloon(runtime):
    assert outcome("balloon", "1") == (1, "", "husk: no instance is running\n")
