/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers of decimal arithmetic, which 64-bit code does not have. */
#ifndef HUSK_SOFT_DECIMAL_PRIVATE_H
#define HUSK_SOFT_DECIMAL_PRIVATE_H

#include "accel/soft/uop_private.h"

soft_handler decimal_aaa;
soft_handler decimal_aas;
soft_handler decimal_aam;
soft_handler decimal_aad;
soft_handler decimal_daa;
soft_handler decimal_das;

#endif
