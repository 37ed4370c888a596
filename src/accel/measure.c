/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How fast an accelerator is on this host: a guest of one loop, run until its time can be
 * measured. It uses what compilers emit most: additions, a load, a store and a branch, in
 * 64-bit code.
 */
#include <errno.h>
#include <time.h>

#include "accel/accels_private.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/clock.h"

/* The guest's memory: a page each. */
#define CODE_GPA 0x1000
#define DATA_GPA 0x2000
#define ROUNDS_GPA (DATA_GPA + 8)
#define TABLES_GPA 0x3000 /* three, one a level */
#define MEMORY_BYTES 0x10000

/* Until a run takes so long; the first one may take longer. */
#define ENOUGH_NS (2 * NS_PER_MS)
#define FIRST_ROUNDS UINT64_C(1000)
#define MOST_ROUNDS (UINT64_C(1) << 30)
#define GROWTH 4

#define INSTRUCTIONS_A_ROUND 5
#define DONE_PORT 0x80

/* rbx is DATA_GPA. */
static const uint8_t code[] = {
    0x48, 0x8b,      0x4b, 0x08, /* again: mov rounds(%rbx), %rcx */
    0x48, 0x01,      0xc8,       /* round: add %rcx, %rax */
    0x48, 0x89,      0x03,       /*        mov %rax, (%rbx) */
    0x48, 0x33,      0x13,       /*        xor (%rbx), %rdx */
    0x48, 0x83,      0xe9, 0x01, /*        sub $1, %rcx */
    0x75, 0xf1,                  /*        jnz round */
    0xe6, DONE_PORT,             /*        out %al, $DONE_PORT */
    0xeb, 0xe9,                  /*        jmp again */
};

struct measurement {
    const struct accel_ops *accel;
    struct memory *memory;
    struct accel_vm *vm;
    struct accel_vcpu *vcpu;
    bool done; /* the guest has written to DONE_PORT */
};

/* ---- a machine without devices, for accelerators that access it by calls
 * ------------------------------------------------------------------ */

static void note_port(void *context, uint32_t cpu_index, uint16_t port, unsigned size,
                      bool write, void *data)
{
    struct measurement *measurement = context;

    (void)cpu_index;
    (void)port;
    (void)size;
    (void)write;
    (void)data;
    measurement->done = true;
    measurement->accel->vcpu_kick(measurement->vcpu);
}

static void ignore_mmio(void *context, uint32_t cpu_index, uint64_t gpa, unsigned size,
                        bool write, void *data)
{
    (void)context;
    (void)cpu_index;
    (void)gpa;
    (void)size;
    (void)write;
    (void)data;
}

static int no_interrupt(void *context)
{
    (void)context;
    return -1;
}

static bool no_msr(void *context, uint32_t index, uint64_t *value)
{
    (void)context;
    (void)index;
    (void)value;
    return false;
}

/* The loop uses no local APIC: of its functions only these are called. */
static const struct irq_source no_irq_source = {.acknowledge = no_interrupt,
                                                .read_msr = no_msr};

static const struct irq_source *find_irq_source(void *context, uint32_t cpu_index)
{
    (void)context;
    (void)cpu_index;
    return &no_irq_source;
}

/* ---- the guest
 * ------------------------------------------------------------------------- */

/* The first 2 MiB as one page. */
static int write_guest(struct measurement *measurement, struct error *err)
{
    const uint64_t flags = X86_PTE_PRESENT | X86_PTE_WRITABLE | X86_PTE_ACCESSED;
    const uint64_t entries[] = {
        (TABLES_GPA + 1 * X86_PAGE_BYTES) | flags,
        (TABLES_GPA + 2 * X86_PAGE_BYTES) | flags,
        flags | X86_PTE_DIRTY | X86_PTE_LARGE,
    };

    if (memory_write(measurement->memory, CODE_GPA, code, sizeof(code)) < 0)
        return error_set(err, EFAULT, "the guest does not fit into its memory");
    for (size_t level = 0; level < ARRAY_SIZE(entries); level++)
        if (memory_write(measurement->memory, TABLES_GPA + level * X86_PAGE_BYTES,
                         &entries[level], sizeof(entries[level])) < 0)
            return error_set(err, EFAULT, "the guest does not fit into its memory");
    return 0;
}

static int make_guest(struct measurement *measurement,
                      const struct accel_vm_options *options, struct error *err)
{
    const struct accel_ops *accel = measurement->accel;
    const struct memory_span span = {.gpa = 0, .size_bytes = MEMORY_BYTES};
    const struct memory_options memory_options = {.huge_pages = false};
    struct cpu_state state;

    cpu_state_long64(&state, CODE_GPA, TABLES_GPA, 0);
    state.registers[X86_RBX] = DATA_GPA;
    if (memory_create(&span, 1, &memory_options, &measurement->memory, err) < 0 ||
        write_guest(measurement, err) < 0 ||
        accel->vm_create(options, measurement->memory, &measurement->vm, err) < 0 ||
        accel->vcpu_create(measurement->vm, 0, &measurement->vcpu, err) < 0 ||
        accel->set_state(measurement->vcpu, &state, err) < 0)
        return err->code;
    return 0;
}

static void drop_guest(struct measurement *measurement)
{
    if (measurement->vcpu != NULL)
        measurement->accel->vcpu_destroy(measurement->vcpu);
    if (measurement->vm != NULL)
        measurement->accel->vm_destroy(measurement->vm);
    memory_destroy(measurement->memory);
}

/* Of this thread, which is the vCPU's: what else the host does must not count. */
static uint64_t cpu_time_ns(void)
{
    struct timespec now;

    CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0);
    return (uint64_t)now.tv_sec * NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

static int run_rounds(struct measurement *measurement, uint64_t rounds, uint64_t *ns,
                      struct error *err)
{
    uint64_t start_ns = cpu_time_ns();
    struct vcpu_exit exit;

    if (memory_write(measurement->memory, ROUNDS_GPA, &rounds, sizeof(rounds)) < 0)
        return error_set(err, EFAULT, "the guest does not fit into its memory");
    measurement->done = false;
    while (!measurement->done) {
        measurement->accel->vcpu_run(measurement->vcpu, &exit);
        if (exit.kind == VCPU_EXIT_FAILED)
            return error_set(err, exit.failure.code, "%s", exit.failure.text);
        if (exit.kind == VCPU_EXIT_PORT)
            measurement->done = true;
        else if (exit.kind != VCPU_EXIT_KICKED)
            return error_set(err, EIO, "%s: cannot run a simple loop",
                             measurement->accel->name);
    }
    *ns = cpu_time_ns() - start_ns;
    return 0;
}

int accel_measure(const struct accel_ops *accel, uint32_t *mips, struct error *err)
{
    struct measurement measurement = {.accel = accel};
    const struct accel_machine machine = {.context = &measurement,
                                          .port = note_port,
                                          .mmio = ignore_mmio,
                                          .irq_source = find_irq_source};
    const struct accel_vm_options options = {.cpu_count = 1, .machine = &machine};
    uint64_t rounds = FIRST_ROUNDS;
    uint64_t ns = 0;
    int status = make_guest(&measurement, &options, err);

    while (status == 0) {
        status = run_rounds(&measurement, rounds, &ns, err);
        if (ns >= ENOUGH_NS || rounds >= MOST_ROUNDS)
            break;
        rounds *= GROWTH;
    }
    drop_guest(&measurement);
    if (status == 0)
        *mips = (uint32_t)max_u64(1, rounds * INSTRUCTIONS_A_ROUND * 1000 / ns);
    return status;
}
