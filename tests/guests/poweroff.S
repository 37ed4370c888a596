# SPDX-License-Identifier: Apache-2.0
# ACPI power-off: husk ends with 0. Source: ACPI 6.4, 4.8.3.2 and table 4.16.
    .include "tap.inc"
    .include "pvh.inc"

.set ACPI_CONTROL, 0x604
.set SLEEP_TYPE_S5, 5 << 10
.set SLEEP_ENABLE, 1 << 13

    .text
    .code32
pvh_main:
    mov $ACPI_CONTROL, %dx
    in %dx, %ax
    test $SLEEP_ENABLE, %ax
    ok_if z, "sleep enable reads as 0"
    tap_plan
    mov $ACPI_CONTROL, %dx
    mov $SLEEP_TYPE_S5, %ax
    out %ax, %dx                # without the enable bit: nothing happens
    mov $SLEEP_TYPE_S5 + SLEEP_ENABLE, %ax
    out %ax, %dx
    stop
