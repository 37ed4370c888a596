/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The oracle: this machine's processor, in user mode.
 *
 * Code at WINDOW_CODE is entered by an assembly trampoline that loads every register,
 * and left through the exit slots; exceptions come back as signals. One thread.
 */
#ifndef HUSK_ISA_NATIVE_H
#define HUSK_ISA_NATIVE_H

#include "state.h"

/* Maps the window and takes over the signals that exceptions become. Once. */
void native_create(void);

/* The address to put into an exit slot; 32-bit code has exits of its own. */
uint64_t native_exit_address(enum state_exit exit, bool code32);

/* Fills the page at WINDOW_READ_ONLY. */
void native_write_read_only(const void *bytes);

/* A floating-point state as programs start with, with this processor's reserved bits. */
void native_floating_point(struct fx_state *fx);

/* Runs from `in` until an exit or an exception. */
void native_run(const struct isa_state *in, struct isa_state *out);

/* Some hosts' kernels and hypervisors have no segment for 32-bit code. */
bool native_has_code32(void);

/* `report` is called at a signal that came from elsewhere than code in the window, before
 * the signal ends the process. */
void native_on_crash(void (*report)(void));

#endif
