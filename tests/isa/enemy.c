/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guests as enemies: random code, page tables, control registers, segments and descriptor
 * tables. Nothing they do may crash the processor, keep it from leaving when it is
 * kicked, or touch memory that is not theirs (what the address sanitizer and the guard
 * pages around guest memory find). Each ends by a triple fault or by the kick.
 *
 * With --cpus N several processors are in one guest. They share its memory, and half of
 * them begin with the tables, and often at the place, of the first: so they write to each
 * other's code. Such a run is not the same twice.
 */
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "accel/accel.h"
#include "accel/soft/instruction_private.h"
#include "accel/soft/soft_private.h"
#include "base/check.h"
#include "base/clock.h"
#include "code.h"
#include "random.h"

#define MEMORY_BYTES UINT64_C(0x100000)
#define PAGE_COUNT (MEMORY_BYTES / X86_PAGE_BYTES)

#define CODE_PAGES 64 /* that guests' code is copied from */

#define BUDGET_US 2000    /* of a guest */
#define STUCK_KICKS 10000 /* 20 seconds */

extern const struct accel_ops accel_soft; /* soft.c */

#define MAX_PROCESSORS 4

struct processor {
    struct random random; /* of its devices: each thread has its own */
    struct irq_source irq;
    struct accel_vcpu *vcpu;
    bool shut_down;
};

struct arena {
    struct random random;
    struct memory *memory;
    uint8_t *bytes; /* guest-physical 0 */
    struct accel_vm *vm;
    struct processor processors[MAX_PROCESSORS];
    uint32_t processor_count;
    struct accel_machine machine;
    pthread_t kicker;
    pthread_mutex_t lock; /* of what follows */
    bool runs;            /* a guest */
    unsigned kicks;       /* since it began */
    _Atomic bool ends;    /* there will be no more */
    uint8_t code[CODE_PAGES][X86_PAGE_BYTES];
    uint64_t seed;
    char name[80]; /* the command that runs the guest again */
    unsigned long guests;
    unsigned long shutdowns;
    uint64_t instructions;
};

/* ---- a machine that answers anything ---- */

static int random_interrupt(void *context)
{
    struct processor *processor = context;

    return random_chance(&processor->random, 4)
               ? (int)random_below(&processor->random, 256)
               : -1;
}

static bool random_msr_read(void *context, uint32_t index, uint64_t *value)
{
    *value = random_u64(&((struct processor *)context)->random);
    return (index & 1) != 0;
}

static bool random_msr_write(void *context, uint32_t index, uint64_t value)
{
    (void)context;
    (void)value;
    return (index & 1) != 0;
}

static bool random_register_read(void *context, uint64_t gpa, unsigned size,
                                 uint64_t *value)
{
    (void)size;
    *value = random_u64(&((struct processor *)context)->random);
    return gpa >> 12 == 0xfee00;
}

static bool random_register_write(void *context, uint64_t gpa, unsigned size,
                                  uint64_t value)
{
    (void)context;
    (void)size;
    (void)value;
    return gpa >> 12 == 0xfee00;
}

static uint8_t random_priority(void *context)
{
    return (uint8_t)random_below(&((struct processor *)context)->random, 16);
}

static void set_priority(void *context, uint8_t priority)
{
    (void)context;
    CHECK(priority < 16);
}

static void random_device(void *context, uint32_t cpu_index, uint64_t address,
                          unsigned size, bool write, void *data)
{
    struct arena *arena = context;

    (void)address;
    CHECK(cpu_index < arena->processor_count && size >= 1 && size <= 8);
    if (!write)
        random_bytes(&arena->processors[cpu_index].random, data, size);
}

static void random_port(void *context, uint32_t cpu_index, uint16_t port, unsigned size,
                        bool write, void *data)
{
    random_device(context, cpu_index, port, size, write, data);
}

static uint64_t fall_asleep(void *context)
{
    (void)context;
    return IRQ_NOT_DUE;
}

static void wake_up(void *context)
{
    (void)context;
}

static const struct irq_source *the_irq_source(void *context, uint32_t cpu_index)
{
    return &((struct arena *)context)->processors[cpu_index].irq;
}

/* ---- random guests ---- */

static uint64_t random_gpa(struct random *random)
{
    return (uint64_t)random_below(random, (unsigned)PAGE_COUNT) * X86_PAGE_BYTES;
}

/* Instructions of all forms, for 64-bit mode, with wild bytes between them. */
static void make_code(struct arena *arena, uint8_t *page)
{
    struct random *random = &arena->random;
    size_t at = 0;

    while (at < X86_PAGE_BYTES - INSTRUCTION_LIMIT) {
        const struct form *form =
            soft_form(random_below(random, (unsigned)soft_form_count()));
        struct instruction instruction = {.length = 1};

        if (random_chance(random, 16))
            page[at] = (uint8_t)random_u64(random);
        else if (!code_generate(form, CODE_MODE, 0, random, page + at, &instruction))
            continue;
        at += instruction.length;
    }
}

/* Entries that are mostly usable: of tables, pages, and large pages. */
static void fill_table(struct arena *arena, uint8_t *page)
{
    struct random *random = &arena->random;

    for (size_t at = 0; at < X86_PAGE_BYTES; at += 8) {
        uint64_t entry = random_gpa(random) | (random_u64(random) & 0x1ff) | 7;

        if (!random_chance(random, 8))
            entry &= ~X86_PTE_LARGE;
        if (random_chance(random, 16))
            entry ^= UINT64_C(1) << random_below(random, 64);
        store_le64(page + at, entry);
    }
}

/* Segments, gates and system descriptors, present more often than not. */
static void fill_descriptors(struct arena *arena, uint8_t *page)
{
    struct random *random = &arena->random;

    for (size_t at = 0; at < X86_PAGE_BYTES; at += 8) {
        uint64_t descriptor = random_u64(random);

        if (random_chance(random, 2)) /* flat */
            descriptor = (descriptor & UINT64_C(0x0060ff0000000000)) |
                         UINT64_C(0x008f80000000ffff);
        if (random_chance(random, 4)) /* a gate to a likely place */
            descriptor = (descriptor & UINT64_C(0x0000ff0000000fff)) |
                         UINT64_C(0x0000800000000000) | (random_below(random, 64) << 19);
        store_le64(page + at, descriptor);
    }
}

static void fill_memory(struct arena *arena)
{
    for (size_t i = 0; i < PAGE_COUNT; i++) {
        uint8_t *page = arena->bytes + i * X86_PAGE_BYTES;

        switch (random_below(&arena->random, 8)) {
        case 0:
        case 1:
        case 2:
            memcpy(page, arena->code[random_below(&arena->random, CODE_PAGES)],
                   X86_PAGE_BYTES);
            break;
        case 3:
        case 4:
            fill_table(arena, page);
            break;
        case 5:
            fill_descriptors(arena, page);
            break;
        default:
            random_bytes(&arena->random, page, X86_PAGE_BYTES);
            break;
        }
    }
}

static void random_segment(struct random *random, struct x86_segment *segment, bool code)
{
    *segment = (struct x86_segment){
        .base = random_chance(random, 2) ? 0 : random_gpa(random) >> 1,
        .limit = random_chance(random, 4) ? (uint32_t)random_u64(random) : UINT32_MAX,
        .selector = (uint16_t)random_u64(random),
        .type = (uint8_t)(code ? 11 : 3),
        .dpl = 0,
        .present = true,
        .code_or_data = true,
        .db = random_chance(random, 2),
        .granularity = true,
    };
}

/* One of the modes there are, with what goes with it. */
static void random_state(struct random *random, struct cpu_state *state)
{
    unsigned mode = random_below(random, 6);
    uint8_t dpl = (uint8_t)(random_chance(random, 3) ? 3 : 0);

    *state = (struct cpu_state){
        .rip = random_gpa(random),
        .rflags = X86_FLAGS_FIXED | (random_u64(random) & 0x47ed5),
        .cr0 = X86_CR0_ET | (random_u64(random) & (X86_CR0_WP | X86_CR0_NE | X86_CR0_AM)),
        .cr3 = random_gpa(random),
        .cr4 = random_u64(random) &
               (X86_CR4_PSE | X86_CR4_PGE | X86_CR4_OSFXSR | X86_CR4_OSXMMEXCPT |
                X86_CR4_UMIP | X86_CR4_SMEP | X86_CR4_SMAP | X86_CR4_TSD | X86_CR4_DE |
                X86_CR4_FSGSBASE),
        .gdt = {random_gpa(random), (uint16_t)random_u64(random)},
        .idt = {random_gpa(random), (uint16_t)random_u64(random)},
    };
    for (unsigned i = 0; i < X86_REGISTER_COUNT; i++)
        state->registers[i] =
            random_chance(random, 2) ? random_gpa(random) : random_integer(random);
    for (unsigned i = X86_ES; i <= X86_GS; i++)
        random_segment(random, &state->segments[i], i == X86_CS);
    state->segments[X86_TR] = (struct x86_segment){.base = random_gpa(random),
                                                   .limit = 0x67,
                                                   .selector = 0x40,
                                                   .type = X86_TYPE_TSS_BUSY,
                                                   .present = true};
    if (mode >= 1)
        state->cr0 |= X86_CR0_PE;
    if (mode >= 2)
        state->cr0 |= X86_CR0_PG;
    if (mode >= 3)
        state->cr4 |= X86_CR4_PAE;
    if (mode >= 4) {
        state->efer = X86_EFER_LME | X86_EFER_LMA | X86_EFER_SCE |
                      (random_u64(random) & X86_EFER_NXE);
        state->segments[X86_CS].long_mode = mode == 5;
        state->segments[X86_CS].db &= mode != 5;
    }
    if (mode >= 1) {
        state->segments[X86_CS].dpl = dpl;
        state->segments[X86_SS].dpl = dpl;
    }
    if (mode == 1 || mode >= 4)
        state->rflags &= ~X86_FLAGS_VM;
}

/* ---- guests that live longer ---- */

#define TABLE_ENTRY (X86_PTE_PRESENT | X86_PTE_WRITABLE | X86_PTE_USER)
#define LARGE_ENTRY (TABLE_ENTRY | X86_PTE_LARGE)
#define GATE_BYTES_LONG 16
#define GATE_COUNT 256

static uint8_t *page_at(const struct arena *arena, uint64_t gpa)
{
    return arena->bytes + align_down(gpa % MEMORY_BYTES, X86_PAGE_BYTES);
}

static void fill_entries(uint8_t *page, uint64_t entry)
{
    for (size_t at = 0; at < X86_PAGE_BYTES; at += 8)
        store_le64(page + at, entry);
}

/* Tables under which every address is the low bits of it, in large pages at 0. */
static void map_everything(struct arena *arena, struct cpu_state *state)
{
    unsigned levels = state->efer != 0 ? 3 : 2; /* PML4, PDPT, PD */
    uint64_t table = state->cr3;

    state->cr4 &= ~(X86_CR4_SMEP | X86_CR4_SMAP);
    if ((state->cr4 & X86_CR4_PAE) == 0) {
        state->cr4 |= X86_CR4_PSE; /* two entries of 32 bits at a time */
        fill_entries(page_at(arena, table), LARGE_ENTRY | LARGE_ENTRY << 32);
        return;
    }
    for (; levels > 1; levels--) {
        uint64_t next = (table + X86_PAGE_BYTES) % MEMORY_BYTES;
        /* PAE's top level has but PRESENT. */
        uint64_t rights = state->efer != 0 ? TABLE_ENTRY : X86_PTE_PRESENT;

        fill_entries(page_at(arena, table), next | rights);
        table = next;
    }
    fill_entries(page_at(arena, table), LARGE_ENTRY);
}

/* A flat code segment for the gates, and gates to code for every vector. */
static void make_gates(struct arena *arena, struct cpu_state *state)
{
    const uint16_t selector = 8;
    bool wide = state->efer != 0;
    size_t size = wide ? GATE_BYTES_LONG : 8;
    uint8_t *gdt = page_at(arena, state->gdt.base);
    uint8_t *idt = page_at(arena, state->idt.base);

    state->gdt = (struct x86_table){(uint64_t)(gdt - arena->bytes), 0xff};
    state->idt = (struct x86_table){(uint64_t)(idt - arena->bytes), 0xfff};
    for (unsigned i = 0; i < GATE_COUNT; i++) {
        uint64_t target = random_gpa(&arena->random);
        uint8_t *gate = idt + i * size;

        store_le64(gate, (target & 0xffff) | (uint64_t)selector << 16 |
                             UINT64_C(0x0000ee0000000000) | (target >> 16) << 48);
        if (wide)
            store_le64(gate + 8, 0);
    }
    store_le64(gdt + selector, wide ? UINT64_C(0x00af9b000000ffff) /* 64-bit code */
                                    : UINT64_C(0x00cf9b000000ffff));
    store_le64(gdt + selector + 8, UINT64_C(0x00cf93000000ffff));
}

/* Half of the guests. */
static void prolong(struct arena *arena, struct cpu_state *state)
{
    if (random_chance(&arena->random, 2))
        return;
    if ((state->cr0 & X86_CR0_PG) != 0)
        map_everything(arena, state);
    if ((state->cr0 & X86_CR0_PE) != 0)
        make_gates(arena, state);
    state->registers[X86_RSP] = random_gpa(&arena->random) + X86_PAGE_BYTES / 2;
}

/* ---- runs ---- */

static void say(const char *text)
{
    (void)!write(STDERR_FILENO, text, strlen(text));
}

/* Kicks all that run. */
static void kick(struct arena *arena)
{
    CHECK(pthread_mutex_lock(&arena->lock) == 0);
    if (arena->runs && arena->kicks++ == STUCK_KICKS) {
        say(arena->name);
        say(": the processor does not leave when it is kicked\n");
        abort();
    }
    for (uint32_t i = 0; arena->runs && i < arena->processor_count; i++)
        accel_soft.vcpu_kick(arena->processors[i].vcpu);
    CHECK(pthread_mutex_unlock(&arena->lock) == 0);
}

/* A guest's budget is used up: kicks, again and again. By a thread: a signal would wait
 * under the thread sanitizer. */
static void *run_kicks(void *context)
{
    struct arena *arena = context;

    while (!arena->ends) {
        (void)usleep(BUDGET_US);
        kick(arena);
    }
    return NULL;
}

static void set_runs(struct arena *arena, bool runs)
{
    CHECK(pthread_mutex_lock(&arena->lock) == 0);
    arena->runs = runs;
    arena->kicks = 0;
    CHECK(pthread_mutex_unlock(&arena->lock) == 0);
}

static void *run_until_kicked(void *context)
{
    struct processor *processor = context;
    struct vcpu_exit exit = {.kind = VCPU_EXIT_FAILED};

    accel_soft.vcpu_run(processor->vcpu, &exit);
    CHECK(exit.kind == VCPU_EXIT_KICKED || exit.kind == VCPU_EXIT_SHUTDOWN);
    processor->shut_down = exit.kind == VCPU_EXIT_SHUTDOWN;
    return NULL;
}

/* The first processor runs on this thread. */
static void run_processors(struct arena *arena)
{
    pthread_t threads[MAX_PROCESSORS];

    set_runs(arena, true);
    for (uint32_t i = 1; i < arena->processor_count; i++)
        CHECK(pthread_create(&threads[i], NULL, run_until_kicked,
                             &arena->processors[i]) == 0);
    (void)run_until_kicked(&arena->processors[0]);
    for (uint32_t i = 1; i < arena->processor_count; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    set_runs(arena, false);
}

/* A processor of its own, or one that begins as the first did, somewhere else. */
static void state_beside(struct arena *arena, const struct cpu_state *first,
                         struct cpu_state *state)
{
    struct random *random = &arena->random;

    if (random_chance(random, 2)) {
        random_state(random, state);
        prolong(arena, state);
        return;
    }
    *state = *first;
    if (random_chance(random, 2))
        state->rip = random_gpa(random);
    for (unsigned i = 0; i < X86_REGISTER_COUNT; i++)
        if (random_chance(random, 2))
            state->registers[i] = random_gpa(random) + random_below(random, 4096);
    state->registers[X86_RSP] = random_gpa(random) + X86_PAGE_BYTES / 2;
}

static void set_up(struct arena *arena)
{
    struct cpu_state first;
    struct cpu_state state;
    struct error err = {0};

    for (uint32_t i = 0; i < arena->processor_count; i++) {
        struct processor *processor = &arena->processors[i];

        processor->random.state = random_u64(&arena->random);
        CHECK(accel_soft.vcpu_create(arena->vm, i, &processor->vcpu, &err) == 0);
    }
    fill_memory(arena);
    random_state(&arena->random, &first);
    prolong(arena, &first);
    for (uint32_t i = 0; i < arena->processor_count; i++) {
        state = first;
        if (i > 0)
            state_beside(arena, &first, &state);
        CHECK(accel_soft.set_state(arena->processors[i].vcpu, &state, &err) == 0);
    }
}

static void run_guest(struct arena *arena, uint64_t number)
{
    (void)snprintf(arena->name, sizeof(arena->name),
                   "enemy --cpus %" PRIu32 " --seed %" PRIu64 " --first %" PRIu64,
                   arena->processor_count, arena->seed, number);
    arena->random.state = arena->seed + (number << 20);
    /* By turns; of struct accel_vm, it is the first member. */
    ((struct soft_vm *)(void *)arena->vm)->tier =
        number % 2 == 0 ? ACCEL_TIER_TRANSLATOR : ACCEL_TIER_INTERPRETER;
    set_up(arena);
    run_processors(arena);
    arena->guests++;
    for (uint32_t i = 0; i < arena->processor_count; i++) {
        struct processor *processor = &arena->processors[i];
        /* Its only member. */
        const struct soft_cpu *cpu = (const struct soft_cpu *)(void *)processor->vcpu;

        arena->instructions += cpu->retired;
        arena->shutdowns += processor->shut_down;
        accel_soft.vcpu_destroy(processor->vcpu);
    }
}

/* Guests race in their memory, which is their own affair: not for the thread sanitizer
 * to tell. Only its library has this. */
void AnnotateBenignRaceSized(const char *file, int line, const volatile void *at,
                             size_t size, const char *why) __attribute__((weak));

static struct irq_source random_irq_source(struct processor *processor)
{
    return (struct irq_source){.context = processor,
                               .acknowledge = random_interrupt,
                               .read_msr = random_msr_read,
                               .write_msr = random_msr_write,
                               .read = random_register_read,
                               .write = random_register_write,
                               .get_priority = random_priority,
                               .set_priority = set_priority,
                               .fall_asleep = fall_asleep,
                               .wake_up = wake_up};
}

static void arena_create(struct arena *arena, uint64_t seed, uint32_t processors)
{
    static const struct memory_span span = {0, MEMORY_BYTES};
    static const struct memory_options memory_options = {.prefault = true};
    struct accel_vm_options options = {.cpu_count = processors,
                                       .machine = &arena->machine};
    struct error err = {0};

    *arena = (struct arena){
        .random = {seed},
        .seed = seed,
        .processor_count = processors,
        .machine = {.context = arena,
                    .port = random_port,
                    .mmio = random_device,
                    .irq_source = the_irq_source},
    };
    for (uint32_t i = 0; i < processors; i++)
        arena->processors[i].irq = random_irq_source(&arena->processors[i]);
    CHECK(memory_create(&span, 1, &memory_options, &arena->memory, &err) == 0);
    CHECK(accel_soft.vm_create(&options, arena->memory, &arena->vm, &err) == 0);
    arena->bytes = memory_slice(arena->memory, 0, MEMORY_BYTES);
    CHECK(arena->bytes != NULL);
    if (AnnotateBenignRaceSized != NULL)
        AnnotateBenignRaceSized(__FILE__, __LINE__, arena->bytes, MEMORY_BYTES, "guest");
    for (size_t i = 0; i < CODE_PAGES; i++)
        make_code(arena, arena->code[i]);
    CHECK(pthread_mutex_init(&arena->lock, NULL) == 0);
    CHECK(pthread_create(&arena->kicker, NULL, run_kicks, arena) == 0);
}

static void arena_destroy(struct arena *arena)
{
    arena->ends = true;
    CHECK(pthread_join(arena->kicker, NULL) == 0);
    CHECK(pthread_mutex_destroy(&arena->lock) == 0);
    accel_soft.vm_destroy(arena->vm);
    memory_destroy(arena->memory);
}

int main(int argc, char **argv)
{
    static const struct option known[] = {{"seconds", required_argument, NULL, 't'},
                                          {"seed", required_argument, NULL, 's'},
                                          {"first", required_argument, NULL, 'f'},
                                          {"cpus", required_argument, NULL, 'c'},
                                          {NULL, 0, NULL, 0}};
    static struct arena arena;
    uint64_t seconds = 10, seed = 1, number = 0, processors = 1;
    uint64_t end;
    int option;

    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        if (option == '?') {
            (void)fprintf(stderr, "usage: enemy [--seconds N] [--seed S] [--first N] "
                                  "[--cpus N]\n");
            return 2;
        }
        if (option == 't')
            seconds = strtoull(optarg, NULL, 0);
        else if (option == 's')
            seed = strtoull(optarg, NULL, 0);
        else if (option == 'c')
            processors = strtoull(optarg, NULL, 0);
        else
            number = strtoull(optarg, NULL, 0);
    }
    if (processors < 1 || processors > MAX_PROCESSORS) {
        (void)fprintf(stderr, "--cpus: 1 to %d\n", MAX_PROCESSORS);
        return 2;
    }
    arena_create(&arena, seed, (uint32_t)processors);
    end = clock_monotonic_ns() + seconds * NS_PER_SECOND;
    while (clock_monotonic_ns() < end)
        run_guest(&arena, number++);
    printf("seed %" PRIu64 ": %lu guests, %lu ended by a triple fault, %" PRIu64
           " instructions\n",
           seed, arena.guests, arena.shutdowns, arena.instructions);
    arena_destroy(&arena);
    return 0;
}
