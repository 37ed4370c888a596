/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies that attract each other: scalar doubles with divisions and square roots. */
#include <emmintrin.h>
#include <string.h>

#include "programs.h"

#define BODIES 6
#define AXES 3
#define STEPS 120000
#define TIME_STEP 0.001

struct body {
    double position[AXES];
    double speed[AXES];
    double mass;
};

static double square_root(double value)
{
    const __m128d operand = _mm_set_sd(value);

    return _mm_cvtsd_f64(_mm_sqrt_sd(operand, operand));
}

static void make_bodies(struct body *bodies)
{
    uint64_t state = RANDOM_SEED;

    for (size_t i = 0; i < BODIES; i++) {
        bodies[i].mass = (double)(random_next(&state) % 1000 + 1) / 100;
        for (size_t axis = 0; axis < AXES; axis++) {
            bodies[i].position[axis] = (double)(random_next(&state) % 10000) / 100;
            bodies[i].speed[axis] = (double)(random_next(&state) % 1000) / 500 - 1;
        }
    }
}

static void attract(struct body *one, struct body *other)
{
    double way[AXES];
    double square = 0.01; /* softens collisions */
    double pull;

    for (size_t axis = 0; axis < AXES; axis++) {
        way[axis] = one->position[axis] - other->position[axis];
        square += way[axis] * way[axis];
    }
    pull = TIME_STEP / (square * square_root(square));
    for (size_t axis = 0; axis < AXES; axis++) {
        one->speed[axis] -= way[axis] * other->mass * pull;
        other->speed[axis] += way[axis] * one->mass * pull;
    }
}

uint64_t run_bodies(void)
{
    struct body bodies[BODIES];

    memset(bodies, 0, sizeof(bodies));
    make_bodies(bodies);
    for (int step = 0; step < STEPS; step++) {
        for (size_t i = 0; i < BODIES; i++)
            for (size_t j = i + 1; j < BODIES; j++)
                attract(&bodies[i], &bodies[j]);
        for (size_t i = 0; i < BODIES; i++)
            for (size_t axis = 0; axis < AXES; axis++)
                bodies[i].position[axis] += TIME_STEP * bodies[i].speed[axis];
    }
    return checksum(bodies, sizeof(bodies));
}
