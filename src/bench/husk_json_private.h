/* SPDX-License-Identifier: Apache-2.0 */
/* What a husk says of itself as JSON. Each is the caller's, for json_decref, which takes
 * NULL too: husk has said nothing. */
#ifndef HUSK_BENCH_HUSK_JSON_PRIVATE_H
#define HUSK_BENCH_HUSK_JSON_PRIVATE_H

#include <jansson.h>

#include "bench/bench.h"

/* What --boot-timer=json has printed to its standard error, which `errors` ends with. */
json_t *husk_json_timer(const char *errors);

/* `husk stat` of the instance that runs by this name. */
json_t *husk_json_stat(const struct bench_options *options, const char *name);

#endif
