/* SPDX-License-Identifier: Apache-2.0 */
/* The pair of 8259; see pic_private.h. */
#include "device/pic_private.h"

#include "x86/layout.h"

#define CASCADE_BIT (1u << LAYOUT_IRQ_CASCADE)
#define SPURIOUS_PIN 7

/* Initialization command words. */
#define WORD1 0x10 /* in a write to the command port */
#define WORD1_NEEDS_WORD4 0x01
#define WORD1_SINGLE 0x02
#define WORD2_BASE 0xf8
#define WORD4_AUTOMATIC_END 0x02
#define WORD4_SPECIAL_NESTING 0x10

/* Operation command word 3. */
#define OPERATION3 0x08 /* in a write to the command port; else it is word 2 */
#define OPERATION3_READ_IN_SERVICE 0x01
#define OPERATION3_SELECT_READ 0x02
#define OPERATION3_POLL 0x04
#define OPERATION3_SPECIAL_MASK 0x20
#define OPERATION3_SET_SPECIAL_MASK 0x40

/* Operation command word 2, bits 7 to 5. */
enum {
    STOP_AUTOMATIC_ROTATION = 0,
    END = 1,
    END_OF_PIN = 3,
    START_AUTOMATIC_ROTATION = 4,
    END_AND_ROTATE = 5,
    SET_LOWEST_PIN = 6,
    END_OF_PIN_AND_ROTATE = 7,
};

#define POLL_REQUESTED 0x80

/* Lines that ELCR cannot make level-triggered: timer, keyboard, cascade; clock, FPU. */
#define MASTER_EDGE_LINES 0x07
#define SLAVE_EDGE_LINES 0x21

/* ---- one chip
 * -------------------------------------------------------------------------- */

/* The highest-priority pin of a set that is not empty. */
static unsigned highest_pin(const struct pic_chip *chip, unsigned pins)
{
    unsigned turned = (pins | pins << PIC_PINS) >> chip->first;

    return ((unsigned)__builtin_ctz(turned) + chip->first) % PIC_PINS;
}

/* 0 is the highest. */
static unsigned rank(const struct pic_chip *chip, unsigned pins)
{
    return pins == 0 ? PIC_PINS
                     : (highest_pin(chip, pins) + PIC_PINS - chip->first) % PIC_PINS;
}

/* True if a pin asks that no pin in service keeps waiting. */
static bool chip_requests(const struct pic_chip *chip)
{
    unsigned in_service = chip->in_service;

    if (chip->special_mask)
        in_service &= (unsigned)~chip->masked;
    if (chip->special_nesting) /* the second chip knows its own priorities */
        in_service &= (unsigned)~chip->level_fixed;
    return rank(chip, chip->requested & (unsigned)~chip->masked) < rank(chip, in_service);
}

static void chip_set_input(struct pic_chip *chip, unsigned pin, bool level)
{
    uint8_t bit = (uint8_t)(1u << pin);
    bool edge = level && (chip->inputs & bit) == 0;

    chip->inputs = (uint8_t)(level ? chip->inputs | bit : chip->inputs & ~bit);
    if (((chip->level_pins | chip->level_fixed) & bit) != 0)
        chip->requested =
            (uint8_t)(level ? chip->requested | bit : chip->requested & ~bit);
    else if (edge)
        chip->requested |= bit;
}

static void chip_end(struct pic_chip *chip, unsigned pin, bool rotate)
{
    chip->in_service &= (uint8_t) ~(1u << pin);
    if (rotate)
        chip->first = (uint8_t)((pin + 1) % PIC_PINS);
}

/* Takes the highest request into service; the pin. */
static unsigned chip_acknowledge(struct pic_chip *chip)
{
    unsigned pin;

    if (!chip_requests(chip))
        return SPURIOUS_PIN;
    pin = highest_pin(chip, chip->requested & (unsigned)~chip->masked);
    if (((chip->level_pins | chip->level_fixed) >> pin & 1) == 0)
        chip->requested &= (uint8_t) ~(1u << pin);
    chip->in_service |= (uint8_t)(1u << pin);
    if (chip->automatic_end)
        chip_end(chip, pin, chip->automatic_rotation);
    return pin;
}

/* Back to where word 1 begins; pins need a new edge. */
static void chip_begin(struct pic_chip *chip)
{
    chip->requested = chip->inputs & (chip->level_pins | chip->level_fixed);
    chip->in_service = 0;
    chip->masked = 0;
    chip->first = 0;
    chip->reads_in_service = false;
    chip->polled = false;
    chip->automatic_end = false;
    chip->automatic_rotation = false;
    chip->special_mask = false;
    chip->special_nesting = false;
}

/* ---- the pair
 * -------------------------------------------------------------------------- */

static void update(struct pic *pic)
{
    bool level;

    chip_set_input(&pic->master, LAYOUT_IRQ_CASCADE, chip_requests(&pic->slave));
    level = chip_requests(&pic->master);
    if (level == pic->output_level)
        return;
    pic->output_level = level;
    irq_line_set(&pic->output, level);
}

void pic_set_line(struct pic *pic, unsigned line, bool level)
{
    chip_set_input(line < PIC_PINS ? &pic->master : &pic->slave, line % PIC_PINS, level);
    update(pic);
}

uint8_t pic_acknowledge(struct pic *pic)
{
    unsigned pin = chip_acknowledge(&pic->master);
    uint8_t vector = (uint8_t)(pic->master.base + pin);

    if (pin == LAYOUT_IRQ_CASCADE)
        vector = (uint8_t)(pic->slave.base + chip_acknowledge(&pic->slave));
    update(pic);
    return vector;
}

/* No firmware runs before most guests, so they find what one leaves (IBM PC AT Technical
 * Reference, section 5): vectors for the real-mode table, and the lines of devices closed
 * until a driver is there. The cascade is open, and so are lines 10 and 11, which no ISA
 * device has: a guest that raises one wants it. */
static const struct {
    uint8_t base;
    uint8_t masked;
} as_firmware_leaves[] = {{0x08, 0xfb}, {0x70, 0xf3}};

void pic_reset(struct pic *pic)
{
    struct pic_chip *const chips[] = {&pic->master, &pic->slave};

    for (int i = 0; i < 2; i++) {
        chips[i]->inputs = 0;
        chips[i]->level_pins = 0;
        chips[i]->next_word = 0;
        chip_begin(chips[i]);
        chips[i]->base = as_firmware_leaves[i].base;
        chips[i]->masked = as_firmware_leaves[i].masked;
    }
    update(pic);
}

void pic_init(struct pic *pic, pthread_mutex_t *lock, struct irq_line output)
{
    *pic = (struct pic){
        .lock = lock,
        .output = output,
        .master = {.pic = pic, .level_fixed = CASCADE_BIT},
        .slave = {.pic = pic},
    };
    pic_reset(pic);
}

/* ---- commands
 * -------------------------------------------------------------------------- */

static void write_operation2(struct pic_chip *chip, uint8_t value)
{
    unsigned pin = value & 7;

    switch (value >> 5) {
    case STOP_AUTOMATIC_ROTATION:
    case START_AUTOMATIC_ROTATION:
        chip->automatic_rotation = value >> 5 == START_AUTOMATIC_ROTATION;
        return;
    case END:
    case END_AND_ROTATE:
        if (chip->in_service != 0)
            chip_end(chip, highest_pin(chip, chip->in_service),
                     value >> 5 == END_AND_ROTATE);
        return;
    case END_OF_PIN:
    case END_OF_PIN_AND_ROTATE:
        chip_end(chip, pin, value >> 5 == END_OF_PIN_AND_ROTATE);
        return;
    case SET_LOWEST_PIN:
        chip->first = (uint8_t)((pin + 1) % PIC_PINS);
        return;
    default: /* no operation */
        return;
    }
}

static void write_operation3(struct pic_chip *chip, uint8_t value)
{
    if ((value & OPERATION3_POLL) != 0)
        chip->polled = true;
    if ((value & OPERATION3_SELECT_READ) != 0)
        chip->reads_in_service = (value & OPERATION3_READ_IN_SERVICE) != 0;
    if ((value & OPERATION3_SET_SPECIAL_MASK) != 0)
        chip->special_mask = (value & OPERATION3_SPECIAL_MASK) != 0;
}

static void write_command(struct pic_chip *chip, uint8_t value)
{
    if ((value & WORD1) != 0) {
        chip_begin(chip);
        chip->next_word = 2;
        chip->wants_word3 = (value & WORD1_SINGLE) == 0;
        chip->wants_word4 = (value & WORD1_NEEDS_WORD4) != 0;
    } else if ((value & OPERATION3) != 0) {
        write_operation3(chip, value);
    } else {
        write_operation2(chip, value);
    }
}

/* The data port: initialization words 2 to 4, then the mask. */
static void write_data(struct pic_chip *chip, uint8_t value)
{
    switch (chip->next_word) {
    case 2:
        chip->base = value & WORD2_BASE;
        chip->next_word = chip->wants_word3 ? 3 : chip->wants_word4 ? 4 : 0;
        return;
    case 3: /* says how the chips are wired, which cannot change here */
        chip->next_word = chip->wants_word4 ? 4 : 0;
        return;
    case 4:
        chip->automatic_end = (value & WORD4_AUTOMATIC_END) != 0;
        chip->special_nesting = (value & WORD4_SPECIAL_NESTING) != 0;
        chip->next_word = 0;
        return;
    default:
        chip->masked = value;
        return;
    }
}

static uint8_t poll(struct pic_chip *chip)
{
    chip->polled = false;
    if (!chip_requests(chip))
        return 0;
    return (uint8_t)(POLL_REQUESTED | chip_acknowledge(chip));
}

/* ---- ports
 * ----------------------------------------------------------------------------- */

static uint64_t chip_read(void *device, uint64_t offset, unsigned size)
{
    struct pic_chip *chip = device;
    uint8_t value;

    (void)size;
    pthread_mutex_lock(chip->pic->lock);
    if (chip->polled)
        value = poll(chip);
    else if (offset == 1)
        value = chip->masked;
    else
        value = chip->reads_in_service ? chip->in_service : chip->requested;
    update(chip->pic);
    pthread_mutex_unlock(chip->pic->lock);
    return value;
}

static void chip_write(void *device, uint64_t offset, unsigned size, uint64_t value)
{
    struct pic_chip *chip = device;

    (void)size;
    pthread_mutex_lock(chip->pic->lock);
    if (offset == 0)
        write_command(chip, (uint8_t)value);
    else
        write_data(chip, (uint8_t)value);
    update(chip->pic);
    pthread_mutex_unlock(chip->pic->lock);
}

static uint64_t edge_level_read(void *device, uint64_t offset, unsigned size)
{
    struct pic *pic = device;
    uint8_t value;

    (void)size;
    pthread_mutex_lock(pic->lock);
    value = offset == 0 ? pic->master.level_pins : pic->slave.level_pins;
    pthread_mutex_unlock(pic->lock);
    return value;
}

static void edge_level_write(void *device, uint64_t offset, unsigned size, uint64_t value)
{
    struct pic *pic = device;
    struct pic_chip *chip = offset == 0 ? &pic->master : &pic->slave;
    unsigned edge_lines = offset == 0 ? MASTER_EDGE_LINES : SLAVE_EDGE_LINES;

    (void)size;
    pthread_mutex_lock(pic->lock);
    chip->level_pins = (uint8_t)(value & ~edge_lines);
    /* Level-triggered pins request as long as they are up, and no longer. */
    chip->requested = (uint8_t)((chip->requested & ~chip->level_pins) |
                                (chip->inputs & chip->level_pins));
    update(pic);
    pthread_mutex_unlock(pic->lock);
}

static const struct bus_ops chip_ops = {
    .name = "8259",
    .width_bytes = 1,
    .read = chip_read,
    .write = chip_write,
};

static const struct bus_ops edge_level_ops = {
    .name = "8259 edge/level registers",
    .width_bytes = 1,
    .read = edge_level_read,
    .write = edge_level_write,
};

int pic_attach(struct pic *pic, struct bus *ports, struct error *err)
{
    int code = bus_attach(ports, LAYOUT_PORT_PIC_MASTER, 2, &chip_ops, &pic->master, err);

    if (code == 0)
        code = bus_attach(ports, LAYOUT_PORT_PIC_SLAVE, 2, &chip_ops, &pic->slave, err);
    if (code == 0)
        code =
            bus_attach(ports, LAYOUT_PORT_PIC_EDGE_LEVEL, 2, &edge_level_ops, pic, err);
    return code;
}
