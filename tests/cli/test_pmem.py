# SPDX-License-Identifier: Apache-2.0
"""Persistent memory as a few instructions see it: a file behind RAM, at 4 GiB, shared by guests."""
import functools
import json
import os
import pathlib
import subprocess

import husk
import kernels
import pytest

MIB = 1 << 20

# Maps 2 MiB at 0 to themselves and those at 4 GiB to 0x40000000, with page tables of four levels
# for code that stays 32-bit (compatibility mode: Intel SDM volume 3, 4.1.1 and 4.5).
PAGING = """
    movl $0x201003, 0x200000
    movl $0x202003, 0x201000
    movl $0x203003, 0x201008
    movl $0x83, 0x202000
    movl $0x83, 0x203000
    movl $1, 0x203004
    mov $0x200000, %eax
    mov %eax, %cr3
    mov %cr4, %eax
    or $0x20, %eax              # PAE
    mov %eax, %cr4
    mov $0xc0000080, %ecx       # EFER
    mov $0x100, %eax            # LME
    xor %edx, %edx
    wrmsr
    mov %cr0, %eax
    or $0x80000000, %eax
    mov %eax, %cr0
    mov $0x3f8, %dx
    mov $0x40000000, %ebx
"""
# Shows byte 0, writes byte 1, shows it.
READ_AND_WRITE = PAGING + """
    mov (%ebx), %al
    out %al, %dx
    movb $'W', 1(%ebx)
    mov 1(%ebx), %al
    out %al, %dx
"""


@functools.lru_cache(maxsize=None)
def reason_against(accelerator):
    rows = json.loads(husk.run("doctor", "--json").stdout)["accelerators"]
    row = next(row for row in rows if row["name"] == accelerator)
    return None if row["works"] else row["reason"]


@pytest.fixture(params=["soft", "kvm"])
def accelerator(request):
    if reason_against(request.param):
        pytest.skip(reason_against(request.param))
    return request.param


def image(directory, size=2 * MIB):
    path = pathlib.Path(directory) / "root.img"
    with open(path, "wb") as stream:
        stream.write(b"F" + b"." * 9)
        stream.truncate(size)
    return path


def first_bytes(path):
    with open(path, "rb") as stream:
        return stream.read(2)


@pytest.mark.parametrize("words, kept", [("", b"FW"), (",ro", b"F."), (",ephemeral", b"F.")])
def test_only_what_is_written_to_a_shared_one_is_in_the_file(tmp_path, accelerator, words, kept):
    kernel = kernels.pvh_kernel(tmp_path, READ_AND_WRITE + "    end")
    file = image(tmp_path)
    result = husk.run("run", "--accel", accelerator, "-k", kernel, "--pmem", f"{file}{words}")
    assert (result.returncode, result.stdout) == (0, "FW"), result.stderr
    assert first_bytes(file) == kept


def test_an_ephemeral_one_survives_a_reset(tmp_path, accelerator):
    # Without the mark at byte 1: leaves it there, and resets by port 0xcf9. With it: the end.
    kernel = kernels.pvh_kernel(tmp_path, PAGING + """
        cmpb $'W', 1(%ebx)
        je 1f
        movb $'W', 1(%ebx)
        outb_imm 0xcf9, 6
        hlt
    1:  putc 'R'
        end
    """)
    result = husk.run("run", "--accel", accelerator, "-k", kernel, "--pmem",
                      f"{image(tmp_path)},ephemeral")
    assert (result.returncode, result.stdout) == (0, "R"), result.stderr


def test_behind_the_end_of_the_file_there_are_zeros(tmp_path, accelerator):
    kernel = kernels.pvh_kernel(tmp_path, PAGING + """
        mov 0x1ffffc(%ebx), %eax
        test %eax, %eax
        jnz 1f
        putc '0'
    1:  end
    """)
    result = husk.run("run", "--accel", accelerator, "-k", kernel, "--pmem",
                      f"{image(tmp_path, 5000)},ro")
    assert (result.returncode, result.stdout) == (0, "0"), result.stderr


def test_file_truncated_under_a_running_guest(tmp_path, accelerator):
    kernel = kernels.pvh_kernel(tmp_path, PAGING + """
        putc 'R'
    1:  mov 0x1ff000(%ebx), %eax
        jmp 1b
    """)
    file = image(tmp_path)
    process = subprocess.Popen([husk.HUSK, "run", "--accel", accelerator, "-k", kernel, "--pmem",
                                file, "--timeout", "30"], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.read(1) == "R"
    os.truncate(file, 0)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1, errors
    assert f"pmem {file}: became shorter while the guest was using it" in errors


def test_a_file_with_a_writer_is_refused_to_others_until_it_ends(tmp_path):
    kernel = kernels.pvh_kernel(tmp_path, "    putc 'R'\n1:  hlt\n    jmp 1b")
    file = image(tmp_path)
    with subprocess.Popen([husk.HUSK, "run", "--accel", "soft", "-k", kernel, "--pmem", file],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout.read(1) == "R"
        result = husk.run("run", "-k", kernel, "--pmem", f"{file},ro")
        writer.kill()
    assert (result.returncode, result.stderr) == (1, (
        f"husk: pmem {file}: is in use by another writer: give each guest a copy, or open it "
        "read-only or ephemeral in all\n"))
    assert husk.run("plan", "-k", kernel, "--pmem", file).returncode == 0


def mapped_kib(process, file):
    """The fields of smaps for the map of `file`, in KiB."""
    fields = {}
    inside = False
    for line in pathlib.Path(f"/proc/{process.pid}/smaps").read_text().splitlines():
        name, value, *_ = line.split()
        if not name.endswith(":"):
            inside = line.endswith(str(file))
        elif inside and value.isdigit():
            fields[name.rstrip(":")] = fields.get(name.rstrip(":"), 0) + int(value)
    return fields


@pytest.mark.parametrize("word", ["ro", "ephemeral"])
def test_instances_share_its_pages(tmp_path, word):
    # Reads a byte of each page, writes to the first, says R, and sleeps.
    kernel = kernels.pvh_kernel(tmp_path, PAGING + f"""
        movb $'W', (%ebx)
        mov ${2 * MIB // kernels.PAGE}, %ecx
    1:  mov (%ebx), %al
        add $4096, %ebx
        loop 1b
        putc 'R'
    2:  hlt
        jmp 2b
    """)
    file = image(tmp_path)
    with open(file, "wb") as stream:
        stream.write(os.urandom(2 * MIB))
    processes = [subprocess.Popen([husk.HUSK, "run", "--accel", "soft", "-k", kernel, "--pmem",
                                   f"{file},{word}"], stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, text=True) for _ in range(2)]
    try:
        for process in processes:
            assert process.stdout.read(1) == "R"
        for process in processes:
            memory = mapped_kib(process, file)
            assert memory["Rss"] == 2048
            assert memory["Anonymous"] == 4  # the page that was written
            assert memory["Shared_Clean"] + memory["Shared_Dirty"] == 2044
            assert memory["Pss"] == 4 + 2044 // 2
    finally:
        for process in processes:
            process.kill()
            process.wait(timeout=30)
            process.stdout.close()
