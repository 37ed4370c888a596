/* SPDX-License-Identifier: Apache-2.0 */
/* Calls and returns, and nearly nothing else. */
#include "programs.h"

#define NUMBER 33

static __attribute__((noinline)) uint64_t fibonacci(unsigned number)
{
    uint64_t sum;

    if (number < 2)
        return number;
    sum = fibonacci(number - 1) + fibonacci(number - 2);
    /* Else a compiler would make a loop of the second call. */
    __asm__ volatile("" : "+r"(sum));
    return sum;
}

uint64_t run_calls(void)
{
    volatile unsigned number = NUMBER;

    return fibonacci(number);
}
