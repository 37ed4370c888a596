/* SPDX-License-Identifier: Apache-2.0 */
/* The translator's memory, its vCPUs' way in, and jump caches; see translator_private.h.
 */
#include "accel/soft/translator/translator_private.h"

#include <asm/prctl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "accel/soft/reserve_private.h"
#include "accel/soft/soft_private.h"
#include "accel/soft/translator/check_private.h"
#include "accel/soft/translator/emit_private.h"
#include "accel/soft/translator/shared_private.h"
#include "accel/soft/translator/vectors_private.h"
#include "base/check.h"

/* ---- memory ---- */

int translator_create(struct translator **translator, uint32_t code_bytes,
                      struct error *err)
{
    struct translator *created = calloc(1, sizeof(*created));
    int result;

    if (created == NULL)
        return error_set(err, -ENOMEM, "out of memory for the translator");
    CHECK(code_bytes <= TRANSLATOR_CODE_BYTES);
    CHECK(pthread_mutex_init(&created->lock, NULL) == 0);
    created->sites = soft_reserve(TRANSLATOR_SITES * sizeof(struct site));
    created->links = soft_reserve(TRANSLATOR_LINKS * sizeof(struct link));
    created->pages = soft_reserve(TRANSLATOR_PAGES * sizeof(struct call_page));
    result = created->sites == NULL || created->links == NULL || created->pages == NULL
                 ? error_set(err, -ENOMEM, "out of memory for the translator")
                 : block_cache_create(&created->blocks, err);
    if (result == 0)
        result = code_memory_create(&created->memory, code_bytes, err);
    if (result < 0) {
        translator_destroy(created);
        return result;
    }
    created->blocks->page_unit = CODE_TRANSLATED;
    rules_init();
    thunks_emit(created);
    code_memory_empty(&created->memory);
    created->site_count = 1; /* index and offset 0 mean none */
    created->link_count = 1;
    *translator = created;
    return 0;
}

void translator_destroy(struct translator *translator)
{
    if (translator == NULL)
        return;
    block_cache_destroy(translator->blocks);
    code_memory_destroy(&translator->memory);
    soft_release(translator->sites, TRANSLATOR_SITES * sizeof(struct site));
    soft_release(translator->links, TRANSLATOR_LINKS * sizeof(struct link));
    soft_release(translator->pages, TRANSLATOR_PAGES * sizeof(struct call_page));
    CHECK(pthread_mutex_destroy(&translator->lock) == 0);
    free(translator);
}

uint64_t translator_bytes(struct translator *translator)
{
    uint64_t bytes;

    if (translator == NULL)
        return 0;
    translator_lock(translator);
    bytes = code_memory_bytes(&translator->memory) +
            block_cache_bytes(translator->blocks) +
            translator->site_count * sizeof(struct site) +
            translator->link_count * sizeof(struct link);
    translator_unlock(translator);
    return bytes;
}

static uint64_t read_counter(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

void translator_read_counters(const struct soft_vm *vm,
                              struct accel_translations *translations)
{
    const struct translator_counters *all = &vm->translator->counters;

    *translations = (struct accel_translations){
        .blocks = read_counter(&all->blocks),
        .instructions = read_counter(&all->instructions),
        .code_bytes = read_counter(&all->code_bytes),
        .nanoseconds = read_counter(&all->nanoseconds),
        .evictions = read_counter(&all->evictions),
    };
    for (uint32_t i = 0; i < vm->cpu_count; i++) {
        const struct translated_counters *own;

        if (vm->cpus[i] == NULL)
            continue;
        own = &vm->cpus[i]->translated.counters;
        translations->tlb_fills += read_counter(&own->fills);
        translations->interpreted += read_counter(&own->steps);
        translations->lookups += read_counter(&own->lookups);
    }
}

void translator_give_back(struct soft_vm *vm, struct translator *translator)
{
    block_cache_release(vm, translator->blocks);
    code_memory_release(&translator->memory);
    (void)madvise(translator->sites, TRANSLATOR_SITES * sizeof(struct site),
                  MADV_DONTNEED);
    (void)madvise(translator->links, TRANSLATOR_LINKS * sizeof(struct link),
                  MADV_DONTNEED);
}

/* ---- running ---- */

/* Code finds its vCPU through GS, which nothing else in this process uses. */
static void set_gs(const struct soft_cpu *cpu)
{
    static _Thread_local const struct soft_cpu *owner;

    if (owner == cpu)
        return;
    CHECK(syscall(SYS_arch_prctl, ARCH_SET_GS, cpu->mmu.entries) == 0);
    owner = cpu;
}

bool translator_run(struct soft_cpu *cpu)
{
    const struct translator *translator = cpu->translator;
    const struct block *block;
    translator_entry *enter = NULL;
    const uint8_t *entry = code_memory_address(&translator->memory, translator->enter);

    if (cpu->translated.interpret_next != 0) {
        cpu->translated.interpret_next = 0;
        return false;
    }
    if (!translator_enter(cpu))
        return false;
    block = cpu->translated.careful_next != 0 ? translation_find_careful(cpu)
                                              : translation_find(cpu);
    cpu->translated.careful_next = 0;
    if (block == NULL || block->code.poll_entry == 0)
        return false;
    set_gs(cpu);
    cpu->translated.self = cpu;
    memcpy(&enter, &entry, sizeof(enter));
    if (cpu->lockstep != NULL)
        lockstep_before(cpu, block);
    enter(cpu, code_memory_address(&translator->memory, block->code.poll_entry));
    if (cpu->lockstep != NULL)
        lockstep_after(cpu, false);
    vectors_save(cpu);
    return true;
}

/* ---- the jump cache ---- */

/* An entry in the list may meanwhile be one of the other half. */
static void forget_half(struct translated_state *state, unsigned half)
{
    struct jump_fills *fills = &state->jump_fills[half];
    const bool complete = fills->count <= JUMP_CACHE_FILL_LIST;
    const uint32_t count = complete ? fills->count : JUMP_CACHE_ENTRIES;

    for (uint32_t i = 0; i < count; i++) {
        uint64_t *key = &state->jumps[complete ? fills->index[i] : i].key;

        if (jump_key_half(*key) == half)
            *key = 0;
    }
    fills->count = 0;
}

void translator_forget(struct soft_cpu *cpu, bool upper_half)
{
    struct translated_state *state = &cpu->translated;

    vectors_save(cpu);
    forget_half(state, 0);
    if (upper_half)
        forget_half(state, 1);
}
