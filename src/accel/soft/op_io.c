/* SPDX-License-Identifier: Apache-2.0 */
/* IN, OUT, INS, OUTS (SDM vol. 1, chapter 19). */
#include "accel/soft/address_private.h"
#include "accel/soft/debug_private.h"
#include "accel/soft/system_private.h"
#include "accel/soft/task_private.h"

/* ---- one port
 * -------------------------------------------------------------------------------------
 */

/* Accesses have 1, 2 or 4 bytes, with REX.W, too. */
static unsigned port_size(const struct uop *uop)
{
    return uop->size > 4 ? 4 : uop->size;
}

/* By I/O privilege, else by the task's permission bitmap; in virtual-8086 mode always by
 * the bitmap. */
static void check_port(struct soft_cpu *cpu, const struct uop *uop, uint16_t port)
{
    bool privileged =
        (cpu->mode & MODE_VIRTUAL86) == 0 && cpu->cpl <= soft_io_privilege(cpu);

    if (!privileged && !task_allows_port(cpu, uop, port, port_size(uop)))
        soft_raise_code(cpu, uop, X86_VECTOR_GP, 0);
    debug_note_port(cpu, port, port_size(uop));
}

static uint32_t port_read(struct soft_cpu *cpu, const struct uop *uop, uint16_t port)
{
    const struct accel_machine *machine = cpu->vm->machine;
    uint32_t value = 0;

    soft_clock_device(cpu, uop);
    machine->port(machine->context, cpu->index, port, port_size(uop), false, &value);
    return value;
}

static void port_write(struct soft_cpu *cpu, const struct uop *uop, uint16_t port,
                       uint32_t value)
{
    const struct accel_machine *machine = cpu->vm->machine;

    soft_clock_device(cpu, uop);
    machine->port(machine->context, cpu->index, port, port_size(uop), true, &value);
}

static uint16_t port_of(const struct soft_cpu *cpu, const struct uop *uop, bool immediate)
{
    return (uint16_t)(immediate ? uop->immediate : cpu->r[X86_RDX]);
}

static void read_accumulator(struct soft_cpu *cpu, const struct uop *uop, bool immediate)
{
    uint16_t port = port_of(cpu, uop, immediate);

    check_port(cpu, uop, port);
    soft_register_set(cpu, X86_RAX * 8, port_size(uop), port_read(cpu, uop, port));
}

static void write_accumulator(struct soft_cpu *cpu, const struct uop *uop, bool immediate)
{
    uint16_t port = port_of(cpu, uop, immediate);

    check_port(cpu, uop, port);
    port_write(cpu, uop, port, (uint32_t)cpu->r[X86_RAX]);
    system_end(cpu, uop);
}

static void in_immediate(struct soft_cpu *cpu, const struct uop *uop)
{
    read_accumulator(cpu, uop, true);
    NEXT(cpu, uop);
}

static void in_register(struct soft_cpu *cpu, const struct uop *uop)
{
    read_accumulator(cpu, uop, false);
    NEXT(cpu, uop);
}

/* What a write sets off (an interrupt, the end of the machine) is looked at behind it. */
static void out_immediate(struct soft_cpu *cpu, const struct uop *uop)
{
    write_accumulator(cpu, uop, true);
    FLOW_ENTER(cpu, flow_chain(cpu, uop, cpu->rip));
}

static void out_register(struct soft_cpu *cpu, const struct uop *uop)
{
    write_accumulator(cpu, uop, false);
    FLOW_ENTER(cpu, flow_chain(cpu, uop, cpu->rip));
}

/* ---- strings
 * ------------------------------------------------------------------------------------ */

static uint64_t offset_register(const struct soft_cpu *cpu, const struct uop *uop,
                                unsigned number)
{
    uint64_t value = cpu->r[number];

    if (uop->address_size == 2)
        return (uint16_t)value;
    return uop->address_size == 4 ? (uint32_t)value : value;
}

/* From one element to the next. */
static uint64_t stride(const struct soft_cpu *cpu, const struct uop *uop)
{
    return cpu->direction ? -(uint64_t)port_size(uop) : port_size(uop);
}

static void advance_by(struct soft_cpu *cpu, const struct uop *uop, unsigned number,
                       uint64_t bytes)
{
    soft_register_set(cpu, (uint8_t)(number * 8), uop->address_size,
                      cpu->r[number] + bytes);
}

/* What fits into the current page, at most `count` elements, by one call of the machine.
 * Returns how many: 0 if this is not the fast way's. */
static uint64_t input_chunk(struct soft_cpu *cpu, const struct uop *uop, uint64_t count)
{
    const struct accel_machine *machine = cpu->vm->machine;
    unsigned size = port_size(uop);
    uint64_t linear;
    uint64_t room =
        address_room(cpu, uop, X86_ES, offset_register(cpu, uop, X86_RDI), true, &linear);
    uint64_t elements = min_u64(count, room / size);
    uint8_t *to;

    if (elements < 2 || cpu->direction || cpu->step_pending ||
        machine->port_read_string == NULL)
        return 0;
    to = soft_writable(cpu, linear, (unsigned)(elements * size));
    if (to == NULL)
        return 0;
    soft_clock_device(cpu, uop);
    machine->port_read_string(machine->context, cpu->index, (uint16_t)cpu->r[X86_RDX],
                              size, (uint32_t)elements, to);
    advance_by(cpu, uop, X86_RDI, elements * size);
    return elements;
}

/* The port may have side effects: memory is tried first. */
static void input_one(struct soft_cpu *cpu, const struct uop *uop)
{
    uint64_t offset = offset_register(cpu, uop, X86_RDI);
    uint64_t linear = address_linear(cpu, uop, X86_ES, offset, port_size(uop), true);
    uint16_t port = (uint16_t)cpu->r[X86_RDX];

    soft_check_store(cpu, uop, linear, port_size(uop));
    soft_store_slow(cpu, uop, linear, port_size(uop), port_read(cpu, uop, port));
    advance_by(cpu, uop, X86_RDI, stride(cpu, uop));
}

static void output_one(struct soft_cpu *cpu, const struct uop *uop)
{
    uint64_t offset = offset_register(cpu, uop, X86_RSI);
    uint64_t linear =
        address_linear(cpu, uop, uop->segment, offset, port_size(uop), false);
    uint32_t value = (uint32_t)soft_load_slow(cpu, uop, linear, port_size(uop));

    port_write(cpu, uop, (uint16_t)cpu->r[X86_RDX], value);
    advance_by(cpu, uop, X86_RSI, stride(cpu, uop));
}

typedef void port_step(struct soft_cpu *cpu, const struct uop *uop);
typedef uint64_t port_chunk(struct soft_cpu *cpu, const struct uop *uop, uint64_t count);

/* With REP each step is committed, and whatever asks for attention is answered between
 * steps: rip is then the instruction's own. `chunk` may be NULL. */
static void repeat(struct soft_cpu *cpu, const struct uop *uop, port_step *step,
                   port_chunk *chunk)
{
    uint64_t count;

    check_port(cpu, uop, (uint16_t)cpu->r[X86_RDX]);
    if (uop->extra == 0) {
        step(cpu, uop);
        system_end(cpu, uop);
        return;
    }
    while ((count = offset_register(cpu, uop, X86_RCX)) != 0) {
        uint64_t done = chunk == NULL ? 0 : chunk(cpu, uop, count);

        if (done == 0) {
            step(cpu, uop);
            done = 1;
        }
        advance_by(cpu, uop, X86_RCX, 0 - done);
        if (count == done || (atomic_load(&cpu->attention) == 0 && !cpu->step_pending))
            continue;
        cpu->rip = uop->rip;
        cpu->retired += uop->ordinal;
        return;
    }
    system_end(cpu, uop);
}

static void ins(struct soft_cpu *cpu, const struct uop *uop)
{
    repeat(cpu, uop, input_one, input_chunk);
}

static void outs(struct soft_cpu *cpu, const struct uop *uop)
{
    repeat(cpu, uop, output_one, NULL);
}

soft_handler *select_io(const struct instruction *instruction, bool flags_dead)
{
    static soft_handler *const handlers[] = {
        [IO_IN_IMMEDIATE] = in_immediate,
        [IO_IN_REGISTER] = in_register,
        [IO_OUT_IMMEDIATE] = out_immediate,
        [IO_OUT_REGISTER] = out_register,
        [IO_INS] = ins,
        [IO_OUTS] = outs,
    };

    (void)flags_dead;
    return handlers[instruction->form->variant];
}
