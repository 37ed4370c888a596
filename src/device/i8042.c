/* SPDX-License-Identifier: Apache-2.0 */
/* The keyboard controller without a keyboard, and port 0x92; see i8042_private.h. */
#include "device/i8042_private.h"

#include "x86/layout.h"

#define PORT_DATA LAYOUT_PORT_I8042
#define PORT_COMMAND (LAYOUT_PORT_I8042 + 4)
#define PORT_SYSTEM_CONTROL_A 0x92

/* Status register. */
#define STATUS_OUTPUT_FULL 0x01
#define STATUS_SELF_TEST_PASSED 0x04
#define STATUS_LAST_WAS_COMMAND 0x08
#define STATUS_NOT_LOCKED 0x10 /* the key lock of the case */
#define STATUS_TIMEOUT 0x40
#define STATUS_AT_RESET (STATUS_SELF_TEST_PASSED | STATUS_NOT_LOCKED)

/* Configuration ("controller command") byte. */
#define CONFIGURATION_KEYBOARD_INTERRUPT 0x01
#define CONFIGURATION_SELF_TEST_PASSED 0x04
#define CONFIGURATION_KEYBOARD_DISABLED 0x10
#define CONFIGURATION_MOUSE_DISABLED 0x20
#define CONFIGURATION_TRANSLATE 0x40
#define CONFIGURATION_AT_RESET                                                           \
    (CONFIGURATION_SELF_TEST_PASSED | CONFIGURATION_KEYBOARD_DISABLED |                  \
     CONFIGURATION_MOUSE_DISABLED | CONFIGURATION_TRANSLATE)

/* Output port. The reset line is active low. */
#define OUTPUT_NO_RESET 0x01
#define OUTPUT_A20 0x02
#define OUTPUTS_AT_RESET 0xcf /* all lines idle, buffers empty, A20 open */

/* Commands written to port 0x64. */
enum i8042_command {
    COMMAND_READ_CONFIGURATION = 0x20,
    COMMAND_WRITE_CONFIGURATION = 0x60,
    COMMAND_DISABLE_MOUSE = 0xa7,
    COMMAND_ENABLE_MOUSE = 0xa8,
    COMMAND_TEST_MOUSE_PORT = 0xa9,
    COMMAND_SELF_TEST = 0xaa,
    COMMAND_TEST_KEYBOARD_PORT = 0xab,
    COMMAND_DISABLE_KEYBOARD = 0xad,
    COMMAND_ENABLE_KEYBOARD = 0xae,
    COMMAND_READ_INPUTS = 0xc0,
    COMMAND_READ_OUTPUTS = 0xd0,
    COMMAND_WRITE_OUTPUTS = 0xd1,
    COMMAND_ECHO_KEYBOARD = 0xd2,
    COMMAND_ECHO_MOUSE = 0xd3,
    COMMAND_WRITE_MOUSE = 0xd4,
    COMMAND_PULSE_FIRST = 0xf0, /* 0xf0 to 0xff: a 0 in bits 3 to 0 pulses that output */
};

#define ANSWER_SELF_TEST_PASSED 0x55
#define ANSWER_CLOCK_STUCK 0x01 /* port test: nothing drives the clock line */
#define ANSWER_NO_INPUTS 0x80   /* input port: keyboard not inhibited */
#define ANSWER_RESEND 0xfe      /* with STATUS_TIMEOUT: the device did not answer */

/* System control port A. */
#define CONTROL_A_RESET 0x01
#define CONTROL_A_A20 0x02

static void i8042_update_irq(struct i8042 *i8042)
{
    bool level = (i8042->status & STATUS_OUTPUT_FULL) != 0 &&
                 (i8042->configuration & CONFIGURATION_KEYBOARD_INTERRUPT) != 0;

    if (level == i8042->irq_level)
        return;
    i8042->irq_level = level;
    irq_line_set(&i8042->irq, level);
}

static void i8042_answer(struct i8042 *i8042, uint8_t answer)
{
    i8042->answer = answer;
    i8042->status |= STATUS_OUTPUT_FULL;
}

static uint64_t i8042_read_data(void *device, uint64_t offset, unsigned size)
{
    struct i8042 *i8042 = device;
    uint8_t value;

    (void)offset;
    (void)size;
    pthread_mutex_lock(&i8042->lock);
    value = i8042->answer;
    i8042->status &= (uint8_t) ~(STATUS_OUTPUT_FULL | STATUS_TIMEOUT);
    i8042_update_irq(i8042);
    pthread_mutex_unlock(&i8042->lock);
    return value;
}

static uint64_t i8042_read_status(void *device, uint64_t offset, unsigned size)
{
    struct i8042 *i8042 = device;
    uint8_t value;

    (void)offset;
    (void)size;
    pthread_mutex_lock(&i8042->lock);
    value = i8042->status;
    pthread_mutex_unlock(&i8042->lock);
    return value;
}

/* A byte for a device that is not there. */
static void i8042_write_to_nobody(struct i8042 *i8042)
{
    i8042_answer(i8042, ANSWER_RESEND);
    i8042->status |= STATUS_TIMEOUT;
}

/* The byte written to port 0x60 belongs to the pending command, or to the keyboard. True
 * if it resets the machine. */
static bool i8042_take_data(struct i8042 *i8042, uint8_t value)
{
    uint8_t command = i8042->pending_command;

    i8042->pending_command = 0;
    switch (command) {
    case COMMAND_WRITE_CONFIGURATION:
        i8042->configuration = value;
        return false;
    case COMMAND_WRITE_OUTPUTS:
        i8042->outputs = value | OUTPUT_NO_RESET;
        return !(value & OUTPUT_NO_RESET);
    case COMMAND_ECHO_KEYBOARD:
    case COMMAND_ECHO_MOUSE: /* as from the keyboard: there is no mouse port */
        i8042_answer(i8042, value);
        return false;
    default:
        i8042_write_to_nobody(i8042);
        return false;
    }
}

static void i8042_switch_port(struct i8042 *i8042, uint8_t disabled_bit, bool enable)
{
    if (enable)
        i8042->configuration &= (uint8_t)~disabled_bit;
    else
        i8042->configuration |= disabled_bit;
}

/* True if the command resets the machine. */
static bool i8042_take_command(struct i8042 *i8042, uint8_t command)
{
    i8042->pending_command = 0;
    switch (command) {
    case COMMAND_READ_CONFIGURATION:
        i8042_answer(i8042, i8042->configuration);
        break;
    case COMMAND_WRITE_CONFIGURATION:
    case COMMAND_WRITE_OUTPUTS:
    case COMMAND_ECHO_KEYBOARD:
    case COMMAND_ECHO_MOUSE:
    case COMMAND_WRITE_MOUSE:
        i8042->pending_command = command;
        break;
    case COMMAND_DISABLE_MOUSE:
    case COMMAND_ENABLE_MOUSE:
        i8042_switch_port(i8042, CONFIGURATION_MOUSE_DISABLED,
                          command == COMMAND_ENABLE_MOUSE);
        break;
    case COMMAND_DISABLE_KEYBOARD:
    case COMMAND_ENABLE_KEYBOARD:
        i8042_switch_port(i8042, CONFIGURATION_KEYBOARD_DISABLED,
                          command == COMMAND_ENABLE_KEYBOARD);
        break;
    case COMMAND_TEST_MOUSE_PORT:
    case COMMAND_TEST_KEYBOARD_PORT:
        i8042_answer(i8042, ANSWER_CLOCK_STUCK);
        break;
    case COMMAND_SELF_TEST:
        i8042_answer(i8042, ANSWER_SELF_TEST_PASSED);
        break;
    case COMMAND_READ_INPUTS:
        i8042_answer(i8042, ANSWER_NO_INPUTS);
        break;
    case COMMAND_READ_OUTPUTS:
        i8042_answer(i8042, i8042->outputs);
        break;
    default:
        return command >= COMMAND_PULSE_FIRST && !(command & OUTPUT_NO_RESET);
    }
    return false;
}

static void i8042_write(struct i8042 *i8042, uint8_t value, bool is_command)
{
    bool reset;

    pthread_mutex_lock(&i8042->lock);
    if (is_command) {
        i8042->status |= STATUS_LAST_WAS_COMMAND;
        reset = i8042_take_command(i8042, value);
    } else {
        i8042->status &= (uint8_t)~STATUS_LAST_WAS_COMMAND;
        reset = i8042_take_data(i8042, value);
    }
    i8042_update_irq(i8042);
    pthread_mutex_unlock(&i8042->lock);
    if (reset)
        i8042->requests.request(i8042->requests.context, MACHINE_RESET);
}

static void i8042_write_data(void *device, uint64_t offset, unsigned size, uint64_t value)
{
    (void)offset;
    (void)size;
    i8042_write(device, (uint8_t)value, false);
}

static void i8042_write_command(void *device, uint64_t offset, unsigned size,
                                uint64_t value)
{
    (void)offset;
    (void)size;
    i8042_write(device, (uint8_t)value, true);
}

static uint64_t i8042_read_control_a(void *device, uint64_t offset, unsigned size)
{
    struct i8042 *i8042 = device;
    uint8_t value;

    (void)offset;
    (void)size;
    pthread_mutex_lock(&i8042->lock);
    value = i8042->outputs & OUTPUT_A20 ? CONTROL_A_A20 : 0;
    pthread_mutex_unlock(&i8042->lock);
    return value;
}

static void i8042_write_control_a(void *device, uint64_t offset, unsigned size,
                                  uint64_t value)
{
    struct i8042 *i8042 = device;

    (void)offset;
    (void)size;
    pthread_mutex_lock(&i8042->lock);
    if (value & CONTROL_A_A20)
        i8042->outputs |= OUTPUT_A20;
    else
        i8042->outputs &= (uint8_t)~OUTPUT_A20;
    pthread_mutex_unlock(&i8042->lock);
    if (value & CONTROL_A_RESET)
        i8042->requests.request(i8042->requests.context, MACHINE_RESET);
}

static const struct bus_ops i8042_data_ops = {
    .name = "keyboard controller",
    .width_bytes = 1,
    .read = i8042_read_data,
    .write = i8042_write_data,
};

static const struct bus_ops i8042_command_ops = {
    .name = "keyboard controller",
    .width_bytes = 1,
    .read = i8042_read_status,
    .write = i8042_write_command,
};

static const struct bus_ops i8042_control_a_ops = {
    .name = "system control port A",
    .width_bytes = 1,
    .read = i8042_read_control_a,
    .write = i8042_write_control_a,
};

void i8042_init(struct i8042 *i8042, struct irq_line irq,
                const struct machine_requests *requests)
{
    *i8042 = (struct i8042){
        .irq = irq,
        .requests = *requests,
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .configuration = CONFIGURATION_AT_RESET,
        .outputs = OUTPUTS_AT_RESET,
        .status = STATUS_AT_RESET,
    };
}

int i8042_attach(struct i8042 *i8042, struct bus *ports, struct error *err)
{
    int code = bus_attach(ports, PORT_DATA, 1, &i8042_data_ops, i8042, err);

    if (code == 0)
        code = bus_attach(ports, PORT_COMMAND, 1, &i8042_command_ops, i8042, err);
    if (code == 0)
        code =
            bus_attach(ports, PORT_SYSTEM_CONTROL_A, 1, &i8042_control_a_ops, i8042, err);
    return code;
}

void i8042_reset(struct i8042 *i8042)
{
    pthread_mutex_lock(&i8042->lock);
    i8042->configuration = CONFIGURATION_AT_RESET;
    i8042->outputs = OUTPUTS_AT_RESET;
    i8042->status = STATUS_AT_RESET;
    i8042->answer = 0;
    i8042->pending_command = 0;
    i8042_update_irq(i8042);
    pthread_mutex_unlock(&i8042->lock);
}
