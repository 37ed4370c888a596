/* SPDX-License-Identifier: Apache-2.0 */
/* How much is tried of what takes long. Values that come out wrong are found by the build
 * without sanitizers; what those look for takes the way an instruction is done, not many
 * operands, so there a quarter will do. */
#ifndef HUSK_TESTS_EFFORT_H
#define HUSK_TESTS_EFFORT_H

#ifdef __SANITIZE_ADDRESS__
#define EFFORT(tries) ((tries) / 4)
#else
#define EFFORT(tries) (tries)
#endif

#endif
