/* SPDX-License-Identifier: Apache-2.0 */
/* Host instructions as bytes: what the SDM's tables say, where they have exceptions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "accel/soft/translator/encode_private.h"
#include "base/bytes.h"

static uint8_t buffer[ENCODE_LIMIT];
static struct code_writer writer;

static void start(void)
{
    writer = (struct code_writer){.at = buffer, .start = buffer, .start_offset = 0x1000};
}

#define ASSERT_BYTES(...)                                                                \
    do {                                                                                 \
        const uint8_t expected[] = {__VA_ARGS__};                                        \
                                                                                         \
        assert_int_equal(writer.at - buffer, sizeof(expected));                          \
        assert_memory_equal(buffer, expected, sizeof(expected));                         \
        start();                                                                         \
    } while (0)

static struct host_memory at(uint8_t base, uint8_t index, uint8_t scale,
                             int32_t displacement)
{
    return (struct host_memory){
        .base = base, .index = index, .scale = scale, .displacement = displacement};
}

static void addresses_take_the_shortest_form_there_is(void **state)
{
    (void)state;
    start();
    encode_load(&writer, X86_RAX, at(X86_RCX, HOST_NO_REGISTER, 0, 0));
    ASSERT_BYTES(0x48, 0x8b, 0x01);
    encode_load(&writer, X86_RAX, at(X86_RCX, HOST_NO_REGISTER, 0, 127));
    ASSERT_BYTES(0x48, 0x8b, 0x41, 0x7f);
    encode_load(&writer, X86_R8, at(X86_RCX, HOST_NO_REGISTER, 0, 128));
    ASSERT_BYTES(0x4c, 0x8b, 0x81, 0x80, 0, 0, 0);
    encode_load(&writer, X86_RAX, at(X86_R10, X86_R11, 0, 0));
    ASSERT_BYTES(0x4b, 0x8b, 0x04, 0x1a);
    encode_load(&writer, X86_RAX, at(X86_RAX, X86_R12, 3, -1));
    ASSERT_BYTES(0x4a, 0x8b, 0x44, 0xe0, 0xff);
}

static void some_bases_need_more(void **state)
{
    (void)state;
    start();
    encode_load(&writer, X86_RAX, at(X86_RSP, HOST_NO_REGISTER, 0, 0));
    ASSERT_BYTES(0x48, 0x8b, 0x04, 0x24);
    encode_load(&writer, X86_RAX, at(X86_R12, HOST_NO_REGISTER, 0, 0));
    ASSERT_BYTES(0x49, 0x8b, 0x04, 0x24);
    encode_load(&writer, X86_RAX, at(X86_RBP, HOST_NO_REGISTER, 0, 0));
    ASSERT_BYTES(0x48, 0x8b, 0x45, 0x00);
    encode_load(&writer, X86_RAX, at(X86_R13, X86_RCX, 1, 0));
    ASSERT_BYTES(0x49, 0x8b, 0x44, 0x4d, 0x00);
    encode_load(&writer, X86_RAX, at(HOST_NO_REGISTER, X86_RCX, 2, 16));
    ASSERT_BYTES(0x48, 0x8b, 0x04, 0x8d, 0x10, 0, 0, 0);
}

static void state_is_relative_to_gs(void **state)
{
    struct host_memory place = at(HOST_NO_REGISTER, HOST_NO_REGISTER, 0, 0x58);

    (void)state;
    start();
    place.state = true;
    encode_store(&writer, place, X86_R11);
    ASSERT_BYTES(0x65, 0x4c, 0x89, 0x1c, 0x25, 0x58, 0, 0, 0);
    encode(&writer, &(struct host_instruction){.prefix_66 = 0x66,
                                               .opcode = {0x89},
                                               .opcode_bytes = 1,
                                               .reg = X86_RAX,
                                               .is_memory = true,
                                               .memory = place});
    ASSERT_BYTES(0x65, 0x66, 0x89, 0x04, 0x25, 0x58, 0, 0, 0);
}

static void constants_take_the_shortest_move(void **state)
{
    (void)state;
    start();
    encode_constant(&writer, X86_RAX, 1);
    ASSERT_BYTES(0xb8, 1, 0, 0, 0);
    encode_constant(&writer, X86_R11, 0xffffffff);
    ASSERT_BYTES(0x41, 0xbb, 0xff, 0xff, 0xff, 0xff);
    encode_constant(&writer, X86_R11, UINT64_MAX);
    ASSERT_BYTES(0x49, 0xc7, 0xc3, 0xff, 0xff, 0xff, 0xff);
    encode_constant(&writer, X86_RCX, UINT64_C(0x1122334455667788));
    ASSERT_BYTES(0x48, 0xb9, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11);
}

static void prefixes_stand_before_rex(void **state)
{
    (void)state;
    start();
    encode(&writer, &(struct host_instruction){.prefix_repeat = 0xf2,
                                               .opcode = {0x0f, 0x58},
                                               .opcode_bytes = 2,
                                               .reg = 9,
                                               .is_memory = true,
                                               .memory = at(X86_R10, X86_R11, 0, 0)});
    ASSERT_BYTES(0xf2, 0x47, 0x0f, 0x58, 0x0c, 0x1a);
    encode(&writer,
           &(struct host_instruction){.lock = true,
                                      .rex = true,
                                      .opcode = {0x00},
                                      .opcode_bytes = 1,
                                      .reg = X86_RSI,
                                      .is_memory = true,
                                      .memory = at(X86_RAX, HOST_NO_REGISTER, 0, 0)});
    ASSERT_BYTES(0xf0, 0x40, 0x00, 0x30);
}

static void branches_count_from_their_end(void **state)
{
    (void)state;
    start();
    encode_jump(&writer, 0x1000);
    ASSERT_BYTES(0xe9, 0xfb, 0xff, 0xff, 0xff);
    encode_jump_if(&writer, CONDITION_NE, 0x1106);
    ASSERT_BYTES(0x0f, 0x85, 0x00, 0x01, 0, 0);
    encode_call(&writer, 0x1005);
    ASSERT_BYTES(0xe8, 0, 0, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_take_the_shortest_form_there_is),
        cmocka_unit_test(some_bases_need_more),
        cmocka_unit_test(state_is_relative_to_gs),
        cmocka_unit_test(constants_take_the_shortest_move),
        cmocka_unit_test(prefixes_stand_before_rex),
        cmocka_unit_test(branches_count_from_their_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
