/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that wait for the host on behalf of the others. Any thread. */
#ifndef HUSK_BASE_THREAD_H
#define HUSK_BASE_THREAD_H

#include <pthread.h>

/* Begins a thread with a name of up to 15 characters. Signals are for the main loop:
 * the thread gets only those that it brings upon itself, such as SIGBUS. 0, or a negative
 * errno. */
int thread_start(pthread_t *thread, const char *name, void *(*run)(void *context),
                 void *context);

#endif
