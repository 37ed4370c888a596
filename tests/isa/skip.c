/* SPDX-License-Identifier: Apache-2.0 */
/* Forms that user mode on this machine says nothing about. */
#include <string.h>

#include "base/bytes.h"
#include "shape.h"

struct skip {
    const char *mnemonic; /* ends with *: any that begins so */
    const char *reason;
};

static const char leaves[] = "enters the host's kernel";
static const char varies[] = "differs from run to run";
static const char machine[] = "shows the machine, which is another";
static const char model[] = "not on every host this is meant for";
static const char segments[] = "depends on descriptor tables";

static const char keys[] = "is about what the test itself may access";
static const char by_itself[] = "is delivered at once, not by the run loop";

static const struct skip skips[] = {
    {"syscall", leaves},   {"sysenter", leaves},  {"sysret*", leaves},
    {"sysexit", leaves},   {"int", leaves},       {"vmcall", leaves},
    {"vmmcall", leaves},   {"rdtsc*", varies},    {"rdpmc", varies},
    {"rdrand", varies},    {"rdseed", varies},    {"rdpid", varies},
    {"int1", by_itself},   {"cpuid", machine},    {"xgetbv", machine},
    {"xsetbv", machine},   {"xsave*", machine},   {"xrstor*", machine},
    {"rdfsbase", machine}, {"wrfsbase", machine}, {"rdgsbase", machine},
    {"wrgsbase", machine}, {"sgdt", machine},     {"sidt", machine},
    {"sldt", machine},     {"str", machine},      {"smsw", machine},
    {"serialize", model},  {"movdir*", model},    {"umwait", model},
    {"tpause", model},     {"umonitor", model},   {"lar", segments},
    {"lsl", segments},     {"verr", segments},    {"verw", segments},

    {"iret*", segments},   {"lss", segments},     {"lfs", segments},
    {"lgs", segments},     {"monitor*", model},   {"mwait*", model},
    {"rdpkru", keys},      {"wrpkru", keys},
};

static bool matches(const char *pattern, const char *mnemonic)
{
    size_t length = strlen(pattern);

    if (pattern[length - 1] == '*')
        return strncmp(pattern, mnemonic, length - 1) == 0;
    return strcmp(pattern, mnemonic) == 0;
}

/* Forms whose mnemonics have others, too: far transfers, POP of segment registers. */
static bool loads_segment(const struct form *form)
{
    static const struct {
        uint8_t map, opcode;
        int8_t extension;
    } forms[] = {{MAP_ONE, 0xff, 3},  {MAP_ONE, 0xff, 5},  {MAP_ONE, 0xca, -1},
                 {MAP_ONE, 0xcb, -1}, {MAP_0F, 0xa1, -1},  {MAP_0F, 0xa9, -1},
                 {MAP_ONE, 0x07, -1}, {MAP_ONE, 0x17, -1}, {MAP_ONE, 0x1f, -1},
                 {MAP_ONE, 0xc4, -1}, {MAP_ONE, 0xc5, -1}};

    for (size_t i = 0; i < ARRAY_SIZE(forms); i++)
        if (form->map == forms[i].map && form->opcode == forms[i].opcode &&
            form->extension == forms[i].extension)
            return true;
    return form->operands[0] == OPERAND_S || form->operands[0] == OPERAND_FAR;
}

const char *shape_skip_reason(const struct form *form, uint32_t mode)
{
    if ((mode & MODE_CODE64) != 0 && (form->attributes & FORM_NOT_64) != 0)
        return "not in 64-bit mode";
    if ((mode & MODE_CODE64) == 0 && (form->attributes & FORM_ONLY_64) != 0)
        return "only in 64-bit mode";
    if (loads_segment(form))
        return segments;
    for (size_t i = 0; i < ARRAY_SIZE(skips); i++)
        if (matches(skips[i].mnemonic, form->mnemonic))
            return skips[i].reason;
    return NULL;
}
