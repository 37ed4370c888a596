/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where husk puts what it makes for a kernel, as long as the kernel leaves the place free
 * (boot_builder_place_low). All of it is below 640 KiB, where stock kernels load nothing.
 */
#ifndef HUSK_BOOT_HANDOVER_PRIVATE_H
#define HUSK_BOOT_HANDOVER_PRIVATE_H

#define HANDOVER_GDT UINT64_C(0x1000)
#define HANDOVER_PVH_START_INFO UINT64_C(0x6000) /* with its module list */
#define HANDOVER_PVH_MEMORY_MAP UINT64_C(0x7000)
#define HANDOVER_BOOT_PARAMS UINT64_C(0x7000)
#define HANDOVER_STACK UINT64_C(0x8000)       /* one page, long mode only */
#define HANDOVER_PAGE_TABLES UINT64_C(0x9000) /* six pages, long mode only */
#define HANDOVER_MULTIBOOT UINT64_C(0x10000)  /* clear of where processors are started */
#define HANDOVER_CMDLINE UINT64_C(0x20000)

#endif
