/* SPDX-License-Identifier: Apache-2.0 */
/* One cache of translations for all vCPUs of a VM; see shared_private.h. */
#include "accel/soft/translator/shared_private.h"

#include <string.h>

#include "accel/soft/access_private.h"
#include "accel/soft/instruction_private.h"
#include "accel/soft/soft_private.h"
#include "accel/soft/translator/vectors_private.h"
#include "base/check.h"

/* libc's uncontended lock and unlock use general registers only: they may be called while
 * the host's vector registers are the guest's. */
void translator_lock(struct translator *translator)
{
    CHECK(pthread_mutex_lock(&translator->lock) == 0);
}

void translator_unlock(struct translator *translator)
{
    CHECK(pthread_mutex_unlock(&translator->lock) == 0);
}

/* ---- emptying ---- */

void translator_empty(struct soft_vm *vm, struct translator *translator)
{
    block_cache_empty(vm, translator->blocks);
    code_memory_empty(&translator->memory);
    translator->site_count = 1; /* index and offset 0 mean none */
    translator->link_count = 1;
    memset(translator->pages, 0, TRANSLATOR_PAGES * sizeof(struct call_page));
    translator_count(&translator->counters.evictions, 1);
    atomic_store(&translator->epoch, atomic_load(&translator->epoch) + 1);
    atomic_store(&translator->full, false);
}

void translator_ask_to_empty(struct soft_cpu *cpu)
{
    struct soft_vm *vm = cpu->vm;

    atomic_store(&cpu->translator->full, true);
    for (uint32_t i = 0; i < vm->cpu_count; i++)
        if (vm->cpus[i] != NULL)
            soft_cpu_attend(vm->cpus[i], ATTENTION_CODE);
}

static bool anybody_inside(const struct soft_vm *vm)
{
    for (uint32_t i = 0; i < vm->cpu_count; i++)
        if (vm->cpus[i] != NULL && atomic_load(&vm->cpus[i]->translated.inside))
            return true;
    return false;
}

/* This vCPU is outside. Pairs with translator_enter: it says that it goes inside before
 * it looks whether memory is full. */
static bool empty_if_full(struct soft_cpu *cpu)
{
    struct translator *translator = cpu->translator;

    if (!atomic_load(&translator->full))
        return true;
    translator_lock(translator);
    if (atomic_load(&translator->full) && !anybody_inside(cpu->vm))
        translator_empty(cpu->vm, translator);
    translator_unlock(translator);
    return !atomic_load(&translator->full);
}

bool translator_enter(struct soft_cpu *cpu)
{
    struct translated_state *state = &cpu->translated;
    uint64_t epoch;

    if (!empty_if_full(cpu))
        return false;
    atomic_store(&state->inside, true);
    if (atomic_load(&cpu->translator->full)) {
        translator_leave(cpu);
        return false;
    }
    epoch = atomic_load(&cpu->translator->epoch);
    if (epoch != state->epoch)
        translator_forget(cpu, true);
    state->epoch = epoch;
    return true;
}

void translator_leave(struct soft_cpu *cpu)
{
    atomic_store_explicit(&cpu->translated.inside, false, memory_order_release);
}

void translator_release(struct soft_vm *vm, struct translator *translator)
{
    if (translator == NULL)
        return;
    translator_lock(translator);
    CHECK(!anybody_inside(vm));
    translator_empty(vm, translator);
    translator_give_back(vm, translator);
    translator_unlock(translator);
}

/* ---- finding ---- */

/* Finds out where the instruction at cpu->rip is. May raise. */
static struct block_place find_place(struct soft_cpu *cpu)
{
    struct block_place place = {.gpa = soft_fetch_gpa(cpu, cpu->rip),
                                .next_gpa = BLOCK_ONE_PAGE};
    const size_t left = X86_PAGE_BYTES - place.gpa % X86_PAGE_BYTES;
    const uint8_t *page = soft_vm_page(cpu->vm, place.gpa);
    struct instruction instruction;

    if (left >= INSTRUCTION_LIMIT || page == NULL)
        return place;
    vectors_save(cpu);
    if (soft_decode(page + place.gpa % X86_PAGE_BYTES, left, cpu->rip, cpu->mode,
                    &instruction) == DECODE_MORE)
        place.next_gpa = soft_fetch_gpa(cpu, cpu->rip + left);
    return place;
}

static bool claim(struct soft_cpu *cpu, const struct block_place *place)
{
    struct block_cache *blocks = cpu->translator->blocks;

    return block_cache_claim(cpu, blocks, place->gpa) &&
           (place->next_gpa == BLOCK_ONE_PAGE ||
            block_cache_claim(cpu, blocks, place->next_gpa));
}

/* NULL, and not *moved: memory is full. */
static struct block *make(struct soft_cpu *cpu, const struct block_place *place,
                          uint32_t mode, bool *moved)
{
    struct translator *translator = cpu->translator;
    struct block *block = NULL;

    vectors_save(cpu); /* what follows may use the host's */
    if (!atomic_load(&translator->full) && claim(cpu, place))
        block = translate_block(cpu, place, mode, moved);
    if (*moved)
        return NULL;
    if (block != NULL && block_cache_add(cpu, translator->blocks, block)) {
        atomic_store_explicit(&translator->published, translator->counters.blocks,
                              memory_order_release);
        return block;
    }
    translator_ask_to_empty(cpu);
    return NULL;
}

static struct block *find_at(const struct soft_cpu *cpu, const struct block_place *place,
                             uint32_t mode)
{
    return block_cache_find(cpu->translator->blocks, place->gpa, cpu->rip, mode,
                            place->next_gpa);
}

/* Nearly always it has been made, and no lock is needed. */
static struct block *find(struct soft_cpu *cpu, uint32_t mode)
{
    struct block *block;
    bool moved = false;

    do {
        const struct block_place place = find_place(cpu);

        block = find_at(cpu, &place, mode);
        if (block != NULL)
            return block;
        moved = false;
        translator_lock(cpu->translator);
        block = find_at(cpu, &place, mode);
        if (block == NULL)
            block = make(cpu, &place, mode, &moved);
        translator_unlock(cpu->translator);
    } while (moved);
    return block;
}

struct block *translation_find(struct soft_cpu *cpu)
{
    return find(cpu, cpu->mode | MODE_TRANSLATED);
}

struct block *translation_find_careful(struct soft_cpu *cpu)
{
    return find(cpu, cpu->mode | MODE_TRANSLATED | MODE_CAREFUL);
}

void translation_written(struct soft_vm *vm, uint64_t gpa, unsigned size)
{
    struct translator *translator = vm->translator;

    if (translator == NULL)
        return;
    translator_lock(translator);
    block_cache_drop(vm, translator->blocks, gpa, size);
    translator_unlock(translator);
}
