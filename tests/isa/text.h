/* SPDX-License-Identifier: Apache-2.0 */
/* The code in files: programs, and kernels that are compressed. */
#ifndef HUSK_ISA_TEXT_H
#define HUSK_ISA_TEXT_H

#include <stddef.h>
#include <stdint.h>

typedef void text_visitor(void *context, const uint8_t *text, size_t size);

/* Calls `visit` for each section of instructions in a 64-bit ELF file, or in that inside
 * a kernel. What cannot be read is said and passed over. */
void text_visit(const char *path, text_visitor *visit, void *context);

#endif
