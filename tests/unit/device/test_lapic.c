/* SPDX-License-Identifier: Apache-2.0 */
/* The local APIC: registers, priorities, modes and errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "apic_fixture.h"
#include "base/bytes.h"

#define TO_SELF 0x40000

static void send_self(struct apic_fixture *fixture, uint8_t vector)
{
    apic_write(fixture, 0, APIC_REG_ICR, TO_SELF | vector);
}

/* ---- power-on ---- */

static void has_its_power_on_values(void **state)
{
    static const struct {
        uint32_t offset;
        uint32_t value;
    } registers[] = {
        {APIC_REG_ID, 0x02000000},
        {APIC_REG_VERSION, 0x00050014},
        {APIC_REG_TPR, 0},
        {APIC_REG_APR, 0},
        {APIC_REG_PPR, 0},
        {APIC_REG_LDR, 0},
        {APIC_REG_DFR, 0xffffffff},
        {APIC_REG_SVR, 0xff},
        {APIC_REG_ISR, 0},
        {APIC_REG_TMR + 0x70, 0},
        {APIC_REG_IRR + 0x30, 0},
        {APIC_REG_ESR, 0},
        {APIC_REG_ICR, 0},
        {APIC_REG_ICR_HIGH, 0},
        {APIC_REG_LVT_TIMER, 0x10000},
        {APIC_REG_LVT_THERMAL, 0x10000},
        {APIC_REG_LVT_LINT0, 0x10000},
        {APIC_REG_LVT_LINT1, 0x10000},
        {APIC_REG_LVT_ERROR, 0x10000},
        {APIC_REG_LVT_PERFORMANCE, 0x10000},
        {APIC_REG_TIMER_INITIAL, 0},
        {APIC_REG_TIMER_CURRENT, 0},
        {APIC_REG_TIMER_DIVIDE, 0},
    };
    struct apic_fixture *fixture = *state;
    uint64_t base;

    for (size_t i = 0; i < ARRAY_SIZE(registers); i++)
        assert_int_equal(apic_read(fixture, 2, registers[i].offset), registers[i].value);
    assert_true(apic_read_msr(fixture, 2, MSR_APIC_BASE, &base));
    assert_int_equal(base, 0xfee00800);
    assert_true(apic_read_msr(fixture, 0, MSR_APIC_BASE, &base));
    assert_int_equal(base, 0xfee00900);
}

static void first_processor_starts_in_virtual_wire_mode(void **state)
{
    struct apic_fixture *fixture = *state;

    assert_int_equal(apic_read(fixture, 0, APIC_REG_LVT_LINT0), 0x700);
    assert_int_equal(apic_read(fixture, 0, APIC_REG_LVT_LINT1), 0x400);
}

static void keeps_only_writable_bits(void **state)
{
    static const struct {
        uint32_t offset;
        uint32_t value;
    } registers[] = {
        {APIC_REG_ID, 0},
        {APIC_REG_VERSION, 0x00050014},
        {APIC_REG_TPR, 0xff},
        {APIC_REG_LDR, 0xff000000},
        {APIC_REG_DFR, 0xffffffff},
        {APIC_REG_SVR, 0x3ff},
        {APIC_REG_ICR_HIGH, 0xff000000},
        {APIC_REG_LVT_TIMER, 0x700ff},
        {APIC_REG_LVT_THERMAL, 0x107ff},
        {APIC_REG_LVT_PERFORMANCE, 0x107ff},
        {APIC_REG_LVT_LINT0, 0x1a7ff},
        {APIC_REG_LVT_LINT1, 0x1a7ff},
        {APIC_REG_LVT_ERROR, 0x100ff},
        {APIC_REG_TIMER_DIVIDE, 0xb},
    };
    struct apic_fixture *fixture = *state;

    for (size_t i = 0; i < ARRAY_SIZE(registers); i++) {
        apic_write(fixture, 0, registers[i].offset, 0xffffffff);
        assert_int_equal(apic_read(fixture, 0, registers[i].offset), registers[i].value);
    }
    apic_write(fixture, 0, APIC_REG_DFR, 0);
    assert_int_equal(apic_read(fixture, 0, APIC_REG_DFR), 0x0fffffff);
}

static void answers_parts_of_a_register(void **state)
{
    struct apic_fixture *fixture = *state;
    const struct irq_source *source = &fixture->lapics[0].source;
    uint64_t value;

    assert_true(source->read(source->context, LAYOUT_LOCAL_APIC + 0x31, 1, &value));
    assert_int_equal((uint8_t)value, 0x00);
    assert_true(source->read(source->context, LAYOUT_LOCAL_APIC + 0x32, 1, &value));
    assert_int_equal((uint8_t)value, 0x05);
    assert_true(source->read(source->context, LAYOUT_LOCAL_APIC + 0x34, 4, &value));
    assert_int_equal(value, 0);
    /* Written only as a whole. */
    assert_true(source->write(source->context, LAYOUT_LOCAL_APIC + 0x80, 1, 0x20));
    assert_int_equal(apic_read(fixture, 0, APIC_REG_TPR), 0);
}

/* ---- priorities ---- */

static void takes_the_highest_vector_first(void **state)
{
    struct apic_fixture *fixture = *state;

    send_self(fixture, 0x41);
    send_self(fixture, 0xef);
    send_self(fixture, 0x52);
    assert_int_equal(fixture->events[0][IRQ_EVENT_INTERRUPT], 3);
    assert_int_equal(apic_read(fixture, 0, APIC_REG_IRR + 0x20), 1u << 1 | 1u << 18);
    assert_int_equal(apic_read(fixture, 0, APIC_REG_IRR + 0x70), 1u << 15);
    assert_int_equal(apic_acknowledge(fixture, 0), 0xef);
    assert_int_equal(apic_read(fixture, 0, APIC_REG_IRR + 0x70), 0);
    assert_int_equal(apic_read(fixture, 0, APIC_REG_ISR + 0x70), 1u << 15);
    assert_int_equal(apic_read(fixture, 0, APIC_REG_PPR), 0xe0);
    assert_int_equal(apic_acknowledge(fixture, 0), -1);
    apic_write(fixture, 0, APIC_REG_EOI, 0);
    assert_int_equal(apic_acknowledge(fixture, 0), 0x52);
    apic_write(fixture, 0, APIC_REG_EOI, 0);
    assert_int_equal(apic_acknowledge(fixture, 0), 0x41);
    apic_write(fixture, 0, APIC_REG_EOI, 0);
    assert_int_equal(apic_acknowledge(fixture, 0), -1);
    assert_int_equal(apic_read(fixture, 0, APIC_REG_PPR), 0);
}

static void same_class_waits_and_higher_class_nests(void **state)
{
    struct apic_fixture *fixture = *state;

    send_self(fixture, 0x41);
    assert_int_equal(apic_acknowledge(fixture, 0), 0x41);
    send_self(fixture, 0x4f);
    assert_int_equal(apic_acknowledge(fixture, 0), -1);
    send_self(fixture, 0x50);
    assert_int_equal(apic_acknowledge(fixture, 0), 0x50);
    assert_int_equal(apic_read(fixture, 0, APIC_REG_PPR), 0x50);
    apic_write(fixture, 0, APIC_REG_EOI, 0); /* of 0x50 */
    assert_int_equal(apic_read(fixture, 0, APIC_REG_PPR), 0x40);
    assert_int_equal(apic_acknowledge(fixture, 0), -1);
    apic_write(fixture, 0, APIC_REG_EOI, 0);
    assert_int_equal(apic_acknowledge(fixture, 0), 0x4f);
}

static void task_priority_holds_back_its_class(void **state)
{
    struct apic_fixture *fixture = *state;

    apic_write(fixture, 0, APIC_REG_TPR, 0x45);
    assert_int_equal(apic_read(fixture, 0, APIC_REG_PPR), 0x45);
    send_self(fixture, 0x4f);
    assert_int_equal(fixture->events[0][IRQ_EVENT_INTERRUPT], 0);
    assert_int_equal(apic_acknowledge(fixture, 0), -1);
    send_self(fixture, 0x50);
    assert_int_equal(fixture->events[0][IRQ_EVENT_INTERRUPT], 1);
    assert_int_equal(apic_acknowledge(fixture, 0), 0x50);
    assert_int_equal(apic_read(fixture, 0, APIC_REG_PPR), 0x50);
    apic_write(fixture, 0, APIC_REG_EOI, 0);
    assert_int_equal(fixture->events[0][IRQ_EVENT_INTERRUPT], 1);
    apic_write(fixture, 0, APIC_REG_TPR, 0x30); /* tells that 0x4f may come now */
    assert_int_equal(fixture->events[0][IRQ_EVENT_INTERRUPT], 2);
    assert_int_equal(apic_acknowledge(fixture, 0), 0x4f);
}

static void cr8_is_the_class_of_the_task_priority(void **state)
{
    struct apic_fixture *fixture = *state;
    const struct irq_source *source = &fixture->lapics[0].source;

    apic_write(fixture, 0, APIC_REG_TPR, 0x57);
    assert_int_equal(source->get_priority(source->context), 5);
    source->set_priority(source->context, 0xa);
    assert_int_equal(apic_read(fixture, 0, APIC_REG_TPR), 0xa0);
    send_self(fixture, 0xa1);
    assert_int_equal(fixture->events[0][IRQ_EVENT_INTERRUPT], 0);
    source->set_priority(source->context, 9);
    assert_int_equal(fixture->events[0][IRQ_EVENT_INTERRUPT], 1);
    assert_int_equal(apic_acknowledge(fixture, 0), 0xa1);
}

static void requests_of_one_vector_are_one(void **state)
{
    struct apic_fixture *fixture = *state;

    send_self(fixture, 0x60);
    send_self(fixture, 0x60);
    assert_int_equal(apic_acknowledge(fixture, 0), 0x60);
    send_self(fixture, 0x60); /* while in service: one more behind it */
    send_self(fixture, 0x60);
    apic_write(fixture, 0, APIC_REG_EOI, 0);
    assert_int_equal(apic_acknowledge(fixture, 0), 0x60);
    apic_write(fixture, 0, APIC_REG_EOI, 0);
    assert_int_equal(apic_acknowledge(fixture, 0), -1);
    apic_write(fixture, 0, APIC_REG_EOI, 0); /* of nothing */
}

/* ---- software enable ---- */

static void disabled_by_software_takes_nothing_and_masks_its_table(void **state)
{
    struct apic_fixture *fixture = *state;

    apic_write(fixture, 0, APIC_REG_LVT_TIMER, 0x31);
    send_self(fixture, 0x60);
    apic_write(fixture, 0, APIC_REG_SVR, 0xff);
    assert_int_equal(apic_read(fixture, 0, APIC_REG_LVT_TIMER), 0x10031);
    assert_int_equal(apic_read(fixture, 0, APIC_REG_LVT_LINT0), 0x10700);
    apic_write(fixture, 0, APIC_REG_LVT_TIMER, 0x32);
    assert_int_equal(apic_read(fixture, 0, APIC_REG_LVT_TIMER), 0x10032);
    assert_int_equal(apic_acknowledge(fixture, 0), -1);
    send_self(fixture, 0x70);
    assert_int_equal(apic_read(fixture, 0, APIC_REG_IRR + 0x30), 1); /* 0x60 is kept */
    apic_enable(fixture, 0);
    assert_int_equal(apic_acknowledge(fixture, 0), 0x60);
}

/* ---- errors ---- */

static void illegal_vectors_are_errors(void **state)
{
    struct apic_fixture *fixture = *state;

    send_self(fixture, 0x0f);
    assert_int_equal(apic_read(fixture, 0, APIC_REG_ESR), 0); /* until it is written */
    apic_write(fixture, 0, APIC_REG_ESR, 0);
    assert_int_equal(apic_read(fixture, 0, APIC_REG_ESR), 0x60);
    apic_write(fixture, 0, APIC_REG_ESR, 0);
    assert_int_equal(apic_read(fixture, 0, APIC_REG_ESR), 0);
    send_self(fixture, 0x10);
    assert_int_equal(apic_acknowledge(fixture, 0), 0x10);
}

static void reserved_registers_are_errors_in_the_page(void **state)
{
    struct apic_fixture *fixture = *state;

    assert_int_equal(apic_read(fixture, 0, 0x040), 0);
    apic_write(fixture, 0, APIC_REG_ESR, 0);
    assert_int_equal(apic_read(fixture, 0, APIC_REG_ESR), 0x80);
    apic_write(fixture, 0, 0x3f0, 0);
    apic_write(fixture, 0, APIC_REG_VERSION, 0); /* read-only is none */
    (void)apic_read(fixture, 0, APIC_REG_EOI);   /* nor is write-only */
    apic_write(fixture, 0, APIC_REG_ESR, 0);
    assert_int_equal(apic_read(fixture, 0, APIC_REG_ESR), 0x80);
}

static void first_error_interrupts(void **state)
{
    struct apic_fixture *fixture = *state;

    apic_write(fixture, 0, APIC_REG_LVT_ERROR, 0xfe);
    send_self(fixture, 3);
    assert_int_equal(apic_acknowledge(fixture, 0), 0xfe);
    apic_write(fixture, 0, APIC_REG_EOI, 0);
    send_self(fixture, 3); /* not again before ESR is written */
    assert_int_equal(apic_acknowledge(fixture, 0), -1);
    apic_write(fixture, 0, APIC_REG_ESR, 0);
    send_self(fixture, 3);
    assert_int_equal(apic_acknowledge(fixture, 0), 0xfe);
}

/* An error interrupt that is itself an error must not go round for ever. */
static void illegal_error_vector_ends(void **state)
{
    struct apic_fixture *fixture = *state;

    apic_write(fixture, 0, APIC_REG_LVT_ERROR, 0x00);
    send_self(fixture, 3);
    apic_write(fixture, 0, APIC_REG_ESR, 0);
    assert_int_equal(apic_read(fixture, 0, APIC_REG_ESR), 0x60);
}

/* ---- the page and the modes ---- */

static void page_moves_with_its_base(void **state)
{
    struct apic_fixture *fixture = *state;
    const struct irq_source *source = &fixture->lapics[0].source;
    uint64_t value;

    assert_true(apic_write_msr(fixture, 0, MSR_APIC_BASE, 0x12345000 | 0x900));
    assert_false(source->read(source->context, LAYOUT_LOCAL_APIC + 0x30, 4, &value));
    assert_false(source->write(source->context, LAYOUT_LOCAL_APIC + 0x80, 4, 0x20));
    assert_true(source->read(source->context, 0x12345030, 4, &value));
    assert_int_equal(value, 0x50014);
    assert_false(source->read(source->context, 0x12346030, 4, &value));
}

static void base_refuses_reserved_bits(void **state)
{
    static const uint64_t wrong[] = {0xfee00901, 0xfee00980, 0xfee00b00,
                                     UINT64_C(1) << 52 | 0xfee00900,
                                     UINT64_C(1) << 63 | 0xfee00900};
    struct apic_fixture *fixture = *state;
    uint64_t base;

    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        assert_false(apic_write_msr(fixture, 0, MSR_APIC_BASE, wrong[i]));
    assert_true(apic_read_msr(fixture, 0, MSR_APIC_BASE, &base));
    assert_int_equal(base, 0xfee00900);
}

static void modes_follow_each_other_as_allowed(void **state)
{
    static const uint64_t disabled = 0xfee00100;
    static const uint64_t invalid = 0xfee00500;
    static const uint64_t xapic = 0xfee00900;
    static const uint64_t x2apic = 0xfee00d00;
    struct apic_fixture *fixture = *state;

    assert_false(apic_write_msr(fixture, 0, MSR_APIC_BASE, invalid));
    assert_true(apic_write_msr(fixture, 0, MSR_APIC_BASE, x2apic));
    assert_true(apic_write_msr(fixture, 0, MSR_APIC_BASE, x2apic));
    assert_false(apic_write_msr(fixture, 0, MSR_APIC_BASE, xapic));
    assert_false(apic_write_msr(fixture, 0, MSR_APIC_BASE, invalid));
    assert_true(apic_write_msr(fixture, 0, MSR_APIC_BASE, disabled));
    assert_false(apic_write_msr(fixture, 0, MSR_APIC_BASE, x2apic));
    assert_false(apic_write_msr(fixture, 0, MSR_APIC_BASE, invalid));
    assert_true(apic_write_msr(fixture, 0, MSR_APIC_BASE, xapic));
    assert_true(apic_write_msr(fixture, 0, MSR_APIC_BASE, disabled));
}

static void off_answers_nothing_and_forgets(void **state)
{
    struct apic_fixture *fixture = *state;
    const struct irq_source *source = &fixture->lapics[0].source;
    uint64_t value;

    send_self(fixture, 0x60);
    apic_write(fixture, 0, APIC_REG_LVT_TIMER, 0x31);
    assert_true(apic_write_msr(fixture, 0, MSR_APIC_BASE, 0xfee00100));
    assert_false(source->read(source->context, LAYOUT_LOCAL_APIC + 0x30, 4, &value));
    assert_false(apic_read_msr(fixture, 0, MSR_X2APIC(APIC_REG_ID), &value));
    assert_int_equal(apic_acknowledge(fixture, 0), -1);
    source->set_priority(source->context, 3);
    assert_int_equal(source->get_priority(source->context), 3);
    source->set_priority(source->context, 0);
    assert_true(apic_write_msr(fixture, 0, MSR_APIC_BASE, 0xfee00900));
    assert_int_equal(apic_read(fixture, 0, APIC_REG_SVR), 0xff);
    assert_int_equal(apic_read(fixture, 0, APIC_REG_LVT_TIMER), 0x10000);
    assert_int_equal(apic_read(fixture, 0, APIC_REG_IRR + 0x30), 0);
}

static void x2apic_has_msrs_in_place_of_the_page(void **state)
{
    struct apic_fixture *fixture = *state;
    const struct irq_source *source = &fixture->lapics[3].source;
    uint64_t value;

    assert_false(apic_read_msr(fixture, 3, MSR_X2APIC(APIC_REG_VERSION), &value));
    assert_false(apic_write_msr(fixture, 3, MSR_X2APIC(APIC_REG_TPR), 0));
    apic_enter_x2apic(fixture, 3);
    assert_false(source->read(source->context, LAYOUT_LOCAL_APIC + 0x30, 4, &value));
    assert_true(apic_read_msr(fixture, 3, MSR_X2APIC(APIC_REG_VERSION), &value));
    assert_int_equal(value, 0x50014);
    assert_true(apic_read_msr(fixture, 3, MSR_X2APIC(APIC_REG_ID), &value));
    assert_int_equal(value, 3);
    assert_true(apic_read_msr(fixture, 3, MSR_X2APIC(APIC_REG_LDR), &value));
    assert_int_equal(value, 8);
}

static void x2apic_refuses_what_it_lacks(void **state)
{
    /* APR, DFR, ICR high, remote read, EOI, SELF IPI and between the registers. */
    static const uint32_t unreadable[] = {0x800, 0x809, 0x80e, 0x831,     0x80c,
                                          0x80b, 0x83f, 0x82f, 0x838 + 2, 0x8ff};
    static const uint32_t read_only[] = {0x802, 0x803, 0x80a, 0x80d,
                                         0x810, 0x818, 0x827, 0x839};
    struct apic_fixture *fixture = *state;
    uint64_t value;

    apic_enter_x2apic(fixture, 0);
    for (size_t i = 0; i < ARRAY_SIZE(unreadable); i++)
        assert_false(apic_read_msr(fixture, 0, unreadable[i], &value));
    for (size_t i = 0; i < ARRAY_SIZE(read_only); i++) {
        assert_true(apic_read_msr(fixture, 0, read_only[i], &value));
        assert_false(apic_write_msr(fixture, 0, read_only[i], 0));
    }
}

static void x2apic_refuses_reserved_bits(void **state)
{
    static const struct {
        uint32_t index;
        uint64_t highest; /* what is taken; one bit above is refused */
        uint64_t wrong;
    } registers[] = {
        {0x808, 0xff, 0x100},
        {0x80b, 0, 1},
        {0x80f, 0x3ff, 0x400},
        {0x828, 0, 1},
        {0x830, UINT64_C(0x0000000200000440), 0x2000},
        {0x830, UINT64_C(0x0000000200000440), 0x10000},
        {0x830, UINT64_C(0x0000000200000440), 0x100000},
        {0x832, 0x700ff, 0x80000},
        {0x833, 0x107ff, 0x800},
        {0x834, 0x107ff, 0x20000},
        {0x835, 0x1a7ff, 0x800},
        {0x836, 0x1a7ff, 0x20000},
        {0x837, 0x100ff, 0x100},
        {0x838, 0xffffffff, UINT64_C(0x100000000)},
        {0x83e, 0xb, 0x4},
        {0x83f, 0xff, 0x100},
    };
    struct apic_fixture *fixture = *state;

    apic_enter_x2apic(fixture, 0);
    for (size_t i = 0; i < ARRAY_SIZE(registers); i++) {
        assert_true(apic_write_msr(fixture, 0, registers[i].index, registers[i].highest));
        assert_false(apic_write_msr(fixture, 0, registers[i].index, registers[i].wrong));
        assert_false(apic_write_msr(fixture, 0, registers[i].index,
                                    registers[i].wrong | UINT64_C(1) << 63 |
                                        (registers[i].index == 0x830 ? 0x2000 : 0)));
    }
}

static void x2apic_keeps_what_xapic_had(void **state)
{
    struct apic_fixture *fixture = *state;
    uint64_t value;

    apic_write(fixture, 0, APIC_REG_TPR, 0x20);
    apic_write(fixture, 0, APIC_REG_LVT_THERMAL, 0x44);
    send_self(fixture, 0x60);
    apic_write(fixture, 0, APIC_REG_ICR_HIGH, 0x05000000);
    apic_enter_x2apic(fixture, 0);
    assert_true(apic_read_msr(fixture, 0, MSR_X2APIC(APIC_REG_TPR), &value));
    assert_int_equal(value, 0x20);
    assert_true(apic_read_msr(fixture, 0, MSR_X2APIC(APIC_REG_LVT_THERMAL), &value));
    assert_int_equal(value, 0x44);
    assert_true(apic_read_msr(fixture, 0, MSR_X2APIC(APIC_REG_ICR), &value));
    assert_int_equal(value, TO_SELF | 0x60); /* its upper half is cleared */
    assert_int_equal(apic_acknowledge(fixture, 0), 0x60);
    assert_true(apic_write_msr(fixture, 0, MSR_X2APIC(APIC_REG_EOI), 0));
    assert_true(apic_write_msr(fixture, 0, 0x83f, 0x61)); /* SELF IPI */
    assert_int_equal(apic_acknowledge(fixture, 0), 0x61);
}

/* ---- pins ---- */

static void set_pin(struct apic_fixture *fixture, unsigned pin, bool level)
{
    pthread_mutex_lock(&fixture->apic_bus.lock);
    lapic_set_pin(&fixture->lapics[0], pin, level);
    pthread_mutex_unlock(&fixture->apic_bus.lock);
}

static void edges_at_a_pin_do_what_its_entry_says(void **state)
{
    struct apic_fixture *fixture = *state;

    set_pin(fixture, 1, true);
    assert_int_equal(fixture->events[0][IRQ_EVENT_NMI], 1); /* virtual wire */
    set_pin(fixture, 1, true);
    assert_int_equal(fixture->events[0][IRQ_EVENT_NMI], 1);
    set_pin(fixture, 1, false);
    apic_write(fixture, 0, APIC_REG_LVT_LINT1, 0x10400);
    set_pin(fixture, 1, true);
    assert_int_equal(fixture->events[0][IRQ_EVENT_NMI], 1); /* masked */
    set_pin(fixture, 1, false);
    apic_write(fixture, 0, APIC_REG_LVT_LINT1, 0x45);
    set_pin(fixture, 1, true);
    assert_int_equal(apic_acknowledge(fixture, 0), 0x45);
    apic_write(fixture, 0, APIC_REG_EOI, 0);
    assert_int_equal(apic_acknowledge(fixture, 0), -1);
}

static void level_at_a_pin_requests_until_it_is_down(void **state)
{
    struct apic_fixture *fixture = *state;

    apic_write(fixture, 0, APIC_REG_LVT_LINT0, 0x8045);
    set_pin(fixture, 0, true);
    assert_int_equal(apic_read(fixture, 0, APIC_REG_LVT_LINT0), 0xc045);
    assert_int_equal(apic_read(fixture, 0, APIC_REG_TMR + 0x20), 1u << 5);
    assert_int_equal(apic_acknowledge(fixture, 0), 0x45);
    assert_int_equal(apic_acknowledge(fixture, 0), -1);
    apic_write(fixture, 0, APIC_REG_EOI, 0);
    assert_int_equal(apic_acknowledge(fixture, 0), 0x45);
    set_pin(fixture, 0, false);
    apic_write(fixture, 0, APIC_REG_EOI, 0);
    assert_int_equal(apic_acknowledge(fixture, 0), -1);
    assert_int_equal(apic_read(fixture, 0, APIC_REG_LVT_LINT0), 0x8045);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        APIC_TEST(has_its_power_on_values),
        APIC_TEST(first_processor_starts_in_virtual_wire_mode),
        APIC_TEST(keeps_only_writable_bits),
        APIC_TEST(answers_parts_of_a_register),
        APIC_TEST(takes_the_highest_vector_first),
        APIC_TEST(same_class_waits_and_higher_class_nests),
        APIC_TEST(task_priority_holds_back_its_class),
        APIC_TEST(cr8_is_the_class_of_the_task_priority),
        APIC_TEST(requests_of_one_vector_are_one),
        APIC_TEST(disabled_by_software_takes_nothing_and_masks_its_table),
        APIC_TEST(illegal_vectors_are_errors),
        APIC_TEST(reserved_registers_are_errors_in_the_page),
        APIC_TEST(first_error_interrupts),
        APIC_TEST(illegal_error_vector_ends),
        APIC_TEST(page_moves_with_its_base),
        APIC_TEST(base_refuses_reserved_bits),
        APIC_TEST(modes_follow_each_other_as_allowed),
        APIC_TEST(off_answers_nothing_and_forgets),
        APIC_TEST(x2apic_has_msrs_in_place_of_the_page),
        APIC_TEST(x2apic_refuses_what_it_lacks),
        APIC_TEST(x2apic_refuses_reserved_bits),
        APIC_TEST(x2apic_keeps_what_xapic_had),
        APIC_TEST(edges_at_a_pin_do_what_its_entry_says),
        APIC_TEST(level_at_a_pin_requests_until_it_is_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
