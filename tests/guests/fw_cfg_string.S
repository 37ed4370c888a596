# SPDX-License-Identifier: Apache-2.0
# Reads 195 KiB from the data port of fw_cfg by one string instruction, and nothing else:
# what that costs is counted from outside.
    .include "tap.inc"
    .include "pvh.inc"

.set FW_CFG_DATA, 0x511
.set READ_BYTES, 195 * 1024

    .bss
    .balign 4096
target: .skip READ_BYTES

    .text
    .code32
pvh_main:
    mov $FW_CFG_DATA, %dx
    mov $target, %edi
    mov $READ_BYTES, %ecx
    cld
    rep insb
    cmpl $0x554d4551, target    # "QEMU", which is selected at the start
    jne 1f
    cmp $target + READ_BYTES, %edi
    jne 1f
    debug_exit EXIT_DONE
1:  debug_exit EXIT_GAVE_UP
