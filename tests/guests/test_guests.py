# SPDX-License-Identifier: Apache-2.0
"""Runs each test guest on each accelerator that this host offers and compares what it
prints with expected/NAME.tap, byte for byte: the same guest says the same everywhere.

HUSK is the program, HUSK_BUILD the build folder with the guests in tests/guests/.
"""
import fcntl
import json
import os
import pathlib
import subprocess

import pytest

HUSK = os.environ.get("HUSK", "husk")
BUILD = pathlib.Path(os.environ.get("HUSK_BUILD", "build"))
IMAGES = BUILD / "tests" / "guests"
EXPECTED = pathlib.Path(__file__).parent / "expected"

# linux/kvm.h
KVM_GET_API_VERSION = 0xAE00
KVM_API_VERSION = 12

DEBUG_EXIT_PORT = 0xF4
GUEST_TIMEOUT_S = 30
# Four that spin take turns on the host's processors, and sanitizers make each turn longer.
CROWDED_TIMEOUT_S = 150
HUSK_EXIT_POWER_OFF = 0
HUSK_EXIT_CRASHED = 3
# What a guest writes when all its tests have run (tap.inc), as husk passes it on.
GUEST_DONE = 0x10 << 1 | 1

COMMAND_LINE = "console=ttyS0 a=1 -- last word"
INITRD = b"initrd: its bytes to the last one\n"

SECTOR_BYTES = 512
SECTORS = 128
# What virtio_blk.S leaves behind: sectors that are full of another byte than their number.
CHANGED_SECTORS = {5: 0xA5, 7: 0}
DISCARDED_SECTOR = 8  # of which anything may have become

# name: (image, options, exit code)
GUESTS = {
    "pvh64": ("pvh64.elf", ["--initrd", "{initrd}"], GUEST_DONE),
    "pvh32": ("pvh32.elf", ["--initrd", "{initrd}"], GUEST_DONE),
    "linux64": (
        "linux64.elf",
        ["--protocol", "linux64", "--initrd", "{initrd}"],
        GUEST_DONE,
    ),
    "bzimage64": ("bzimage.bin", ["--initrd", "{initrd}"], GUEST_DONE),
    "bzimage32": (
        "bzimage.bin",
        ["--protocol", "linux32", "--initrd", "{initrd}"],
        GUEST_DONE,
    ),
    "firmware": ("firmware.bin", [], GUEST_DONE),
    "exceptions": ("exceptions.elf", [], GUEST_DONE),
    "timers": ("timers.elf", [], GUEST_DONE),
    "smp": ("smp.elf", ["--cpus", "2"], GUEST_DONE),
    "locks": ("locks.elf", ["--cpus", "4"], GUEST_DONE),
    "reset": ("reset.elf", ["--initrd", "{initrd}"], GUEST_DONE),
    "devices": ("devices.elf", [], GUEST_DONE),
    "fw_cfg": ("fw_cfg.elf", [], GUEST_DONE),
    "virtio_rng": ("virtio_rng.elf", [], GUEST_DONE),
    "virtio_blk": ("virtio_blk.elf", ["--disk", "{disk},serial=guest-serial"], GUEST_DONE),
    "virtio_balloon": ("virtio_balloon.elf", [], GUEST_DONE),
    "poweroff": ("poweroff.elf", [], HUSK_EXIT_POWER_OFF),
    "crash": ("crash.elf", [], HUSK_EXIT_CRASHED),
}


def reason_against_kvm():
    """Why this host's KVM cannot be used; None if it can."""
    try:
        with open("/dev/kvm", "rb+", buffering=0) as device:
            version = fcntl.ioctl(device, KVM_GET_API_VERSION, 0)
    except OSError as error:
        return f"/dev/kvm cannot be used: {error.strerror}"
    if version != KVM_API_VERSION:
        return f"/dev/kvm has API version {version}, not {KVM_API_VERSION}"
    return None


def command(accelerator, image, options, directory, timeout_s=GUEST_TIMEOUT_S):
    """The command line that runs `image`; what `options` name is made in `directory`."""
    initrd = directory / "initrd"
    initrd.write_bytes(INITRD)
    disk = directory / "disk"
    disk.write_bytes(b"".join(bytes([number]) * SECTOR_BYTES for number in range(SECTORS)))
    kernel = ["--firmware"] if image.startswith("firmware") else ["--kernel"]
    return (
        [HUSK, "run", "--accel", accelerator, *kernel, str(IMAGES / image)]
        + ["--memory", "32", "--debug-console"]
        + ["--debug-exit", str(DEBUG_EXIT_PORT), "--timeout", str(timeout_s)]
        + ["--cmdline", COMMAND_LINE]
        + [option.format(initrd=initrd, disk=disk) for option in options]
    )


def reason_against_soft():
    """Why the software CPU cannot be used; None if it can."""
    result = subprocess.run([HUSK, "doctor", "--json"], stdout=subprocess.PIPE, check=False)
    for accelerator in json.loads(result.stdout)["accelerators"]:
        if accelerator["name"] == "soft":
            return None if accelerator["works"] else accelerator["reason"]
    return "husk is built without the software CPU"


# name: why not on this host
ACCELERATORS = {"kvm": reason_against_kvm(), "soft": reason_against_soft()}


@pytest.mark.parametrize("accelerator", ACCELERATORS)
@pytest.mark.parametrize("name", GUESTS)
def test_guest(name, accelerator, tmp_path):
    if ACCELERATORS[accelerator]:
        pytest.skip(ACCELERATORS[accelerator])
    image, options, exit_code = GUESTS[name]
    result = subprocess.run(
        command(accelerator, image, options, tmp_path),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=2 * GUEST_TIMEOUT_S,
        check=False,
    )
    printed = result.stdout.decode(errors="replace")
    assert printed == (EXPECTED / f"{name}.tap").read_text(), result.stderr.decode()
    assert result.returncode == exit_code, result.stderr.decode()
    if name == "virtio_blk":
        assert changed_sectors(tmp_path / "disk") == CHANGED_SECTORS


def prints_as_expected(name, accelerator, image, options, directory, seconds=GUEST_TIMEOUT_S):
    """On the software CPU alone."""
    if ACCELERATORS["soft"]:
        pytest.skip(ACCELERATORS["soft"])
    result = subprocess.run(
        command(accelerator, image, options, directory, seconds),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=2 * seconds,
        check=False,
    )
    assert result.stdout.decode() == (EXPECTED / f"{name}.tap").read_text()
    assert result.returncode == GUEST_DONE, result.stderr.decode()
    return True


@pytest.mark.parametrize("tier", ["interpreter", "translator"])
def test_locked_instructions_of_four_processors(tier, tmp_path):
    assert prints_as_expected("locks", f"soft,tier={tier}", "locks-long.elf", ["--cpus", "4"],
                              tmp_path, CROWDED_TIMEOUT_S)


# The tiers have ways of their own there and back.
@pytest.mark.parametrize("options", [["soft"], ["soft,tier=interpreter"], ["soft", "--check", "1"]])
def test_system_calls_and_returns(options, tmp_path):
    assert prints_as_expected("system_calls", options[0], "system_calls.elf", options[1:], tmp_path)


def changed_sectors(disk):
    """The number of each sector that is not as it was made, and the byte it is full of."""
    content = disk.read_bytes()
    changed = {}
    for number in set(range(SECTORS)) - {DISCARDED_SECTOR}:
        sector = content[number * SECTOR_BYTES : (number + 1) * SECTOR_BYTES]
        if sector != bytes([number]) * SECTOR_BYTES:
            assert len(set(sector)) == 1
            changed[number] = sector[0]
    return changed


# fw_cfg_string.S reads so much by one `rep insb`.
STRING_BYTES = 195 * 1024
# KVM exits once for 1 KiB; the software CPU calls twice a page. One more ends the guest.
STRING_EXITS_LIMIT = 195 + 1


def run_for_counters(accelerator, image, tmp_path):
    """What husk has counted when the guest has ended."""
    if ACCELERATORS[accelerator]:
        pytest.skip(ACCELERATORS[accelerator])
    result = subprocess.run(
        command(accelerator, image, ["--boot-timer=json"], tmp_path),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=2 * GUEST_TIMEOUT_S,
        check=False,
    )
    assert result.returncode == GUEST_DONE, result.stderr.decode()
    return json.loads(result.stderr.splitlines()[-1])["counters"]


@pytest.mark.parametrize("accelerator", ACCELERATORS)
def test_string_input_costs_no_exit_a_byte(accelerator, tmp_path):
    counters = run_for_counters(accelerator, "fw_cfg_string.elf", tmp_path)
    assert counters["fw_cfg_port_bytes"] == STRING_BYTES
    assert counters["port_exits"] <= STRING_EXITS_LIMIT


# What virtio_kicks.S does twice, with a reset of the machine between: it notifies a device
# so often, each time answered by an interrupt; as often in vain where the device no longer
# is; and as often at its new place.
ROUNDS = 100
LIVES = 2
# To find and start the device takes fewer exits than that.
SETUP_EXITS_LIMIT = ROUNDS


def test_notifications_and_interrupts_do_not_exit_under_kvm(tmp_path):
    counters = run_for_counters("kvm", "virtio_kicks.elf", tmp_path)
    in_vain = LIVES * ROUNDS
    assert in_vain < counters["mmio_exits"] < in_vain + LIVES * SETUP_EXITS_LIMIT
    # The first at each place exits. The very last may not have been looked at.
    without_exit = LIVES * 2 * (ROUNDS - 1)
    assert counters["ioeventfd_notifications"] in [without_exit - 1, without_exit]
    assert counters["irqfd_interrupts"] == LIVES * 2 * ROUNDS


def test_software_cpu_has_no_short_cuts(tmp_path):
    counters = run_for_counters("soft", "virtio_kicks.elf", tmp_path)
    assert counters["mmio_exits"] > LIVES * 3 * ROUNDS
    assert counters["ioeventfd_notifications"] == 0
    assert counters["irqfd_interrupts"] == 0
