/* SPDX-License-Identifier: Apache-2.0 */
/* Compares what a translated block has done with what the shadow has; see
 * check_private.h. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "accel/soft/soft_private.h"
#include "accel/soft/translator/check_shadow_private.h"

static bool differ(struct difference *difference, const char *what, uint64_t translated,
                   uint64_t interpreted)
{
    if (translated == interpreted)
        return false;
    (void)snprintf(difference->what, sizeof(difference->what), "%s", what);
    difference->translated = translated;
    difference->interpreted = interpreted;
    return true;
}

/* Of two different pieces of memory whose size is a multiple of 8: the first eight bytes
 * that differ. */
static void find_first(struct difference *difference, const void *translated,
                       const void *interpreted, const char *what, uint64_t start)
{
    const uint8_t *left = translated;
    const uint8_t *right = interpreted;
    size_t at = 0;

    while (memcmp(left + at, right + at, 8) == 0)
        at += 8;
    (void)snprintf(difference->what, sizeof(difference->what), "%s0x%" PRIx64, what,
                   start + at);
    difference->translated = load_le64(left + at);
    difference->interpreted = load_le64(right + at);
}

static bool registers_differ(const struct lockstep *lockstep,
                             struct difference *difference)
{
    static const char *const names[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp",
                                        "rsi", "rdi", "r8",  "r9",  "r10", "r11",
                                        "r12", "r13", "r14", "r15"};
    const struct soft_cpu *cpu = lockstep->cpu;
    const struct soft_cpu *shadow = lockstep->shadow;

    if (differ(difference, "rip", cpu->rip, shadow->rip))
        return true;
    for (unsigned i = 0; i < X86_REGISTER_COUNT; i++)
        if (differ(difference, names[i], cpu->r[i], shadow->r[i]))
            return true;
    return differ(difference, "the base of GS", cpu->segments[X86_GS].base,
                  shadow->segments[X86_GS].base) ||
           differ(difference, "the base that SWAPGS gives", cpu->kernel_gs_base,
                  shadow->kernel_gs_base);
}

static bool vectors_differ(const struct lockstep *lockstep, struct difference *difference)
{
    const struct fx_state *translated = &lockstep->cpu->fx;
    const struct fx_state *interpreted = &lockstep->shadow->fx;

    if (memcmp(translated, interpreted, sizeof(*translated)) == 0)
        return false;
    find_first(difference, translated, interpreted, "FXSAVE image at +", 0);
    return true;
}

static bool memory_differs(const struct lockstep *lockstep, struct difference *difference)
{
    for (size_t i = 0; i < lockstep->page_count; i++) {
        const uint8_t *original = lockstep->originals[i];

        if (memcmp(original, lockstep->copies[i], X86_PAGE_BYTES) == 0)
            continue;
        find_first(difference, original, lockstep->copies[i], "memory at guest-physical ",
                   (uint64_t)(original - lockstep->cpu->vm->memory_base));
        return true;
    }
    return false;
}

static bool faults_differ(const struct lockstep *lockstep, struct difference *difference)
{
    const struct soft_fault *translated = &lockstep->cpu->fault;
    const struct soft_fault *interpreted = &lockstep->shadow->fault;

    return differ(difference, "the exception's vector", translated->vector,
                  interpreted->vector) ||
           differ(difference, "the error code", translated->error_code,
                  interpreted->error_code) ||
           differ(difference, "cr2", translated->cr2, interpreted->cr2);
}

static bool flags_differ(const struct lockstep *lockstep, struct difference *difference)
{
    uint64_t translated = soft_flags_get(lockstep->cpu);
    uint64_t interpreted = soft_flags_get(lockstep->shadow);

    if (translated == interpreted ||
        ((translated ^ interpreted) & ~(uint64_t)shadow_undefined_flags(lockstep)) == 0)
        return false;
    return differ(difference, "rflags", translated, interpreted);
}

bool lockstep_differs(const struct lockstep *lockstep, bool faulted,
                      struct difference *difference)
{
    if (differ(difference, "whether it faults", faulted, lockstep->faulted))
        return true;
    if (lockstep->missed)
        return differ(difference, "whether the indirect branch finds its target", 0, 1);
    if (registers_differ(lockstep, difference) || vectors_differ(lockstep, difference) ||
        memory_differs(lockstep, difference))
        return true;
    return faulted ? faults_differ(lockstep, difference)
                   : flags_differ(lockstep, difference);
}
