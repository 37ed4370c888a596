/* SPDX-License-Identifier: Apache-2.0 */
/* The lockstep checker; see check_private.h. */
#include "accel/soft/translator/check_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "accel/soft/soft_private.h"
#include "accel/soft/translator/check_shadow_private.h"
#include "accel/soft/translator/translator_private.h"
#include "accel/soft/translator/vectors_private.h"
#include "base/log.h"

int lockstep_create(struct soft_cpu *cpu, uint32_t every, struct lockstep **lockstep,
                    struct error *err)
{
    struct lockstep *created = aligned_alloc(_Alignof(struct lockstep), sizeof(*created));

    if (created != NULL) {
        memset(created, 0, sizeof(*created));
        created->shadow = shadow_create();
    }
    if (created == NULL || created->shadow == NULL) {
        lockstep_destroy(created);
        return error_set(err, -ENOMEM, "out of memory for the lockstep checker");
    }
    created->cpu = cpu;
    created->every = every;
    created->left = every;
    *lockstep = created;
    return 0;
}

void lockstep_destroy(struct lockstep *lockstep)
{
    if (lockstep == NULL)
        return;
    log_info("soft: %llu blocks of translated code compared, %llu could not be",
             (unsigned long long)lockstep->compared,
             (unsigned long long)lockstep->given_up);
    shadow_destroy(lockstep->shadow);
    free(lockstep);
}

bool lockstep_failed(const struct lockstep *lockstep, struct error *failure)
{
    if (lockstep->failure.code == 0)
        return false;
    *failure = lockstep->failure;
    return true;
}

/* ---- where indirect branches go ---- */

/* Under the checker nothing else is in the jump cache, so that a block that computes
 * another target than the shadow did finds no code for it. */
static void make_landing(struct lockstep *lockstep, struct soft_cpu *cpu)
{
    struct translated_state *state = &cpu->translated;
    const struct translator *translator = cpu->translator;
    uint32_t index = jump_cache_index(lockstep->shadow->rip);

    state->jumps[index].key = jump_key(lockstep->shadow->rip, cpu->mode_salt);
    state->jumps[index].code =
        code_memory_address(&translator->memory, translator->landing);
    lockstep->landing = true;
}

static void drop_landing(struct lockstep *lockstep, struct soft_cpu *cpu)
{
    if (lockstep->landing)
        cpu->translated.jumps[jump_cache_index(lockstep->shadow->rip)].key = 0;
    lockstep->landing = false;
}

void lockstep_missed(struct soft_cpu *cpu)
{
    cpu->lockstep->missed = cpu->lockstep->landing;
}

uint64_t lockstep_target(const struct lockstep *lockstep)
{
    return lockstep->shadow->rip;
}

/* ---- a block ---- */

void lockstep_before(struct soft_cpu *cpu, const struct block *block)
{
    struct lockstep *lockstep = cpu->lockstep;

    if (block->shadow == NULL || --lockstep->left != 0)
        return;
    lockstep->left = lockstep->every;
    vectors_save(cpu);
    lockstep->block = block;
    lockstep->faulted = false;
    lockstep->missed = false;
    lockstep->page_count = 0;
    lockstep->device_writes = atomic_load(&cpu->vm->device_writes);
    memcpy(lockstep->registers, cpu->r, sizeof(lockstep->registers));
    if (!shadow_run(lockstep))
        lockstep_abandon(cpu);
    else if (!lockstep->faulted)
        make_landing(lockstep, cpu);
}

void lockstep_abandon(struct soft_cpu *cpu)
{
    struct lockstep *lockstep = cpu->lockstep;

    if (lockstep == NULL || lockstep->block == NULL)
        return;
    lockstep->given_up++;
    lockstep->block = NULL;
}

/* Whatever a device has written meanwhile, one of the two may have seen. It is announced
 * soon after it was written. */
static bool device_has_written(const struct lockstep *lockstep)
{
    static const struct timespec patience = {.tv_nsec = 100000000};

    (void)nanosleep(&patience, NULL);
    return atomic_load(&lockstep->cpu->vm->device_writes) != lockstep->device_writes;
}

void lockstep_after(struct soft_cpu *cpu, bool faulted)
{
    struct lockstep *lockstep = cpu->lockstep;
    struct difference difference;

    drop_landing(lockstep, cpu);
    if (lockstep->block != NULL && lockstep->block->stale)
        lockstep_abandon(cpu);
    if (lockstep->block == NULL || lockstep->failure.code != 0)
        return;
    vectors_save(cpu);
    lockstep->compared++;
    if (lockstep_differs(lockstep, faulted, &difference) && !device_has_written(lockstep))
        lockstep_report(lockstep, &difference);
    lockstep->block = NULL;
}
