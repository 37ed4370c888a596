/* SPDX-License-Identifier: Apache-2.0 */
/* The translator's memory, links and jump cache; see translator_private.h. */
#include "accel/soft/translator/translator_private.h"

#include <asm/prctl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "accel/soft/translator/check_private.h"
#include "accel/soft/translator/emit_private.h"
#include "accel/soft/translator/vectors_private.h"
#include "base/check.h"

/* ---- memory ---- */

static void *reserve(size_t size_bytes)
{
    void *mapped = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return mapped == MAP_FAILED ? NULL : mapped;
}

static void release(void *mapped, size_t size_bytes)
{
    if (mapped != NULL)
        (void)munmap(mapped, size_bytes);
}

int translator_create(struct translator **translator, uint32_t code_bytes,
                      struct error *err)
{
    struct translator *created = calloc(1, sizeof(*created));
    int result;

    if (created == NULL)
        return error_set(err, -ENOMEM, "out of memory for the translator");
    created->sites = reserve(TRANSLATOR_SITES * sizeof(struct site));
    created->links = reserve(TRANSLATOR_LINKS * sizeof(struct link));
    result = created->sites == NULL || created->links == NULL
                 ? error_set(err, -ENOMEM, "out of memory for the translator")
                 : code_memory_create(&created->memory, code_bytes, err);
    if (result < 0) {
        translator_destroy(created);
        return result;
    }
    thunks_emit(created);
    translator_empty_memory(created);
    *translator = created;
    return 0;
}

void translator_destroy(struct translator *translator)
{
    if (translator == NULL)
        return;
    code_memory_destroy(&translator->memory);
    release(translator->sites, TRANSLATOR_SITES * sizeof(struct site));
    release(translator->links, TRANSLATOR_LINKS * sizeof(struct link));
    free(translator);
}

/* Index and offset 0 mean none. */
void translator_empty_memory(struct translator *translator)
{
    code_memory_empty(&translator->memory);
    translator->site_count = 1;
    translator->link_count = 1;
    translator->epoch++;
}

uint64_t translator_bytes(const struct translator *translator)
{
    if (translator == NULL)
        return 0;
    return code_memory_bytes(&translator->memory) +
           translator->site_count * sizeof(struct site) +
           translator->link_count * sizeof(struct link);
}

static uint64_t read_counter(const _Atomic uint64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

void translator_add_counters(const struct soft_cpu *cpu,
                             struct accel_translations *translations)
{
    const struct translator_counters *all = &cpu->translator->counters;
    const struct translated_counters *own = &cpu->translated.counters;

    translations->blocks += read_counter(&all->blocks);
    translations->instructions += read_counter(&all->instructions);
    translations->code_bytes += read_counter(&all->code_bytes);
    translations->evictions += read_counter(&all->evictions);
    translations->tlb_fills += read_counter(&own->fills);
    translations->interpreted += read_counter(&own->steps);
    translations->lookups += read_counter(&own->lookups);
}

void translator_release(struct translator *translator)
{
    if (translator == NULL)
        return;
    code_memory_release(&translator->memory);
    (void)madvise(translator->sites, TRANSLATOR_SITES * sizeof(struct site),
                  MADV_DONTNEED);
    (void)madvise(translator->links, TRANSLATOR_LINKS * sizeof(struct link),
                  MADV_DONTNEED);
}

void translator_empty(struct soft_cpu *cpu)
{
    if (cpu->translator == NULL)
        return;
    translator_empty_memory(cpu->translator);
    translator_count(&cpu->translator->counters.evictions, 1);
    translator_forget(cpu, true);
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
    block = block_find(cpu, cpu->mode | MODE_TRANSLATED);
    if (block->code.poll_entry == 0)
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

/* ---- links ---- */

static struct code_writer open_cold(const struct translator *translator)
{
    uint8_t *at = translator->memory.writable + translator->memory.cold.at;

    return (struct code_writer){
        .at = at, .start = at, .start_offset = translator->memory.cold.at};
}

/* Flags are in the host's, the target wants them in the state. */
static uint32_t landing_with_flags(struct translator *translator, uint32_t target)
{
    struct emitter e = {.translator = translator, .flags = FLAGS_HOST};
    uint32_t start = translator->memory.cold.at;

    if (code_area_left(&translator->memory.cold) < (size_t)2 * ENCODE_LIMIT)
        return 0;
    e.hot = open_cold(translator);
    emit_flags_to_state(&e);
    encode_jump(&e.hot, target);
    translator->memory.cold.at = writer_offset(&e.hot);
    return start;
}

uint32_t link_landing(struct translator *translator, const struct link *link,
                      const struct block *to)
{
    const struct translated_code *code = &to->code;
    uint32_t target = link->backward ? code->poll_entry : code->entry;

    if (code->flags_in == FLAGS_NOWHERE)
        return target;
    if (code->flags_in == FLAGS_STATE)
        return link->flags == FLAGS_HOST ? landing_with_flags(translator, target)
                                         : target;
    if (link->flags != FLAGS_HOST)
        return code->poll_entry;
    return link->backward ? landing_with_flags(translator, code->poll_entry)
                          : code->entry;
}

/* ---- stale blocks ---- */

/* The code of a block is at least so long from either entry on that this fits. */
static void put_stale_call(struct translator *translator, uint32_t offset, uint32_t thunk,
                           uint32_t site)
{
    uint8_t *at = translator->memory.writable + offset;
    struct code_writer writer = {.at = at, .start = at, .start_offset = offset};

    encode_call(&writer, thunk);
    encode_u32(&writer, site);
}

void translation_make_stale(struct soft_cpu *cpu, struct block *block)
{
    struct translator *translator = cpu->translator;
    const struct translated_code *code = &block->code;

    if (code->poll_entry == 0)
        return;
    put_stale_call(translator, code->poll_entry, translator->stale, code->site);
    put_stale_call(translator, code->entry,
                   code->flags_in == FLAGS_HOST ? translator->stale_host_flags
                                                : translator->stale,
                   code->site);
}

static void put_jump(struct translator *translator, uint32_t offset, uint32_t target)
{
    uint8_t *at = translator->memory.writable + offset;
    struct code_writer writer = {.at = at, .start = at, .start_offset = offset};

    encode_jump(&writer, target);
}

void translation_send_on(struct translator *translator, const struct block *from,
                         const struct block *to)
{
    put_jump(translator, from->code.poll_entry, to->code.poll_entry);
    if (from->code.flags_in == to->code.flags_in)
        put_jump(translator, from->code.entry, to->code.entry);
}

/* ---- the jump cache ---- */

static void forget_jumps(struct translated_state *state)
{
    if (state->jump_fill_count > JUMP_CACHE_FILL_LIST)
        memset(state->jump_keys, 0, sizeof(state->jump_keys));
    else
        for (uint32_t i = 0; i < state->jump_fill_count; i++)
            state->jump_keys[state->jump_fills[i]] = 0;
    state->jump_fill_count = 0;
}

/* The mode's salt is below bit 63 (see state_private.h), so that the key's top bit is the
 * address's. */
static void forget_lower_jumps(struct translated_state *state)
{
    uint32_t kept = 0;

    if (state->jump_fill_count > JUMP_CACHE_FILL_LIST) {
        forget_jumps(state);
        return;
    }
    for (uint32_t i = 0; i < state->jump_fill_count; i++) {
        uint64_t *key = &state->jump_keys[state->jump_fills[i]];

        if (*key >> 63 == 0)
            *key = 0;
        else
            state->jump_fills[kept++] = state->jump_fills[i];
    }
    state->jump_fill_count = kept;
}

static void next_generation(uint32_t *generation)
{
    if (++*generation == 0)
        *generation = 1;
}

void translator_forget(struct soft_cpu *cpu, bool upper_half)
{
    struct translated_state *state = &cpu->translated;

    vectors_save(cpu);
    next_generation(&state->generations[0]);
    if (upper_half) {
        next_generation(&state->generations[1]);
        forget_jumps(state);
    } else {
        forget_lower_jumps(state);
    }
}
