# SPDX-License-Identifier: Apache-2.0
"""Debian's stock cloud kernel on the software CPU: every way in, and real work in user space.

What programs print in the guest is compared with what the same programs print on the host.
"""
import os
import signal
import subprocess

import husk
import initramfs
import pytest
import stock
from terminal import Terminal

VMLINUZ = stock.CLOUD
GENERIC = stock.GENERIC
SECONDS = 240

pytestmark = [
    stock.needs(VMLINUZ),
    stock.needs_busybox,
]


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    """One image cache for all of these, of their own."""
    directory = tmp_path_factory.mktemp("cache")
    os.environ["HUSK_CACHE_DIR"] = str(directory)
    yield directory
    del os.environ["HUSK_CACHE_DIR"]


@pytest.fixture(scope="module")
def vmlinux(cache):
    """The kernel inside, as the cache unpacks it."""
    assert husk.run("plan", VMLINUZ).returncode == 0
    return next(cache.glob("*.elf"))


def boot(tmp_path, init, *options, kernel=VMLINUZ, files=()):
    archive = initramfs.make(tmp_path / "initramfs", init, files)
    return husk.run("run", "--accel", "soft", "-k", kernel, "-i", archive, "-m", "512",
                    "--timeout", SECONDS, *options, "-a", "quiet", timeout=SECONDS + 30)


def lines_of(result):
    """The guest's own lines, without the kernel's."""
    return [line.rstrip("\r") for line in result.stdout.split("\n")
            if line.strip() and not line.startswith("[")]


@pytest.mark.parametrize("image, protocol", [
    ("vmlinuz", "pvh"), ("vmlinuz", "linux64"), ("vmlinuz", "linux32"),
    ("vmlinux", "pvh"), ("vmlinux", "linux64")])
def test_every_way_in_reaches_user_space(tmp_path, vmlinux, image, protocol):
    kernel = vmlinux if image == "vmlinux" else VMLINUZ
    result = boot(tmp_path, "echo up on $(nproc)", "--protocol", protocol, kernel=kernel)
    assert (result.returncode, lines_of(result)) == (0, ["up on 1"]), result.stdout


def test_two_processors(tmp_path):
    result = boot(tmp_path, "echo up on $(nproc)", "-c", "2")
    assert (result.returncode, lines_of(result)) == (0, ["up on 2"]), result.stdout


@stock.needs(GENERIC)
def test_mp_table_stands_in_for_acpi(tmp_path):
    """The cloud kernel cannot read an MP table, the generic one can."""
    result = boot(tmp_path, "echo up on $(nproc)\nreboot -f", "-c", "2", "--no-reboot",
                  "-a", "acpi=off", kernel=GENERIC)
    assert (result.returncode, lines_of(result)) == (4, ["up on 2"]), result.stdout


@pytest.mark.parametrize("memory", ["128", "8G"])
def test_little_and_much_memory(tmp_path, memory):
    result = boot(tmp_path, "echo up", "-m", memory)
    assert (result.returncode, lines_of(result)) == (0, ["up"]), result.stdout


def test_several_archives_are_one_file_system(tmp_path):
    second = tmp_path / "second"
    second.write_bytes(initramfs.entry(1, "extra", 0o100644, b"from the second archive\n") +
                       initramfs.entry(0, "TRAILER!!!", 0))
    result = boot(tmp_path, "cat /extra", "-i", second)
    assert lines_of(result) == ["from the second archive"], result.stdout


WORK = """
seq 1 200000 >/tmp/numbers
md5sum </tmp/numbers
gzip -c /tmp/numbers | gunzip -c | md5sum
sort -r /tmp/numbers | md5sum
awk '{ sum += $1 * 1.5; if ($1 % 7 == 0) n++ } END { print sum, n }' /tmp/numbers
"""


def test_busybox_computes_what_it_computes_here(tmp_path):
    here = tmp_path / "tmp"
    here.mkdir()
    script = WORK.replace("/tmp/", f"{here}/")
    for command in ("seq", "md5sum", "gzip", "gunzip", "sort", "awk"):
        script = script.replace(f"{command} ", f"/bin/busybox {command} ")
    expected = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True,
                              check=True).stdout.splitlines()
    assert len(expected) == 4
    assert lines_of(boot(tmp_path, WORK)) == expected


FLOATING_POINT = r"""
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static uint64_t hash = 14695981039346656037u;

static void mix(const void *bytes, unsigned size)
{
    const unsigned char *from = bytes;

    while (size-- > 0)
        hash = (hash ^ *from++) * 1099511628211u;
}

int main(void)
{
    for (int i = 1; i < 2000; i++) {
        double x = i / 7.0, y = sqrt(x) * 1e10 / (i % 13 + 1) - x;
        float f = (float)y * 0.1f;
        long double l = (long double)i / 3 + y;

        l = l * l - (long double)f;
        mix(&x, sizeof(x));
        mix(&y, sizeof(y));
        mix(&f, sizeof(f));
        mix(&l, 10);
    }
    printf("%016lx\n", (unsigned long)hash);
    return 0;
}
"""


def compile_static(tmp_path, name, source):
    path = tmp_path / f"{name}.c"
    path.write_text(source)
    program = tmp_path / name
    subprocess.run(["gcc", "-O2", "-static", "-fno-builtin", "-o", program, path, "-lm"],
                   check=True)
    return program


def test_sse_and_x87_give_the_hosts_bits(tmp_path):
    program = compile_static(tmp_path, "bits", FLOATING_POINT)
    expected = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    result = boot(tmp_path, "/bits", files=[("bits", program.read_bytes())])
    assert lines_of(result) == expected.splitlines()


CHURN = r"""
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int caught;

static void count(int number)
{
    (void)number;
    caught++;
}

int main(void)
{
    int children = 0;

    signal(SIGUSR1, count);
    signal(SIGFPE, SIG_IGN);
    for (int i = 0; i < 500; i++) {
        char *page = mmap(NULL, 64 << 12, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                          -1, 0);

        memset(page, i, 64 << 12);
        if (page[4097] != (char)i || raise(SIGUSR1) != 0)
            return 1;
        munmap(page, 64 << 12);
    }
    for (int i = 0; i < 1000; i++)
        if (fork() == 0)
            _exit(i % 7);
    for (int status; wait(&status) > 0;)
        children += WEXITSTATUS(status);
    printf("%d signals, %d\n", caught, children);
    return 0;
}
"""


def test_signals_maps_and_a_thousand_processes(tmp_path):
    program = compile_static(tmp_path, "churn", CHURN)
    result = boot(tmp_path, "/churn", files=[("churn", program.read_bytes())])
    assert lines_of(result) == [f"500 signals, {sum(i % 7 for i in range(1000))}"]


def test_reboot_starts_again_and_no_reboot_ends(tmp_path):
    init = "echo up\nreboot -f"
    result = boot(tmp_path, init, "--no-reboot")
    assert (result.returncode, lines_of(result)) == (4, ["up"]), result.stdout
    terminal = Terminal("run", "--accel", "soft", "-k", VMLINUZ, "-i", tmp_path / "initramfs",
                        "-m", "512", "-a", "quiet")
    terminal.seconds = SECONDS
    for _ in range(2):
        terminal.expect(b"\nup\r")
    terminal.process.terminate()
    assert terminal.end() == 128 + signal.SIGTERM


def test_power_button_reaches_linux_as_acpi_event(tmp_path):
    result = boot(tmp_path, "grep -c acpi /proc/interrupts")
    assert lines_of(result) == ["1"], result.stdout


def test_stages_of_a_boot_are_all_reached(tmp_path):
    archive = initramfs.make(tmp_path / "initramfs", "echo up")
    result = husk.run("run", "--accel", "soft", VMLINUZ, "-i", archive, "-m", "256",
                      "--boot-timer", "-a", "quiet", timeout=SECONDS)
    rows = {line.split()[0]: line.split()[1] for line in result.stderr.splitlines()}
    assert all(rows[stage] != "-" for stage in ("init_end", "start_kernel", "start_user", "end"))
