# SPDX-License-Identifier: Apache-2.0
"""Hosts that refuse what an engine needs: husk says so, or takes another engine."""
import os
import re
import subprocess
import threading

import faulty
import husk
import pytest

SECONDS = 20
WRITER = faulty.BUILD / "writer.elf"
NO_RING = ("the host allows no io_uring (a seccomp filter, kernel.io_uring_disabled or a limit on "
           "locked memory): Operation not permitted")


@pytest.fixture
def image(tmp_path):
    path = tmp_path / "disk.img"
    path.touch()
    os.truncate(path, 1 << 20)
    return path


def program(directory, name, *options):
    """Compiles one of the programs below."""
    compiled = directory / name
    subprocess.run(["gcc", *options, "-o", compiled, "-x", "c", "-"], input=PROGRAMS[name],
                   text=True, check=True)
    return compiled


PROGRAMS = {
    # Shared maps are denied, as a security policy may do.
    "no-maps": """
        #define _GNU_SOURCE
        #include <errno.h>
        #include <sys/mman.h>
        #include <sys/syscall.h>
        #include <unistd.h>
        void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset)
        {
            if (fd >= 0 && (flags & MAP_TYPE) == MAP_SHARED && (protection & PROT_WRITE)) {
                errno = EACCES;
                return MAP_FAILED;
            }
            return (void *)syscall(SYS_mmap, address, size, protection, flags, fd, offset);
        }
        void *mmap64(void *address, size_t size, int protection, int flags, int fd, off_t offset)
        {
            return mmap(address, size, protection, flags, fd, offset);
        }
    """,
    # Rings can be made, but not used.
    "no-enter": """
        #include <errno.h>
        #include <linux/filter.h>
        #include <linux/seccomp.h>
        #include <stddef.h>
        #include <sys/prctl.h>
        #include <sys/syscall.h>
        #include <unistd.h>
        int main(int argc, char **argv)
        {
            struct sock_filter steps[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_enter, 0, 1),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
            };
            struct sock_fprog program = {.len = 4, .filter = steps};
            (void)argc;
            if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
                prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
                return 1;
            return execv(argv[1], argv + 1);
        }
    """,
}


def run_arguments(image, *options):
    return ["run", "--accel", "soft", "-k", WRITER, "--cmdline", "1", "-m", "16",
            "-d", ",".join([str(image), *options])]


def test_maps_that_are_denied_are_an_early_error(tmp_path, image):
    library = program(tmp_path, "no-maps", "-shared", "-fPIC")
    result = husk.run(*run_arguments(image, "engine=mmap"),
                      env={**os.environ, "LD_PRELOAD": str(library)})
    assert (result.returncode, result.stdout, result.stderr) == (
        1, "", f"husk: disk {image}: cannot be mapped (another engine may do): Permission denied\n")


def test_a_ring_that_cannot_be_used_is_an_early_error(tmp_path, image):
    filtered = program(tmp_path, "no-enter")
    result = subprocess.run([filtered, husk.HUSK, *map(str, run_arguments(image, "engine=uring"))],
                            capture_output=True, text=True, check=False, timeout=SECONDS)
    assert (result.returncode, result.stdout, result.stderr) == (
        1, "", f"husk: disk {image}: {NO_RING}\n")


def test_auto_does_without_a_ring_that_cannot_be_used(tmp_path, image):
    filtered = program(tmp_path, "no-enter")
    with subprocess.Popen([filtered, husk.HUSK, *map(str, run_arguments(image)), "-v"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        watchdog = threading.Timer(SECONDS, process.kill)
        watchdog.start()
        lines = [process.stdout.readline().strip() for _ in range(3)]
        watchdog.cancel()
        process.kill()
        errors = process.stderr.read()
    assert lines == ["flushed 0", "flushed 8", "flushed 16"]
    assert re.findall("^husk: disk .*$", errors, re.MULTILINE) == [
        f"husk: disk {image}: engine threads: {NO_RING}"]
