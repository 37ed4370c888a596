/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two 8259 of a PC, the second behind line 2 of the first, with the registers that
 * make lines level-triggered (ELCR). Sources: Intel 8259A data sheet (231468); Intel
 * 82371AB (PIIX4) data sheet, section 4.2.5 for ELCR.
 *
 * Everything the guest can set is there but the modes for an 8080 and for buffers.
 */
#ifndef HUSK_DEVICE_PIC_PRIVATE_H
#define HUSK_DEVICE_PIC_PRIVATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "device/bus.h"

#define PIC_PINS 8 /* of each chip */

struct pic_chip {
    struct pic *pic;
    uint8_t inputs;    /* levels of the pins */
    uint8_t requested; /* IRR */
    uint8_t in_service;
    uint8_t masked;
    uint8_t level_pins;  /* ELCR; those not edge-triggered */
    uint8_t level_fixed; /* the pin of the other chip follows its output */
    uint8_t base;        /* vector of pin 0 */
    uint8_t first;       /* the pin of the highest priority */
    uint8_t next_word;   /* 2 to 4: an initialization word is awaited; else 0 */
    bool wants_word3;
    bool wants_word4;
    bool reads_in_service; /* what the command port reads */
    bool polled;           /* the next read acknowledges */
    bool automatic_end;
    bool automatic_rotation;
    bool special_mask;
    bool special_nesting;
};

struct pic {
    pthread_mutex_t *lock;  /* guards what follows; of all interrupt controllers */
    struct irq_line output; /* called with the lock held */
    bool output_level;
    struct pic_chip master;
    struct pic_chip slave;
};

void pic_init(struct pic *pic, pthread_mutex_t *lock, struct irq_line output);
int pic_attach(struct pic *pic, struct bus *ports, struct error *err) MUST_CHECK;

/* With the lock held. */
void pic_reset(struct pic *pic);
void pic_set_line(struct pic *pic, unsigned line, bool level); /* 0 to 15, not 2 */
/* The processor's acknowledge cycle: takes the request into service, returns its vector.
 * A request that is gone again is a spurious one of pin 7. */
uint8_t pic_acknowledge(struct pic *pic);

#endif
