/* SPDX-License-Identifier: Apache-2.0 */
/* The serial console, for guests written in C. */
#ifndef HUSK_TESTS_FAULT_CONSOLE_H
#define HUSK_TESTS_FAULT_CONSOLE_H

#include <stdint.h>

void console_print(const char *text);
void console_print_number(uint64_t number);
/* Waits for a key. */
void console_wait(void);

#endif
