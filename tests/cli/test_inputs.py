# SPDX-License-Identifier: Apache-2.0
"""Where a kernel or initrd may come from: mapped where possible, read where not, always said."""
import json
import os
import pathlib
import shutil
import subprocess
import threading

import husk
import kernels
import pytest

HELLO = """
    putc 'O'
    putc 'K'
    end
"""
SIZE = 64 * 1024


@pytest.fixture
def kernel(tmp_path):
    return kernels.pvh_kernel(tmp_path, HELLO, size=SIZE)


def plan(*arguments, **options):
    result = husk.run("plan", "--json", *arguments, **options)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def boots(*arguments, **options):
    if husk.missing_accelerator() is None:
        result = husk.run("run", *arguments, **options)
        assert (result.returncode, result.stdout) == (0, "OK"), result.stderr


def test_plan_shows_no_control_characters_of_names(tmp_path, kernel):
    named = tmp_path / "a\x1b[31mb\nc"
    kernel.rename(named)
    result = husk.run("plan", "-k", named, "-a", "x\ty")
    assert result.returncode == 0
    assert f"  kernel {tmp_path}/a?[31mb?c: {named.stat().st_size} bytes, map\n" in result.stdout
    assert "cmdline   console=ttyS0 x?y\n" in result.stdout


def test_json_of_a_name_that_is_not_utf_8_has_question_marks(tmp_path, kernel):
    named = tmp_path / os.fsdecode(b"a\xff\xc3")
    kernel.rename(named)
    expected = f"{tmp_path}/a??"
    assert plan("-k", named)["files"][0]["path"] == expected
    inspected = husk.run("inspect", "--json", named)
    assert json.loads(inspected.stdout)["path"] == expected, inspected.stderr
    named.write_bytes(b"no kernel")
    refused = json.loads(husk.run("inspect", "--json", named, errors="replace").stdout)
    assert (refused["path"], refused["format"]) == (expected, None)


def test_regular_file_is_mapped_whole(kernel):
    document = plan("-k", kernel)
    assert document["protocol"] == "pvh"
    assert document["bytes"]["mapped"] == SIZE
    assert document["bytes"]["copied"] == 0
    assert document["files"] == [{"path": str(kernel), "mode": "map", "reason": "",
                                  **document["files"][0]}]
    boots("-k", kernel)


def feed(path, data):
    with open(path, "wb") as stream:
        stream.write(data)


def through_fifo(tmp_path, kernel):
    fifo = tmp_path / "fifo"
    if not fifo.exists():
        os.mkfifo(fifo)
    threading.Thread(target=feed, args=(fifo, kernel.read_bytes()), daemon=True).start()
    return fifo


def test_fifo_is_read_into_a_memory_file_and_that_is_mapped(tmp_path, kernel):
    document = plan("-k", through_fifo(tmp_path, kernel))
    assert document["files"][0]["reason"] == "pipe, read into a memory file"
    assert document["bytes"]["mapped"] == SIZE
    boots("-k", through_fifo(tmp_path, kernel))


def test_standard_input_may_be_a_pipe_or_a_file(kernel):
    cat = subprocess.run([husk.HUSK, "plan", "--json", "-k", "/dev/stdin"],
                         input=kernel.read_bytes(), capture_output=True, timeout=60, check=True)
    assert json.loads(cat.stdout)["files"][0]["reason"] == "pipe, read into a memory file"
    with open(kernel, "rb") as stream:
        assert plan("-k", "/dev/stdin", stdin=stream)["files"][0]["reason"] == ""


def test_inherited_descriptor(kernel):
    descriptor = os.open(kernel, os.O_RDONLY)
    document = plan("-k", f"/proc/self/fd/{descriptor}", pass_fds=[descriptor])
    os.close(descriptor)
    assert document["bytes"]["mapped"] == SIZE


@pytest.mark.parametrize("kind", ["tmpfs", "overlay"])
def test_file_systems_map_too(tmp_path, kernel, kind):
    mount = tmp_path / "mount"
    mount.mkdir()
    layers = [tmp_path / name for name in ("lower", "upper", "work")]
    for layer in layers:
        layer.mkdir()
    shutil.copy(kernel, layers[0] / "kernel.elf")
    options = {"tmpfs": "size=1m",
               "overlay": f"lowerdir={layers[0]},upperdir={layers[1]},workdir={layers[2]}"}
    result = subprocess.run(["mount", "-t", kind, "-o", options[kind], kind, mount],
                            capture_output=True, text=True, check=False)
    if result.returncode != 0:
        pytest.skip(f"cannot mount {kind} here: {result.stderr.strip()}")
    try:
        if kind == "tmpfs":
            shutil.copy(kernel, mount)
        assert plan("-k", mount / "kernel.elf")["bytes"]["mapped"] == SIZE
        boots("-k", mount / "kernel.elf")
    finally:
        subprocess.run(["umount", mount], check=True)


def test_segment_at_an_odd_file_offset_is_copied_with_the_reason(tmp_path):
    kernel = kernels.pvh_kernel(tmp_path, HELLO, size=SIZE, file_offset=kernels.PAGE + 512)
    document = plan("-k", kernel)
    assert document["bytes"]["mapped"] == 0
    assert document["bytes"]["copied"] == SIZE
    copied = [entry for entry in document["ranges"] if entry["kind"] == "copy"]
    assert all("0x1200" in entry["reason"] for entry in copied)
    boots("-k", kernel)


def test_images_copy_copies_and_says_so(kernel):
    document = plan("-k", kernel, "--images", "copy")
    assert document["bytes"] == {**document["bytes"], "mapped": 0, "copied": SIZE}
    assert document["files"][0]["reason"] == "--images copy"
    boots("-k", kernel, "--images", "copy")


@pytest.fixture(scope="module")
def refuse_mmap(tmp_path_factory):
    """A preloaded library under which file mappings are denied, as a security policy may do."""
    directory = tmp_path_factory.mktemp("refuse")
    source = directory / "refuse.c"
    source.write_text("""
        #define _GNU_SOURCE
        #include <errno.h>
        #include <sys/mman.h>
        #include <sys/syscall.h>
        #include <unistd.h>
        void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset)
        {
            if (fd >= 0 && (flags & MAP_PRIVATE)) {
                errno = EACCES;
                return MAP_FAILED;
            }
            return (void *)syscall(SYS_mmap, address, size, protection, flags, fd, offset);
        }
        void *mmap64(void *address, size_t size, int protection, int flags, int fd, off_t offset)
        {
            return mmap(address, size, protection, flags, fd, offset);
        }
    """)
    library = directory / "refuse.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True)
    return {**os.environ, "LD_PRELOAD": str(library)}


def test_refused_mmap_falls_back_to_reading_and_says_so(kernel, refuse_mmap):
    document = plan("-k", kernel, env=refuse_mmap)
    assert document["bytes"] == {**document["bytes"], "mapped": 0, "copied": SIZE}
    assert document["files"][0]["reason"] == "mmap refused: Permission denied"
    boots("-k", kernel, env=refuse_mmap)


def test_refusal_shows_in_verbose_output(kernel, refuse_mmap):
    if husk.missing_accelerator() is not None:
        pytest.skip(f"no accelerator: {husk.missing_accelerator()}")
    result = husk.run("run", "-v", "-k", kernel, env=refuse_mmap)
    assert "copied, not mapped: mmap refused: Permission denied" in result.stderr


def test_images_map_makes_a_refusal_an_error(kernel, refuse_mmap):
    result = husk.run("plan", "-k", kernel, "--images", "map", env=refuse_mmap)
    assert result.returncode == 1
    assert result.stderr == (
        f"husk: kernel {kernel}: cannot be mapped (mmap refused: Permission denied), and "
        "--images map forbids reading it instead; use --images auto\n")


def test_kernel_larger_than_memory_names_the_size_it_needs(tmp_path):
    kernel = kernels.pvh_kernel(tmp_path, HELLO, size=SIZE, bss=66 << 20)
    result = husk.run("plan", "-k", kernel, "-m", "16")
    assert result.returncode == 1
    # 1 MiB below the kernel, 66 MiB of bss, and its 64 KiB file part.
    assert "68 MiB" in result.stderr and "16 MiB" in result.stderr


def test_guest_writes_never_reach_the_file(tmp_path):
    kernel = kernels.pvh_kernel(tmp_path, """
        movl $0xdeadbeef, 0x100800
        cmpl $0xdeadbeef, 0x100800
        jne 1f
        putc 'O'
        putc 'K'
    1:  end
    """, size=SIZE)
    before = pathlib.Path(kernel).read_bytes()
    boots("-k", kernel)
    assert pathlib.Path(kernel).read_bytes() == before


def test_initrd_of_200_mb_is_mapped_and_whole(tmp_path):
    # Finds module 0 by start_info (EBX) and compares its last four bytes.
    kernel = kernels.pvh_kernel(tmp_path, """
        mov 16(%ebx), %esi
        mov (%esi), %edi
        add 8(%esi), %edi
        cmpl $0x21646e65, -4(%edi)
        jne 1f
        putc 'O'
        putc 'K'
    1:  end
    """, size=SIZE)
    initrd = tmp_path / "initrd"
    with open(initrd, "wb") as stream:
        stream.truncate(200_000_000 - 4)  # the rest of it is a hole: zeros that cost nothing
        stream.seek(0, os.SEEK_END)
        stream.write(b"end!")
    pages = initrd.stat().st_size & ~(kernels.PAGE - 1)
    document = plan("-k", kernel, "-i", initrd, "-m", "256")
    assert document["bytes"]["mapped"] == SIZE + pages
    boots("-k", kernel, "-i", initrd, "-m", "256")


@husk.needs_accelerator
def test_kernel_file_truncated_under_a_running_guest(tmp_path):
    # Says R, then reads its last page again and again.
    kernel = kernels.pvh_kernel(tmp_path, """
        putc 'R'
    1:  mov 0x10f800, %eax
        jmp 1b
    """, size=SIZE)
    process = subprocess.Popen([husk.HUSK, "run", "-k", kernel, "--timeout", "30"],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    assert process.stdout.read(1) == "R"
    os.truncate(kernel, 0)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 1, errors
    assert f"{kernel}: became shorter while the guest was using it" in errors
