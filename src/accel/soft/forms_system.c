/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forms of system instructions: segments, descriptors, control registers, far transfers,
 * interrupts, ports, system calls, model-specific registers (SDM vol. 2; opcode maps in
 * appendix A). Columns as in struct form.
 */
#include "accel/soft/handlers_private.h"
#include "base/bytes.h"
#include "x86/x86.h"

/* clang-format off */
const struct form soft_system_forms[] = {
    /* ---- segment registers ---- */
    {MAP_ONE, 0x06, 1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "push",       {0},                        SIZE_STACK,  {0, 0, 0},                FORM_NOT_64,                  select_segment_push,    X86_ES},
    {MAP_ONE, 0x0e, 1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "push",       {0},                        SIZE_STACK,  {0, 0, 0},                FORM_NOT_64,                  select_segment_push,    X86_CS},
    {MAP_ONE, 0x16, 1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "push",       {0},                        SIZE_STACK,  {0, 0, 0},                FORM_NOT_64,                  select_segment_push,    X86_SS},
    {MAP_ONE, 0x1e, 1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "push",       {0},                        SIZE_STACK,  {0, 0, 0},                FORM_NOT_64,                  select_segment_push,    X86_DS},
    {MAP_0F,  0xa0, 1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "push",       {0},                        SIZE_STACK,  {0, 0, 0},                0,                            select_segment_push,    X86_FS},
    {MAP_0F,  0xa8, 1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "push",       {0},                        SIZE_STACK,  {0, 0, 0},                0,                            select_segment_push,    X86_GS},
    {MAP_ONE, 0x07, 1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "pop",        {0},                        SIZE_STACK,  {0, 0, 0},                FORM_NOT_64,                  select_segment_pop,     X86_ES},
    {MAP_ONE, 0x17, 1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "pop",        {0},                        SIZE_STACK,  {0, 0, 0},                FORM_NOT_64 | FORM_ENDS,      select_segment_pop,     X86_SS},
    {MAP_ONE, 0x1f, 1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "pop",        {0},                        SIZE_STACK,  {0, 0, 0},                FORM_NOT_64,                  select_segment_pop,     X86_DS},
    {MAP_0F,  0xa1, 1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "pop",        {0},                        SIZE_STACK,  {0, 0, 0},                0,                            select_segment_pop,     X86_FS},
    {MAP_0F,  0xa9, 1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "pop",        {0},                        SIZE_STACK,  {0, 0, 0},                0,                            select_segment_pop,     X86_GS},
    {MAP_ONE, 0x8c, 1, PREFIX_ANY,  MODRM_REGISTER, -1, -1, "mov",        {OPERAND_E, OPERAND_S},     SIZE_V,      {0, 0, 0},                0,                            select_segment,         SEGMENT_STORE},
    {MAP_ONE, 0x8c, 1, PREFIX_ANY,  MODRM_MEMORY,   -1, -1, "mov",        {OPERAND_E16, OPERAND_S},   SIZE_16,     {0, 0, 0},                0,                            select_segment,         SEGMENT_STORE},
    {MAP_ONE, 0x8e, 1, PREFIX_ANY,  MODRM_ANY,       2, -1, "mov",        {OPERAND_S, OPERAND_E16},   SIZE_16,     {0, 0, 0},                FORM_READS | FORM_ENDS,       select_segment,         SEGMENT_LOAD_STACK},
    {MAP_ONE, 0x8e, 1, PREFIX_ANY,  MODRM_ANY,      -1, -1, "mov",        {OPERAND_S, OPERAND_E16},   SIZE_16,     {0, 0, 0},                FORM_READS,                   select_segment,         SEGMENT_LOAD},
    {MAP_ONE, 0xc4, 1, PREFIX_ANY,  MODRM_MEMORY,   -1, -1, "les",        {OPERAND_G, OPERAND_M},     SIZE_V,      {0, 0, 0},                FORM_READS | FORM_NOT_64,     select_segment_pointer, X86_ES},
    {MAP_ONE, 0xc5, 1, PREFIX_ANY,  MODRM_MEMORY,   -1, -1, "lds",        {OPERAND_G, OPERAND_M},     SIZE_V,      {0, 0, 0},                FORM_READS | FORM_NOT_64,     select_segment_pointer, X86_DS},
    {MAP_0F,  0xb2, 1, PREFIX_ANY,  MODRM_MEMORY,   -1, -1, "lss",        {OPERAND_G, OPERAND_M},     SIZE_V,      {0, 0, 0},                FORM_READS | FORM_ENDS,       select_segment_pointer, X86_SS},
    {MAP_0F,  0xb4, 1, PREFIX_ANY,  MODRM_MEMORY,   -1, -1, "lfs",        {OPERAND_G, OPERAND_M},     SIZE_V,      {0, 0, 0},                FORM_READS,                   select_segment_pointer, X86_FS},
    {MAP_0F,  0xb5, 1, PREFIX_ANY,  MODRM_MEMORY,   -1, -1, "lgs",        {OPERAND_G, OPERAND_M},     SIZE_V,      {0, 0, 0},                FORM_READS,                   select_segment_pointer, X86_GS},

    /* ---- descriptors ---- */
    {MAP_ONE, 0x63, 1, PREFIX_ANY,  MODRM_ANY,      -1, -1, "arpl",       {OPERAND_E16, OPERAND_G16}, SIZE_16,     {0, FLAG_ZF, 0},          FORM_NOT_64 | FORM_PROTECTED, select_segment,         SEGMENT_ARPL},
    {MAP_0F,  0x00, 1, PREFIX_ANY,  MODRM_REGISTER,  0, -1, "sldt",       {OPERAND_E},                SIZE_V,      {0, 0, 0},                FORM_PROTECTED,               select_segment,         SEGMENT_SLDT},
    {MAP_0F,  0x00, 1, PREFIX_ANY,  MODRM_MEMORY,    0, -1, "sldt",       {OPERAND_E16},              SIZE_16,     {0, 0, 0},                FORM_PROTECTED,               select_segment,         SEGMENT_SLDT},
    {MAP_0F,  0x00, 1, PREFIX_ANY,  MODRM_REGISTER,  1, -1, "str",        {OPERAND_E},                SIZE_V,      {0, 0, 0},                FORM_PROTECTED,               select_segment,         SEGMENT_STR},
    {MAP_0F,  0x00, 1, PREFIX_ANY,  MODRM_MEMORY,    1, -1, "str",        {OPERAND_E16},              SIZE_16,     {0, 0, 0},                FORM_PROTECTED,               select_segment,         SEGMENT_STR},
    {MAP_0F,  0x00, 1, PREFIX_ANY,  MODRM_ANY,       2, -1, "lldt",       {OPERAND_E16},              SIZE_16,     {0, 0, 0},                FORM_PROTECTED | FORM_READS,  select_segment,         SEGMENT_LLDT},
    {MAP_0F,  0x00, 1, PREFIX_ANY,  MODRM_ANY,       3, -1, "ltr",        {OPERAND_E16},              SIZE_16,     {0, 0, 0},                FORM_PROTECTED | FORM_READS,  select_segment,         SEGMENT_LTR},
    {MAP_0F,  0x00, 1, PREFIX_ANY,  MODRM_ANY,       4, -1, "verr",       {OPERAND_E16},              SIZE_16,     {0, FLAG_ZF, 0},          FORM_PROTECTED | FORM_READS,  select_segment,         SEGMENT_VERR},
    {MAP_0F,  0x00, 1, PREFIX_ANY,  MODRM_ANY,       5, -1, "verw",       {OPERAND_E16},              SIZE_16,     {0, FLAG_ZF, 0},          FORM_PROTECTED | FORM_READS,  select_segment,         SEGMENT_VERW},
    {MAP_0F,  0x02, 1, PREFIX_ANY,  MODRM_ANY,      -1, -1, "lar",        {OPERAND_G, OPERAND_E16},   SIZE_V,      {0, FLAG_ZF, 0},          FORM_PROTECTED | FORM_READS,  select_segment,         SEGMENT_LAR},
    {MAP_0F,  0x03, 1, PREFIX_ANY,  MODRM_ANY,      -1, -1, "lsl",        {OPERAND_G, OPERAND_E16},   SIZE_V,      {0, FLAG_ZF, 0},          FORM_PROTECTED | FORM_READS,  select_segment,         SEGMENT_LSL},
    {MAP_0F,  0x01, 1, PREFIX_ANY,  MODRM_MEMORY,    0, -1, "sgdt",       {OPERAND_M},                SIZE_V,      {0, 0, 0},                0,                            select_control,         CONTROL_SGDT},
    {MAP_0F,  0x01, 1, PREFIX_ANY,  MODRM_MEMORY,    1, -1, "sidt",       {OPERAND_M},                SIZE_V,      {0, 0, 0},                0,                            select_control,         CONTROL_SIDT},
    {MAP_0F,  0x01, 1, PREFIX_ANY,  MODRM_MEMORY,    2, -1, "lgdt",       {OPERAND_M},                SIZE_V,      {0, 0, 0},                FORM_READS,                   select_control,         CONTROL_LGDT},
    {MAP_0F,  0x01, 1, PREFIX_ANY,  MODRM_MEMORY,    3, -1, "lidt",       {OPERAND_M},                SIZE_V,      {0, 0, 0},                FORM_READS,                   select_control,         CONTROL_LIDT},

    /* ---- control and debug registers ---- */
    {MAP_0F,  0x20, 1, PREFIX_ANY,  MODRM_ANY,      -1, -1, "mov",        {OPERAND_E, OPERAND_C},     SIZE_NATIVE, {0, 0, 0},                0,                            select_control,         CONTROL_FROM_CR},
    {MAP_0F,  0x21, 1, PREFIX_ANY,  MODRM_ANY,      -1, -1, "mov",        {OPERAND_E, OPERAND_D},     SIZE_NATIVE, {0, 0, 0},                0,                            select_control,         CONTROL_FROM_DR},
    {MAP_0F,  0x22, 1, PREFIX_ANY,  MODRM_ANY,      -1, -1, "mov",        {OPERAND_C, OPERAND_E},     SIZE_NATIVE, {0, 0, 0},                FORM_ENDS,                    select_control,         CONTROL_TO_CR},
    {MAP_0F,  0x23, 1, PREFIX_ANY,  MODRM_ANY,      -1, -1, "mov",        {OPERAND_D, OPERAND_E},     SIZE_NATIVE, {0, 0, 0},                FORM_ENDS,                    select_control,         CONTROL_TO_DR},
    {MAP_0F,  0x06, 1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "clts",       {0},                        SIZE_NONE,   {0, 0, 0},                FORM_ENDS,                    select_control,         CONTROL_CLTS},
    {MAP_0F,  0x01, 1, PREFIX_ANY,  MODRM_REGISTER,  4, -1, "smsw",       {OPERAND_E},                SIZE_V,      {0, 0, 0},                0,                            select_control,         CONTROL_SMSW_REGISTER},
    {MAP_0F,  0x01, 1, PREFIX_ANY,  MODRM_MEMORY,    4, -1, "smsw",       {OPERAND_E16},              SIZE_16,     {0, 0, 0},                0,                            select_control,         CONTROL_SMSW_MEMORY},
    {MAP_0F,  0x01, 1, PREFIX_ANY,  MODRM_REGISTER,  6, -1, "lmsw",       {OPERAND_E16},              SIZE_16,     {0, 0, 0},                FORM_ENDS,                    select_control,         CONTROL_LMSW_REGISTER},
    {MAP_0F,  0x01, 1, PREFIX_ANY,  MODRM_MEMORY,    6, -1, "lmsw",       {OPERAND_E16},              SIZE_16,     {0, 0, 0},                FORM_READS | FORM_ENDS,       select_control,         CONTROL_LMSW_MEMORY},
    {MAP_0F,  0x01, 1, PREFIX_ANY,  MODRM_MEMORY,    7, -1, "invlpg",     {OPERAND_E8},               SIZE_NONE,   {0, 0, 0},                FORM_READS | FORM_ENDS,       select_control,         CONTROL_INVLPG},

    {MAP_0F38,0x82, 1, PREFIX_66,   MODRM_MEMORY,   -1, -1, "invpcid",    {OPERAND_G, OPERAND_M},     SIZE_NATIVE, {0, 0, 0},                FORM_READS | FORM_ENDS,       select_control,         CONTROL_INVPCID},

    /* ---- far transfers ---- */
    {MAP_ONE, 0x9a, 1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "call",       {OPERAND_FAR},              SIZE_V,      {0, 0, 0},                FORM_NOT_64 | FORM_ENDS,      select_far,             FAR_CALL},
    {MAP_ONE, 0xea, 1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "jmp",        {OPERAND_FAR},              SIZE_V,      {0, 0, 0},                FORM_NOT_64 | FORM_ENDS,      select_far,             FAR_JUMP},
    {MAP_ONE, 0xff, 1, PREFIX_ANY,  MODRM_MEMORY,    3, -1, "call",       {OPERAND_M},                SIZE_V,      {0, 0, 0},                FORM_READS | FORM_ENDS,       select_far,             FAR_CALL},
    {MAP_ONE, 0xff, 1, PREFIX_ANY,  MODRM_MEMORY,    5, -1, "jmp",        {OPERAND_M},                SIZE_V,      {0, 0, 0},                FORM_READS | FORM_ENDS,       select_far,             FAR_JUMP},
    {MAP_ONE, 0xca, 1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "ret",        {OPERAND_I16},              SIZE_V,      {0, 0, 0},                FORM_ENDS,                    select_far_return,      FAR_RETURN},
    {MAP_ONE, 0xcb, 1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "ret",        {0},                        SIZE_V,      {0, 0, 0},                FORM_ENDS,                    select_far_return,      FAR_RETURN},
    {MAP_ONE, 0xcf, 1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "iret",       {0},                        SIZE_V,      {0, FLAGS_ARITHMETIC, 0}, FORM_ENDS,                    select_far_return,      FAR_INTERRUPT_RETURN},

    /* ---- interrupts ---- */
    {MAP_ONE, 0xcc, 1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "int3",       {0},                        SIZE_NONE,   {0, 0, 0},                FORM_ENDS,                    select_system,          SYSTEM_INT3},
    {MAP_ONE, 0xcd, 1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "int",        {OPERAND_I8},               SIZE_NONE,   {0, 0, 0},                FORM_ENDS,                    select_system,          SYSTEM_INT},
    {MAP_ONE, 0xce, 1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "into",       {0},                        SIZE_NONE,   {FLAG_OF, 0, 0},          FORM_NOT_64 | FORM_ENDS,      select_system,          SYSTEM_INTO},
    {MAP_ONE, 0xf1, 1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "int1",       {0},                        SIZE_NONE,   {0, 0, 0},                FORM_ENDS,                    select_system,          SYSTEM_INT1},
    {MAP_ONE, 0xf4, 1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "hlt",        {0},                        SIZE_NONE,   {0, 0, 0},                FORM_ENDS,                    select_system,          SYSTEM_HLT},
    {MAP_ONE, 0xfa, 1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "cli",        {0},                        SIZE_NONE,   {0, 0, 0},                0,                            select_system,          SYSTEM_CLI},
    {MAP_ONE, 0xfb, 1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "sti",        {0},                        SIZE_NONE,   {0, 0, 0},                FORM_ENDS,                    select_system,          SYSTEM_STI},

    /* ---- ports ---- */
    {MAP_ONE, 0x6c, 1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "ins",        {OPERAND_STRING_TARGET},    SIZE_8,      {0, 0, 0},                FORM_REP | FORM_ENDS,         select_io,              IO_INS},
    {MAP_ONE, 0x6d, 1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "ins",        {OPERAND_STRING_TARGET},    SIZE_V,      {0, 0, 0},                FORM_REP | FORM_ENDS,         select_io,              IO_INS},
    {MAP_ONE, 0x6e, 1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "outs",       {OPERAND_STRING_SOURCE},    SIZE_8,      {0, 0, 0},                FORM_REP | FORM_ENDS,         select_io,              IO_OUTS},
    {MAP_ONE, 0x6f, 1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "outs",       {OPERAND_STRING_SOURCE},    SIZE_V,      {0, 0, 0},                FORM_REP | FORM_ENDS,         select_io,              IO_OUTS},
    {MAP_ONE, 0xe4, 1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "in",         {OPERAND_A, OPERAND_I8},    SIZE_8,      {0, 0, 0},                FORM_ENDS | FORM_CONDITIONAL, select_io,              IO_IN_IMMEDIATE},
    {MAP_ONE, 0xe5, 1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "in",         {OPERAND_A, OPERAND_I8},    SIZE_V,      {0, 0, 0},                FORM_ENDS | FORM_CONDITIONAL, select_io,              IO_IN_IMMEDIATE},
    {MAP_ONE, 0xe6, 1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "out",        {OPERAND_I8, OPERAND_A},    SIZE_8,      {0, 0, 0},                FORM_ENDS,                    select_io,              IO_OUT_IMMEDIATE},
    {MAP_ONE, 0xe7, 1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "out",        {OPERAND_I8, OPERAND_A},    SIZE_V,      {0, 0, 0},                FORM_ENDS,                    select_io,              IO_OUT_IMMEDIATE},
    {MAP_ONE, 0xec, 1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "in",         {OPERAND_A},                SIZE_8,      {0, 0, 0},                FORM_ENDS | FORM_CONDITIONAL, select_io,              IO_IN_REGISTER},
    {MAP_ONE, 0xed, 1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "in",         {OPERAND_A},                SIZE_V,      {0, 0, 0},                FORM_ENDS | FORM_CONDITIONAL, select_io,              IO_IN_REGISTER},
    {MAP_ONE, 0xee, 1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "out",        {OPERAND_A},                SIZE_8,      {0, 0, 0},                FORM_ENDS,                    select_io,              IO_OUT_REGISTER},
    {MAP_ONE, 0xef, 1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "out",        {OPERAND_A},                SIZE_V,      {0, 0, 0},                FORM_ENDS,                    select_io,              IO_OUT_REGISTER},

    /* ---- system calls, FS and GS ---- */
    {MAP_0F,  0x05, 1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "syscall",    {0},                        SIZE_NONE,   {0, 0, 0},                FORM_ENDS,                    select_syscall,         SYSCALL_SYSCALL},
    {MAP_0F,  0x07, 1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "sysret",     {0},                        SIZE_Y,      {0, FLAGS_ARITHMETIC, 0}, FORM_ENDS,                    select_syscall,         SYSCALL_SYSRET},
    {MAP_0F,  0x34, 1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "sysenter",   {0},                        SIZE_NONE,   {0, 0, 0},                FORM_ENDS,                    select_syscall,         SYSCALL_SYSENTER},
    {MAP_0F,  0x35, 1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "sysexit",    {0},                        SIZE_Y,      {0, 0, 0},                FORM_ENDS,                    select_syscall,         SYSCALL_SYSEXIT},
    {MAP_0F,  0x01, 1, PREFIX_ANY,  MODRM_REGISTER,  7,  0, "swapgs",     {0},                        SIZE_NONE,   {0, 0, 0},                FORM_ONLY_64,                 select_syscall,         SYSCALL_SWAPGS},
    {MAP_0F,  0xae, 1, PREFIX_F3,   MODRM_REGISTER,  0, -1, "rdfsbase",   {OPERAND_E},                SIZE_Y,      {0, 0, 0},                FORM_ONLY_64,                 select_syscall,         SYSCALL_RDFSBASE},
    {MAP_0F,  0xae, 1, PREFIX_F3,   MODRM_REGISTER,  1, -1, "rdgsbase",   {OPERAND_E},                SIZE_Y,      {0, 0, 0},                FORM_ONLY_64,                 select_syscall,         SYSCALL_RDGSBASE},
    {MAP_0F,  0xae, 1, PREFIX_F3,   MODRM_REGISTER,  2, -1, "wrfsbase",   {OPERAND_E},                SIZE_Y,      {0, 0, 0},                FORM_ONLY_64,                 select_syscall,         SYSCALL_WRFSBASE},
    {MAP_0F,  0xae, 1, PREFIX_F3,   MODRM_REGISTER,  3, -1, "wrgsbase",   {OPERAND_E},                SIZE_Y,      {0, 0, 0},                FORM_ONLY_64,                 select_syscall,         SYSCALL_WRGSBASE},

    /* ---- identification, time, model-specific registers ---- */
    {MAP_0F,  0xa2, 1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "cpuid",      {0},                        SIZE_NONE,   {0, 0, 0},                FORM_PURE,                    select_system,          SYSTEM_CPUID},
    {MAP_0F,  0x31, 1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "rdtsc",      {0},                        SIZE_NONE,   {0, 0, 0},                0,                            select_system,          SYSTEM_RDTSC},
    {MAP_0F,  0x01, 1, PREFIX_ANY,  MODRM_REGISTER,  7,  1, "rdtscp",     {0},                        SIZE_NONE,   {0, 0, 0},                0,                            select_system,          SYSTEM_RDTSCP},
    {MAP_0F,  0x33, 1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "rdpmc",      {0},                        SIZE_NONE,   {0, 0, 0},                0,                            select_system,          SYSTEM_RDPMC},
    {MAP_0F,  0x32, 1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "rdmsr",      {0},                        SIZE_NONE,   {0, 0, 0},                FORM_ENDS | FORM_CONDITIONAL, select_system,          SYSTEM_RDMSR},
    {MAP_0F,  0x30, 1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "wrmsr",      {0},                        SIZE_NONE,   {0, 0, 0},                FORM_ENDS,                    select_system,          SYSTEM_WRMSR},

    /* ---- caches, order, SMAP, protection keys, random numbers, hypercalls ---- */
    {MAP_0F,  0x08, 1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "invd",       {0},                        SIZE_NONE,   {0, 0, 0},                0,                            select_system,          SYSTEM_FLUSH_CACHES},
    {MAP_0F,  0x09, 1, PREFIX_ANY,  MODRM_ABSENT,   -1, -1, "wbinvd",     {0},                        SIZE_NONE,   {0, 0, 0},                0,                            select_system,          SYSTEM_FLUSH_CACHES},
    {MAP_0F,  0xae, 1, PREFIX_NONE, MODRM_MEMORY,    7, -1, "clflush",    {OPERAND_E8},               SIZE_NONE,   {0, 0, 0},                FORM_READS,                   select_system,          SYSTEM_FLUSH_LINE},
    {MAP_0F,  0xae, 1, PREFIX_66,   MODRM_MEMORY,    7, -1, "clflushopt", {OPERAND_E8},               SIZE_NONE,   {0, 0, 0},                FORM_READS,                   select_system,          SYSTEM_FLUSH_LINE},
    {MAP_0F,  0xae, 1, PREFIX_66,   MODRM_MEMORY,    6, -1, "clwb",       {OPERAND_E8},               SIZE_NONE,   {0, 0, 0},                FORM_READS,                   select_system,          SYSTEM_FLUSH_LINE},
    {MAP_0F,  0x01, 1, PREFIX_NONE, MODRM_REGISTER,  5,  0, "serialize",  {0},                        SIZE_NONE,   {0, 0, 0},                FORM_ENDS,                    select_system,          SYSTEM_SERIALIZE},
    {MAP_0F,  0x01, 1, PREFIX_NONE, MODRM_REGISTER,  1,  2, "clac",       {0},                        SIZE_NONE,   {0, 0, 0},                0,                            select_system,          SYSTEM_CLAC},
    {MAP_0F,  0x01, 1, PREFIX_NONE, MODRM_REGISTER,  1,  3, "stac",       {0},                        SIZE_NONE,   {0, 0, 0},                0,                            select_system,          SYSTEM_STAC},
    {MAP_0F,  0x01, 1, PREFIX_NONE, MODRM_REGISTER,  5,  6, "rdpkru",     {0},                        SIZE_NONE,   {0, 0, 0},                0,                            select_system,          SYSTEM_RDPKRU},
    {MAP_0F,  0x01, 1, PREFIX_NONE, MODRM_REGISTER,  5,  7, "wrpkru",     {0},                        SIZE_NONE,   {0, 0, 0},                FORM_ENDS,                    select_system,          SYSTEM_WRPKRU},
    {MAP_0F,  0xc7, 1, PREFIX_NFX,  MODRM_REGISTER,  6, -1, "rdrand",     {OPERAND_E},                SIZE_V,      {0, FLAGS_ARITHMETIC, 0}, FORM_PURE,                    select_system,          SYSTEM_RDRAND},
    {MAP_0F,  0xc7, 1, PREFIX_NFX,  MODRM_REGISTER,  7, -1, "rdseed",     {OPERAND_E},                SIZE_V,      {0, FLAGS_ARITHMETIC, 0}, FORM_PURE,                    select_system,          SYSTEM_RDRAND},
    {MAP_0F,  0x01, 1, PREFIX_NONE, MODRM_REGISTER,  0,  1, "vmcall",     {0},                        SIZE_NONE,   {0, 0, 0},                FORM_ENDS,                    select_system,          SYSTEM_HYPERCALL},
    {MAP_0F,  0x01, 1, PREFIX_NONE, MODRM_REGISTER,  3,  1, "vmmcall",    {0},                        SIZE_NONE,   {0, 0, 0},                FORM_ENDS,                    select_system,          SYSTEM_HYPERCALL},
};
/* clang-format on */

const size_t soft_system_form_count = ARRAY_SIZE(soft_system_forms);
