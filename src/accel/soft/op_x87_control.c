/* SPDX-License-Identifier: Apache-2.0 */
/* x87 instructions on the unit's state: FNINIT FNCLEX FWAIT, control and status word,
 * environment and whole state in their 16 and 32-bit layouts. */
#include <string.h>

#include "accel/soft/vector_private.h"
#include "accel/soft/x87_private.h"
#include "base/bytes.h"

/* ---- tags ---- */

/* Full tags (SDM vol. 1, figure 8-7). */
enum x87_tag { TAG_VALID, TAG_ZERO, TAG_SPECIAL, TAG_EMPTY };

static enum x87_tag tag_of(const uint8_t value[16])
{
    uint64_t significand = load_le64(value);
    uint16_t exponent = load_le16(value + 8) & 0x7fff;

    if (exponent == 0 && significand == 0)
        return TAG_ZERO;
    /* NaN, infinity, denormal; unnormal where the integer bit is missing. */
    if (exponent == 0x7fff || exponent == 0 || significand >> 63 == 0)
        return TAG_SPECIAL;
    return TAG_VALID;
}

/* Two bits a physical register; fx.ftw has one, which only says whether it is in use. */
static uint16_t full_tags(const struct soft_cpu *cpu)
{
    unsigned tags = 0;

    for (unsigned i = 0; i < 8; i++) {
        unsigned physical = (x87_top(cpu) + i) & 7;
        enum x87_tag tag =
            (cpu->fx.ftw >> physical & 1) != 0 ? tag_of(cpu->fx.st[i]) : TAG_EMPTY;

        tags |= (unsigned)tag << 2 * physical;
    }
    return (uint16_t)tags;
}

static void set_full_tags(struct soft_cpu *cpu, uint16_t tags)
{
    unsigned used = 0;

    for (unsigned i = 0; i < 8; i++)
        if ((tags >> 2 * i & 3) != TAG_EMPTY)
            used |= 1u << i;
    cpu->fx.ftw = (uint8_t)used;
}

/* ---- environment (SDM vol. 1, figures 8-9 to 8-12) ---- */

#define ENVIRONMENT_FIELDS 7 /* control, status, tags, four of pointers */
#define STACK_BYTES 80       /* eight registers of 80 bits */

#define AREA_BYTES (ENVIRONMENT_FIELDS * 4 + STACK_BYTES) /* in the longer layout */

/* Fields have the operand size, 2 or 4 bytes. */
static unsigned field_bytes(const struct uop *uop)
{
    return uop->size == 2 ? 2 : 4;
}

/* The pointers are 0 (x87_private.h), which looks the same in real and protected mode.
 * Upper halves of the 32-bit layout's words are ones, as processors write them. */
static unsigned put_environment(const struct soft_cpu *cpu, const struct uop *uop,
                                uint8_t *to)
{
    const uint16_t fields[ENVIRONMENT_FIELDS] = {cpu->fx.fcw, cpu->fx.fsw,
                                                 full_tags(cpu)};
    const uint16_t upper[ENVIRONMENT_FIELDS] = {[0 ... 2] = 0xffff, [6] = 0xffff};
    unsigned size = field_bytes(uop);

    for (unsigned i = 0; i < ENVIRONMENT_FIELDS; i++) {
        store_le16(to + (size_t)i * size, fields[i]);
        if (size == 4)
            store_le16(to + (size_t)i * 4 + 2, upper[i]);
    }
    return ENVIRONMENT_FIELDS * size;
}

static void get_environment(struct soft_cpu *cpu, const struct uop *uop,
                            const uint8_t *from)
{
    unsigned size = field_bytes(uop);
    uint16_t status = load_le16(from + size);

    x87_set_control(cpu, load_le16(from));
    x87_set_top(cpu, (status & X87_STATUS_TOP) >> X87_STATUS_TOP_SHIFT);
    cpu->fx.fsw = status;
    set_full_tags(cpu, load_le16(from + 2 * (size_t)size));
    x87_update_summary(cpu);
}

/* FNSAVE, FNINIT. */
static void initialise(struct soft_cpu *cpu)
{
    cpu->fx.fcw = X87_CONTROL_INITIAL;
    x87_set_top(cpu, 0);
    cpu->fx.fsw = 0;
    cpu->fx.ftw = 0;
    cpu->fx.fop = 0;
    cpu->fx.fip = 0;
    cpu->fx.fdp = 0;
}

/* ---- handlers; those that wait begin with x87_check_pending ---- */

static void fnstenv(struct soft_cpu *cpu, const struct uop *uop)
{
    uint8_t *area = (uint8_t *)cpu->scratch;
    unsigned size = put_environment(cpu, uop, area);

    soft_store_bytes(cpu, uop, soft_address(cpu, uop), area, size);
    cpu->fx.fcw |= X87_STATUS_EXCEPTIONS; /* masks all exceptions, behind the store */
    x87_update_summary(cpu);
    NEXT(cpu, uop);
}

static void fldenv(struct soft_cpu *cpu, const struct uop *uop)
{
    x87_check_pending(cpu, uop);
    soft_load_bytes(cpu, uop, soft_address(cpu, uop), cpu->scratch,
                    ENVIRONMENT_FIELDS * field_bytes(uop));
    get_environment(cpu, uop, (const uint8_t *)cpu->scratch);
    NEXT(cpu, uop);
}

static __attribute__((noinline)) void save(struct soft_cpu *cpu, const struct uop *uop)
{
    uint8_t area[AREA_BYTES];
    unsigned size = put_environment(cpu, uop, area);

    for (unsigned i = 0; i < 8; i++)
        memcpy(area + size + (size_t)i * 10, cpu->fx.st[i], 10);
    soft_store_bytes(cpu, uop, soft_address(cpu, uop), area, size + STACK_BYTES);
    initialise(cpu);
}

static void fnsave(struct soft_cpu *cpu, const struct uop *uop)
{
    save(cpu, uop);
    NEXT(cpu, uop);
}

static __attribute__((noinline)) void restore(struct soft_cpu *cpu, const struct uop *uop)
{
    uint8_t area[AREA_BYTES];
    unsigned size = ENVIRONMENT_FIELDS * field_bytes(uop);

    soft_load_bytes(cpu, uop, soft_address(cpu, uop), area, size + STACK_BYTES);
    get_environment(cpu, uop, area);
    memset(cpu->fx.st, 0, sizeof(cpu->fx.st));
    for (unsigned i = 0; i < 8; i++)
        memcpy(cpu->fx.st[i], area + size + (size_t)i * 10, 10);
}

static void frstor(struct soft_cpu *cpu, const struct uop *uop)
{
    x87_check_pending(cpu, uop);
    restore(cpu, uop);
    NEXT(cpu, uop);
}

static void fninit(struct soft_cpu *cpu, const struct uop *uop)
{
    initialise(cpu);
    NEXT(cpu, uop);
}

static void fnclex(struct soft_cpu *cpu, const struct uop *uop)
{
    cpu->fx.fsw &= (uint16_t) ~(X87_STATUS_EXCEPTIONS | X87_STATUS_SF | X87_STATUS_ES |
                                X87_STATUS_B);
    NEXT(cpu, uop);
}

static void fnstcw(struct soft_cpu *cpu, const struct uop *uop)
{
    soft_store16(cpu, uop, soft_address(cpu, uop), cpu->fx.fcw);
    NEXT(cpu, uop);
}

static void fldcw(struct soft_cpu *cpu, const struct uop *uop)
{
    x87_check_pending(cpu, uop);
    x87_set_control(cpu, soft_load16(cpu, uop, soft_address(cpu, uop)));
    x87_update_summary(cpu);
    NEXT(cpu, uop);
}

static void fnstsw(struct soft_cpu *cpu, const struct uop *uop)
{
    soft_store16(cpu, uop, soft_address(cpu, uop), cpu->fx.fsw);
    NEXT(cpu, uop);
}

static void fnstsw_ax(struct soft_cpu *cpu, const struct uop *uop)
{
    *soft_register16(cpu, X86_RAX) = cpu->fx.fsw;
    NEXT(cpu, uop);
}

/* FNENI FNDISI FNSETPM: of the 8087 and 80287, without effect since. */
static void nothing(struct soft_cpu *cpu, const struct uop *uop)
{
    NEXT(cpu, uop);
}

static void fwait(struct soft_cpu *cpu, const struct uop *uop)
{
    const uint64_t monitored = X86_CR0_MP | X86_CR0_TS;

    if ((cpu->cr0 & monitored) == monitored)
        soft_raise(cpu, uop, X86_VECTOR_NM);
    x87_check_pending(cpu, uop);
    NEXT(cpu, uop);
}

soft_handler *select_x87_control(const struct instruction *instruction, bool flags_dead)
{
    static soft_handler *const handlers[] = {
        [X87_FNSTENV] = fnstenv,     [X87_FLDENV] = fldenv,   [X87_FNSAVE] = fnsave,
        [X87_FRSTOR] = frstor,       [X87_FNINIT] = fninit,   [X87_FNCLEX] = fnclex,
        [X87_FNSTCW] = fnstcw,       [X87_FLDCW] = fldcw,     [X87_FNSTSW] = fnstsw,
        [X87_FNSTSW_AX] = fnstsw_ax, [X87_NOTHING] = nothing, [X87_FWAIT] = fwait,
    };
    soft_handler *unavailable = vector_unavailable(instruction, NEED_SSE2);

    (void)flags_dead;
    return unavailable != NULL ? unavailable : handlers[instruction->form->variant];
}
