/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors in guest memory, and segment registers loaded from them (SDM vol. 3,
 * chapters 3, 5 and 7). What is checked is said at each function; a failed check raises.
 *
 * `uop` is the instruction in progress, or NULL while an event is delivered.
 */
#ifndef HUSK_SOFT_SEGMENTS_PRIVATE_H
#define HUSK_SOFT_SEGMENTS_PRIVATE_H

#include "accel/soft/access_private.h"
#include "accel/soft/instruction_private.h"

/* System descriptor types (SDM table 3-2). */
enum descriptor_type {
    TYPE_TSS16 = 1,
    TYPE_LDT = 2,
    TYPE_TSS16_BUSY = 3,
    TYPE_CALL_GATE16 = 4,
    TYPE_TASK_GATE = 5,
    TYPE_INTERRUPT_GATE16 = 6,
    TYPE_TRAP_GATE16 = 7,
    TYPE_TSS32 = 9, /* 64-bit in long mode, and so the next two */
    TYPE_TSS32_BUSY = 11,
    TYPE_CALL_GATE32 = 12,
    TYPE_INTERRUPT_GATE32 = 14,
    TYPE_TRAP_GATE32 = 15,
};
#define TYPE_BUSY 2u /* this bit of a TSS type */

/* Bits of code and data types (SDM table 3-1). */
#define TYPE_ACCESSED 1u
#define TYPE_WRITABLE 2u   /* data; code: readable */
#define TYPE_CONFORMING 4u /* code; data: expand-down */
#define TYPE_CODE 8u

#define SELECTOR_RPL 3u
#define SELECTOR_LOCAL 4u /* in the LDT */

struct descriptor {
    uint64_t low;
    uint64_t high;   /* second half of a system descriptor in long mode, else 0 */
    uint64_t linear; /* where it lies */
};

static inline unsigned descriptor_type(const struct descriptor *descriptor)
{
    return descriptor->low >> 40 & 0xf;
}
static inline bool descriptor_is_segment(const struct descriptor *descriptor)
{
    return (descriptor->low >> 44 & 1) != 0;
}
static inline bool descriptor_is_code(const struct descriptor *descriptor)
{
    return descriptor_is_segment(descriptor) &&
           (descriptor_type(descriptor) & TYPE_CODE) != 0;
}
static inline bool descriptor_is_conforming(const struct descriptor *descriptor)
{
    return (descriptor_type(descriptor) & TYPE_CONFORMING) != 0;
}
static inline unsigned descriptor_dpl(const struct descriptor *descriptor)
{
    return descriptor->low >> 45 & 3;
}
static inline bool descriptor_is_present(const struct descriptor *descriptor)
{
    return (descriptor->low >> 47 & 1) != 0;
}
static inline bool descriptor_is_long(const struct descriptor *descriptor)
{
    return (descriptor->low >> 53 & 1) != 0;
}
static inline bool descriptor_is_big(const struct descriptor *descriptor)
{
    return (descriptor->low >> 54 & 1) != 0;
}
static inline uint64_t descriptor_base(const struct descriptor *descriptor)
{
    return (descriptor->low >> 16 & 0xffffff) | descriptor->low >> 56 << 24 |
           descriptor->high << 32;
}
static inline uint32_t descriptor_limit(const struct descriptor *descriptor)
{
    uint32_t limit =
        (uint32_t)((descriptor->low & 0xffff) | (descriptor->low >> 32 & 0xf0000));

    return (descriptor->low >> 55 & 1) != 0 ? limit << 12 | 0xfff : limit;
}

/* Gates (SDM figures 5-8, 6-2 and 6-8). */
static inline uint16_t gate_selector(const struct descriptor *gate)
{
    return (uint16_t)(gate->low >> 16);
}
static inline uint64_t gate_offset(const struct descriptor *gate)
{
    uint64_t offset = (gate->low & 0xffff) | gate->high << 32;

    return (descriptor_type(gate) & 8) != 0 ? offset | (gate->low >> 48 << 16) : offset;
}

static inline bool selector_is_null(uint16_t selector)
{
    return (selector & ~SELECTOR_RPL) == 0;
}

static inline bool linear_is_canonical(uint64_t linear)
{
    return (uint64_t)((int64_t)(linear << 16) >> 16) == linear;
}

static inline bool soft_in_long_mode(const struct soft_cpu *cpu)
{
    return (cpu->efer & X86_EFER_LMA) != 0;
}

/* Protected mode with selectors that name descriptors: not real, not virtual-8086. */
static inline bool soft_has_descriptors(const struct soft_cpu *cpu)
{
    return (cpu->mode & (MODE_PROTECTED | MODE_VIRTUAL86)) == MODE_PROTECTED;
}

static inline unsigned soft_io_privilege(const struct soft_cpu *cpu)
{
    return cpu->flags_system >> 12 & 3;
}

/* #GP(0) unless CPL is 0. */
static inline void soft_check_supervisor(struct soft_cpu *cpu, const struct uop *uop)
{
    if (cpu->cpl != 0)
        soft_raise_code(cpu, uop, X86_VECTOR_GP, 0);
}

/* ---- descriptors.c
 * ------------------------------------------------------------------------ */

/* An exception with a selector (or 0) as error code, and with EXT if it befalls the
 * delivery of an event from outside the program (SDM 6.13). */
_Noreturn void segment_raise(struct soft_cpu *cpu, const struct uop *uop, uint8_t vector,
                             uint16_t selector);

/* Reads the descriptor; in long mode both halves of a system descriptor. False if it lies
 * outside its table. */
bool descriptor_find(struct soft_cpu *cpu, const struct uop *uop, uint16_t selector,
                     struct descriptor *found);
/* The same; raises `vector` for the selector where there is none. */
struct descriptor descriptor_get(struct soft_cpu *cpu, const struct uop *uop,
                                 uint16_t selector, uint8_t vector);

/* Sets type bits in memory: accessed, busy. */
void descriptor_mark(struct soft_cpu *cpu, const struct uop *uop,
                     struct descriptor *descriptor, unsigned type_bits);
void descriptor_clear_busy(struct soft_cpu *cpu, const struct uop *uop,
                           const struct descriptor *descriptor);

/* The hidden part that goes with a descriptor. */
struct x86_segment segment_of(uint16_t selector, const struct descriptor *descriptor);

/* A null selector's; SS of 64-bit mode keeps its DPL. */
struct x86_segment segment_null(uint16_t selector, uint8_t dpl);

/* Real mode: base from the selector, the limit stays. Virtual-8086 mode: all fixed. */
void segment_load_real(struct soft_cpu *cpu, enum x86_segment_register which,
                       uint16_t selector);
void segment_load_virtual86(struct soft_cpu *cpu, enum x86_segment_register which,
                            uint16_t selector);

/* Offsets in CS, SS, DS and ES are linear addresses, all of them allowed, and the stack
 * is of 32 bits: what MODE_FLAT says. */
bool segment_all_flat(const struct soft_cpu *cpu);

/* Loads DS, ES, FS, GS or SS as MOV does in the current mode. */
void segment_load(struct soft_cpu *cpu, const struct uop *uop,
                  enum x86_segment_register which, uint16_t selector);

/* A stack segment for CPL `cpl`: `vector` (#GP, #TS) for a wrong one, #SS if not present.
 * Null is wrong. Marks it accessed. */
struct x86_segment segment_stack(struct soft_cpu *cpu, const struct uop *uop,
                                 uint16_t selector, unsigned cpl, uint8_t vector);

/* A code segment that control goes to: present (#NP), and, in long mode, not both L and
 * D; the offset within it, or canonical (#GP(0)). Marks it accessed. Whether the
 * privileges allow the transfer is for the caller to say before. */
void segment_check_target(struct soft_cpu *cpu, const struct uop *uop, uint16_t selector,
                          struct descriptor *code, uint64_t offset);

/* Makes it CS at `cpl`, with the instruction pointer. Cannot fail any more. */
void segment_enter_code(struct soft_cpu *cpu, uint16_t selector,
                        const struct descriptor *code, unsigned cpl, uint64_t offset);

/* After a return to an outer level: data segments that it may not use become null. The
 * mode follows. */
void segment_drop_inner(struct soft_cpu *cpu);

/* LDTR and TR, from a selector: #GP for a wrong one, #NP if not present (LLDT, LTR). */
void segment_load_ldt(struct soft_cpu *cpu, const struct uop *uop, uint16_t selector,
                      uint8_t vector);
void segment_load_task(struct soft_cpu *cpu, const struct uop *uop, uint16_t selector);

#endif
