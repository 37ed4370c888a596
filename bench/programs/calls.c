/* SPDX-License-Identifier: Apache-2.0 */
/* Calls and returns, and nearly nothing else. */
#include "programs.h"

#define NUMBER 33

/* Kept as written: gcc would make loops of most of the calls. */
__attribute__((noinline, optimize("no-optimize-sibling-calls",
                                  "no-inline-functions"))) static uint64_t
fibonacci(unsigned number)
{
    return number < 2 ? number : fibonacci(number - 1) + fibonacci(number - 2);
}

uint64_t run_calls(void)
{
    volatile unsigned number = NUMBER;

    return fibonacci(number);
}
