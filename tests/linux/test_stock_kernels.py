# SPDX-License-Identifier: Apache-2.0
"""What husk makes of Debian's stock kernels. HUSK_KERNELS is where tools/get-kernel has put
them (default: build/kernels)."""
import json

import husk
import pytest
import stock

FLAVOURS = ["cloud-amd64", "amd64"]


@pytest.fixture(params=FLAVOURS)
def vmlinuz(request):
    path = stock.KERNELS / request.param / "vmlinuz"
    if not path.exists():
        pytest.skip(stock.why_missing(path))
    return path


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HUSK_CACHE_DIR", str(tmp_path / "cache"))


def plan(path, *options):
    result = husk.run("plan", "--json", "--memory", "512", *options, path)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def kernel_bytes(described):
    """(mapped, copied) bytes of kernel files in the plan."""
    return [sum(row["size_bytes"] for row in described["ranges"]
                if row["kind"] == kind and row["what"].startswith("kernel segment"))
            for kind in ("map", "copy")]


def unpacked_path(described):
    return [row["path"] for row in described["files"] if row["role"] == "unpacked kernel"][0]


def check_mapped(described):
    mapped, copied = kernel_bytes(described)
    assert mapped > 40 << 20
    assert mapped > 0.99 * (mapped + copied)
    assert all(row["reason"] for row in described["ranges"] if row["kind"] == "copy")


def needed_mib(message):
    """The number in "needs at least N MiB"."""
    return int(message.split("needs at least ")[1].split()[0])


def test_vmlinuz_is_entered_by_pvh_with_its_pages_mapped(vmlinuz):
    described = plan(vmlinuz)
    assert described["protocol"] == "pvh"
    check_mapped(described)


def test_unpacked_vmlinux_is_entered_by_pvh_with_its_pages_mapped(vmlinuz):
    described = plan(unpacked_path(plan(vmlinuz)))
    assert described["protocol"] == "pvh"
    assert [row["role"] for row in described["files"]] == ["kernel"]
    check_mapped(described)


def test_unpacked_vmlinux_has_the_same_plan_by_its_own_path(vmlinuz):
    first = plan(vmlinuz)
    second = plan(unpacked_path(first))
    assert second["entry"] == first["entry"]
    assert second["bytes"] == first["bytes"]


def test_second_start_finds_the_unpacked_kernel(vmlinuz):
    outcomes = [plan(vmlinuz)["files"][0]["reason"] for _ in range(2)]
    assert outcomes[0].endswith("payload, put into the image cache")
    assert outcomes[1].endswith("payload, found in the image cache")


def test_unpacked_size_is_what_the_trailer_says(vmlinuz):
    described = plan(vmlinuz)
    header = vmlinuz.read_bytes()[:0x260]
    payload_end = ((header[0x1f1] + 1) * 512 + int.from_bytes(header[0x248:0x24c], "little")
                   + int.from_bytes(header[0x24c:0x250], "little"))
    trailer = vmlinuz.read_bytes()[payload_end - 4:payload_end]
    assert described["files"][1]["size_bytes"] == int.from_bytes(trailer, "little")


@pytest.mark.parametrize("protocol", ["linux64", "linux32"])
def test_vmlinuz_can_be_entered_by_its_own_decompressor(vmlinuz, protocol):
    described = plan(vmlinuz, "--protocol", protocol)
    assert described["protocol"] == protocol
    assert len(described["files"]) == 1
    assert described["bytes"]["mapped"] > 0.99 * (vmlinuz.stat().st_size - 40 * 512)


def test_kernel_larger_than_memory_names_the_size_it_needs(vmlinuz):
    refused = husk.run("plan", "--memory", "16", vmlinuz)
    needed = needed_mib(refused.stderr)
    assert refused.stderr == (f"husk: kernel {vmlinuz}: needs at least {needed} MiB of "
                              "memory, -m gives 16 MiB\n")
    assert refused.returncode == 1
    assert husk.run("plan", "--memory", needed, vmlinuz).returncode == 0
    assert husk.run("plan", "--memory", needed - 1, vmlinuz).returncode == 1
