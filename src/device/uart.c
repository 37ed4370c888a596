/* SPDX-License-Identifier: Apache-2.0 */
/* The 16550A serial port; see uart_private.h. Section numbers are the data sheet's. */
#include "device/uart_private.h"

#include "base/bytes.h"

/* Register offsets (table II). With the divisor latch open, 0 and 1 are the divisor. */
enum uart_register {
    UART_DATA = 0,
    UART_INTERRUPT_ENABLE = 1,
    UART_INTERRUPT_IDENTITY = 2, /* read */
    UART_FIFO_CONTROL = 2,       /* write */
    UART_LINE_CONTROL = 3,
    UART_MODEM_CONTROL = 4,
    UART_LINE_STATUS = 5,
    UART_MODEM_STATUS = 6,
    UART_SCRATCH = 7,
};

/* Interrupt enable (8.7). */
#define ENABLE_RECEIVED 0x01
#define ENABLE_TRANSMITTED 0x02
#define ENABLE_LINE_STATUS 0x04
#define ENABLE_MODEM_STATUS 0x08
#define ENABLE_BITS 0x0f

/* Interrupt identity (8.6, table IV), highest priority first. */
#define IDENTITY_LINE_STATUS 0x06
#define IDENTITY_RECEIVED 0x04
#define IDENTITY_TIMEOUT 0x0c
#define IDENTITY_TRANSMITTED 0x02
#define IDENTITY_MODEM_STATUS 0x00
#define IDENTITY_NONE 0x01
#define IDENTITY_FIFOS_ENABLED 0xc0

/* FIFO control (8.5). */
#define FIFO_ENABLE 0x01
#define FIFO_CLEAR_RECEIVED 0x02
#define FIFO_KEPT_BITS 0xc9 /* enable, DMA mode, trigger level */
#define FIFO_TRIGGER_SHIFT 6

/* Line control (8.1). */
#define LINE_DIVISOR_LATCH 0x80

/* Modem control (8.8). */
#define MODEM_DTR 0x01
#define MODEM_RTS 0x02
#define MODEM_OUT1 0x04
#define MODEM_OUT2 0x08 /* on a PC it connects the interrupt line */
#define MODEM_LOOPBACK 0x10
#define MODEM_BITS 0x1f

/* Line status (8.4). */
#define STATUS_DATA_READY 0x01
#define STATUS_OVERRUN 0x02
#define STATUS_BREAK 0x10
#define STATUS_TRANSMITTER_EMPTY 0x60 /* holding and shift register */
#define STATUS_FIFO_ERROR 0x80

/* Modem status (8.9): inputs in the upper, their changes in the lower four bits. */
#define INPUT_CTS 0x10
#define INPUT_DSR 0x20
#define INPUT_RI 0x40
#define INPUT_DCD 0x80
#define INPUT_CHANGE_SHIFT 4

/* What a PC's firmware leaves: 9600 baud, 115200 / 12. */
#define DIVISOR_9600_BAUD 12

/* So many line status reads in a row, with nothing written between them, and the guest
 * waits for input: no driver reads it more than twice while it sets the port up, and none
 * more than once to send, since the transmitter is always empty. */
#define UART_LISTENER_POLLS 8

static bool uart_fifo_enabled(const struct uart *uart)
{
    return (uart->fifo_control & FIFO_ENABLE) != 0;
}

static bool uart_loops_back(const struct uart *uart)
{
    return (uart->modem_control & MODEM_LOOPBACK) != 0;
}

static unsigned uart_trigger_level(const struct uart *uart)
{
    static const uint8_t levels[] = {1, 4, 8, 14};

    return uart_fifo_enabled(uart) ? levels[uart->fifo_control >> FIFO_TRIGGER_SHIFT] : 1;
}

static unsigned uart_capacity(const struct uart *uart)
{
    return uart_fifo_enabled(uart) ? UART_FIFO_BYTES : 1;
}

static bool uart_guest_listens(const struct uart *uart)
{
    return ((uart->interrupt_enable & ENABLE_RECEIVED) != 0 &&
            (uart->modem_control & MODEM_OUT2) != 0) ||
           uart->status_polls >= UART_LISTENER_POLLS;
}

static unsigned uart_room(const struct uart *uart)
{
    if (uart_loops_back(uart) || !uart_guest_listens(uart))
        return 0;
    return uart_capacity(uart) - uart->received_count;
}

/* The highest-priority interrupt that is enabled and due. */
static uint8_t uart_interrupt_due(const struct uart *uart)
{
    uint8_t enabled = uart->interrupt_enable;

    if ((enabled & ENABLE_LINE_STATUS) && uart->line_errors)
        return IDENTITY_LINE_STATUS;
    if ((enabled & ENABLE_RECEIVED) && uart->received_count > 0) {
        return uart->received_count >= uart_trigger_level(uart) ? IDENTITY_RECEIVED
                                                                : IDENTITY_TIMEOUT;
    }
    if ((enabled & ENABLE_TRANSMITTED) && uart->transmit_interrupt)
        return IDENTITY_TRANSMITTED;
    if ((enabled & ENABLE_MODEM_STATUS) && uart->modem_changes)
        return IDENTITY_MODEM_STATUS;
    return IDENTITY_NONE;
}

static void uart_update_irq(struct uart *uart)
{
    bool level = (uart->modem_control & MODEM_OUT2) != 0 &&
                 uart_interrupt_due(uart) != IDENTITY_NONE;

    if (level == uart->irq_level)
        return;
    uart->irq_level = level;
    irq_line_set(&uart->irq, level);
}

/* Ends a change of state under the lock. True: the caller must call `drained` when it has
 * let the lock go. */
static bool uart_settle(struct uart *uart)
{
    bool wake = uart->sender_waits && uart->received_count == 0 && uart_room(uart) > 0;

    uart_update_irq(uart);
    if (wake)
        uart->sender_waits = false;
    return wake && uart->drained != NULL;
}

/* An error shows in line status when its character has come to the front. */
static void uart_reveal_errors(struct uart *uart)
{
    if (uart->received_count > 0)
        uart->line_errors |= uart->received[uart->received_first].errors;
}

static void uart_receive(struct uart *uart, uint8_t byte, uint8_t errors)
{
    if (uart->received_count == uart_capacity(uart)) {
        uart->line_errors |= STATUS_OVERRUN;
        if (uart_fifo_enabled(uart))
            return; /* the FIFO keeps what it has (8.4, bit 1) */
        uart->received_count = 0;
    }
    uart->received[(uart->received_first + uart->received_count) % UART_FIFO_BYTES] =
        (struct uart_character){.byte = byte, .errors = errors};
    uart->received_count++;
    if (uart->received_count == 1)
        uart_reveal_errors(uart);
}

static uint8_t uart_take_received(struct uart *uart)
{
    uint8_t byte;

    if (uart->received_count == 0)
        return 0;
    byte = uart->received[uart->received_first].byte;
    uart->received_first = (uart->received_first + 1) % UART_FIFO_BYTES;
    uart->received_count--;
    uart_reveal_errors(uart);
    return byte;
}

static uint8_t uart_read_interrupt_identity(struct uart *uart)
{
    uint8_t due = uart_interrupt_due(uart);

    if (due == IDENTITY_TRANSMITTED)
        uart->transmit_interrupt = false; /* reading is the acknowledgement */
    return uart_fifo_enabled(uart) ? (uint8_t)(due | IDENTITY_FIFOS_ENABLED) : due;
}

static bool uart_holds_errors(const struct uart *uart)
{
    for (unsigned i = 0; i < uart->received_count; i++) {
        if (uart->received[(uart->received_first + i) % UART_FIFO_BYTES].errors)
            return true;
    }
    return false;
}

static uint8_t uart_read_line_status(struct uart *uart)
{
    uint8_t status = (uint8_t)(STATUS_TRANSMITTER_EMPTY | uart->line_errors);

    if (uart->received_count > 0)
        status |= STATUS_DATA_READY;
    if (uart_fifo_enabled(uart) && uart_holds_errors(uart))
        status |= STATUS_FIFO_ERROR;
    uart->line_errors = 0;
    if (uart->received_count > 0)
        uart->received[uart->received_first].errors = 0;
    if (uart->status_polls < UART_LISTENER_POLLS)
        uart->status_polls++;
    return status;
}

/* In loopback the four outputs are the four inputs (8.8, bit 4). */
static uint8_t uart_modem_inputs(const struct uart *uart)
{
    uint8_t control = uart->modem_control;

    if (!uart_loops_back(uart))
        return INPUT_CTS | INPUT_DSR | INPUT_DCD;
    return (uint8_t)((control & MODEM_RTS ? INPUT_CTS : 0) |
                     (control & MODEM_DTR ? INPUT_DSR : 0) |
                     (control & MODEM_OUT1 ? INPUT_RI : 0) |
                     (control & MODEM_OUT2 ? INPUT_DCD : 0));
}

static uint8_t uart_read_modem_status(struct uart *uart)
{
    uint8_t status = (uint8_t)(uart_modem_inputs(uart) | uart->modem_changes);

    uart->modem_changes = 0;
    return status;
}

static uint8_t uart_read_register(struct uart *uart, enum uart_register reg)
{
    bool latch = (uart->line_control & LINE_DIVISOR_LATCH) != 0;

    switch (reg) {
    case UART_DATA:
        return latch ? uart->divisor_low : uart_take_received(uart);
    case UART_INTERRUPT_ENABLE:
        return latch ? uart->divisor_high : uart->interrupt_enable;
    case UART_INTERRUPT_IDENTITY:
        return uart_read_interrupt_identity(uart);
    case UART_LINE_CONTROL:
        return uart->line_control;
    case UART_MODEM_CONTROL:
        return uart->modem_control;
    case UART_LINE_STATUS:
        return uart_read_line_status(uart);
    case UART_MODEM_STATUS:
        return uart_read_modem_status(uart);
    case UART_SCRATCH:
        return uart->scratch;
    }
    return 0xff;
}

static uint64_t uart_read(void *device, uint64_t offset, unsigned size)
{
    struct uart *uart = device;
    uint8_t value;
    bool wake;

    (void)size;
    pthread_mutex_lock(&uart->lock);
    value = uart_read_register(uart, (enum uart_register)offset);
    wake = uart_settle(uart);
    pthread_mutex_unlock(&uart->lock);
    if (wake)
        uart->drained(uart->drained_context);
    return value;
}

/* True if the byte leaves the machine. */
static bool uart_transmit(struct uart *uart, uint8_t byte)
{
    uart->transmit_interrupt = true; /* sent in no time: empty again */
    if (!uart_loops_back(uart))
        return uart->connected;
    uart_receive(uart, byte, 0);
    return false;
}

static void uart_write_interrupt_enable(struct uart *uart, uint8_t value)
{
    /* Enabling the interrupt while the transmitter is empty makes it due again, even if
     * it had been acknowledged; drivers start sending that way. */
    if ((value & ENABLE_TRANSMITTED) && !(uart->interrupt_enable & ENABLE_TRANSMITTED))
        uart->transmit_interrupt = true;
    uart->interrupt_enable = value & ENABLE_BITS;
}

static void uart_write_fifo_control(struct uart *uart, uint8_t value)
{
    bool enable = (value & FIFO_ENABLE) != 0;

    /* Switching the FIFOs clears them; the other bits count only with the enable bit. */
    if (enable != uart_fifo_enabled(uart) || (enable && (value & FIFO_CLEAR_RECEIVED)))
        uart->received_count = 0;
    uart->fifo_control = enable ? value & FIFO_KEPT_BITS : 0;
}

static void uart_write_modem_control(struct uart *uart, uint8_t value)
{
    uint8_t before = uart_modem_inputs(uart);
    uint8_t changed;

    uart->modem_control = value & MODEM_BITS;
    changed = (uint8_t)(before ^ uart_modem_inputs(uart));
    if (!(before & INPUT_RI))
        changed &= (uint8_t)~INPUT_RI; /* only the end of a ring counts (8.9, bit 2) */
    uart->modem_changes |= (uint8_t)(changed >> INPUT_CHANGE_SHIFT);
}

/* True if `value` is a character that leaves the machine. */
static bool uart_write_register(struct uart *uart, enum uart_register reg, uint8_t value)
{
    bool latch = (uart->line_control & LINE_DIVISOR_LATCH) != 0;

    uart->status_polls = 0;
    switch (reg) {
    case UART_DATA:
        if (!latch)
            return uart_transmit(uart, value);
        uart->divisor_low = value;
        break;
    case UART_INTERRUPT_ENABLE:
        if (latch)
            uart->divisor_high = value;
        else
            uart_write_interrupt_enable(uart, value);
        break;
    case UART_FIFO_CONTROL:
        uart_write_fifo_control(uart, value);
        break;
    case UART_LINE_CONTROL:
        uart->line_control = value;
        break;
    case UART_MODEM_CONTROL:
        uart_write_modem_control(uart, value);
        break;
    case UART_LINE_STATUS: /* for factory tests (8.4) */
    case UART_MODEM_STATUS:
        break;
    case UART_SCRATCH:
        uart->scratch = value;
        break;
    }
    return false;
}

static void uart_write(void *device, uint64_t offset, unsigned size, uint64_t value)
{
    struct uart *uart = device;
    uint8_t byte = (uint8_t)value;
    bool leaves;
    bool wake;

    (void)size;
    pthread_mutex_lock(&uart->lock);
    leaves = uart_write_register(uart, (enum uart_register)offset, byte);
    wake = uart_settle(uart);
    pthread_mutex_unlock(&uart->lock);
    if (leaves) {
        atomic_fetch_add_explicit(&uart->bytes_out, 1, memory_order_relaxed);
        uart->output.write(uart->output.context, &byte, 1);
    }
    if (wake)
        uart->drained(uart->drained_context);
}

static const struct bus_ops uart_ops = {
    .name = "serial port",
    .width_bytes = 1,
    .read = uart_read,
    .write = uart_write,
};

void uart_init(struct uart *uart, struct irq_line irq, const struct byte_sink *output)
{
    *uart = (struct uart){
        .irq = irq,
        .connected = output != NULL,
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .divisor_low = DIVISOR_9600_BAUD,
    };
    if (output)
        uart->output = *output;
}

int uart_attach(struct uart *uart, struct bus *ports, uint16_t port, struct error *err)
{
    return bus_attach(ports, port, UART_PORTS, &uart_ops, uart, err);
}

void uart_reset(struct uart *uart)
{
    pthread_mutex_lock(&uart->lock);
    uart->interrupt_enable = 0;
    uart->fifo_control = 0;
    uart->line_control = 0;
    uart->modem_control = 0;
    uart->scratch = 0;
    uart->divisor_low = DIVISOR_9600_BAUD;
    uart->divisor_high = 0;
    uart->line_errors = 0;
    uart->modem_changes = 0;
    uart->transmit_interrupt = false;
    uart->received_count = 0;
    uart->status_polls = 0;
    uart_update_irq(uart);
    pthread_mutex_unlock(&uart->lock);
}

size_t uart_input(struct uart *uart, const uint8_t *bytes, size_t size)
{
    size_t taken;

    if (!uart->connected)
        return size;
    pthread_mutex_lock(&uart->lock);
    taken = (size_t)min_u64(size, uart_room(uart));
    for (size_t i = 0; i < taken; i++)
        uart_receive(uart, bytes[i], 0);
    if (taken < size)
        uart->sender_waits = true;
    uart_update_irq(uart);
    pthread_mutex_unlock(&uart->lock);
    atomic_fetch_add_explicit(&uart->bytes_in, taken, memory_order_relaxed);
    return taken;
}

void uart_input_break(struct uart *uart)
{
    if (!uart->connected)
        return;
    pthread_mutex_lock(&uart->lock);
    if (!uart_loops_back(uart))
        uart_receive(uart, 0, STATUS_BREAK);
    uart_update_irq(uart);
    pthread_mutex_unlock(&uart->lock);
}
