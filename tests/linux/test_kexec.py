# SPDX-License-Identifier: Apache-2.0
"""A guest that starts another kernel in its own place, without husk's help."""
import initramfs
import test_boot

pytestmark = test_boot.pytestmark
cache = test_boot.cache

START_ANOTHER = r"""
#include <fcntl.h>
#include <linux/reboot.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void)
{
    const char command_line[] = "console=ttyS0 quiet second";
    int kernel = open("/vmlinuz", O_RDONLY), initrd = open("/initrd", O_RDONLY);

    if (syscall(SYS_kexec_file_load, kernel, initrd, sizeof(command_line), command_line, 0) != 0)
        perror("kexec_file_load");
    syscall(SYS_reboot, LINUX_REBOOT_MAGIC1, LINUX_REBOOT_MAGIC2, LINUX_REBOOT_CMD_KEXEC, 0);
    perror("reboot");
    return 1;
}
"""


def test_a_kernel_starts_another_one(tmp_path):
    again = initramfs.make(tmp_path / "again", "grep -ow second /proc/cmdline")
    program = test_boot.compile_static(tmp_path, "start-another", START_ANOTHER)
    result = test_boot.boot(tmp_path, "echo first\n/start-another",
                            files=[("start-another", program.read_bytes()),
                                   ("vmlinuz", test_boot.VMLINUZ.read_bytes()),
                                   ("initrd", again.read_bytes())])
    assert (result.returncode, test_boot.lines_of(result)) == (0, ["first", "second"]), \
        result.stdout
