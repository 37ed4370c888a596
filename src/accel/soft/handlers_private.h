/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The families of handlers: each `select_*` picks the handler for a decoded instruction,
 * by its form's variant, its operand kinds and size, and its mode. The rows of forms_*.c
 * name them.
 */
#ifndef HUSK_SOFT_HANDLERS_PRIVATE_H
#define HUSK_SOFT_HANDLERS_PRIVATE_H

#include "accel/soft/instruction_private.h"

/* The tables (one row a form). */
extern const struct form soft_integer_forms[]; /* forms_integer.c */
extern const size_t soft_integer_form_count;
extern const struct form soft_system_forms[]; /* forms_system.c */
extern const size_t soft_system_form_count;
extern const struct form soft_vector_forms[]; /* forms_vector.c: x87, MMX, SSE and up */
extern const size_t soft_vector_form_count;

/* ---- general instructions: forms_integer.c
 * ---------------------------------------------------------- */

enum alu_variant {
    ALU_ADD,
    ALU_OR,
    ALU_ADC,
    ALU_SBB,
    ALU_AND,
    ALU_SUB,
    ALU_XOR,
    ALU_CMP,
    ALU_TEST,
    ALU_INC,
    ALU_DEC,
    ALU_NOT,
    ALU_NEG,
};
handler_select select_alu;       /* op_alu.c: two operands */
handler_select select_alu_unary; /* one operand */
handler_select select_alu_short; /* INC, DEC with the register in the opcode */

enum shift_variant { /* in the order of ModRM.reg; 6 is SHL again */
                     SHIFT_ROL,
                     SHIFT_ROR,
                     SHIFT_RCL,
                     SHIFT_RCR,
                     SHIFT_SHL,
                     SHIFT_SHR,
                     SHIFT_SAL,
                     SHIFT_SAR,
                     SHIFT_SHLD,
                     SHIFT_SHRD,
};
handler_select select_shift; /* op_shift.c */
handler_select select_shift_double;

enum move_variant {
    MOVE_FROM_OFFSET, /* accumulator and absolute address */
    MOVE_TO_OFFSET,
    MOVE_ZERO_EXTEND,
    MOVE_SIGN_EXTEND,
    MOVE_WIDEN_ACCUMULATOR, /* CBW, CWDE, CDQE */
    MOVE_SIGN_ACCUMULATOR,  /* CWD, CDQ, CQO */
};
handler_select select_move; /* op_move.c */
handler_select select_move_offset;
handler_select select_move_extend;
handler_select select_move_accumulator;
handler_select select_lea;
handler_select select_exchange;
handler_select select_exchange_accumulator;
handler_select select_move_condition; /* CMOVcc */
handler_select select_set_condition;  /* SETcc */

enum exchange_variant { EXCHANGE_XADD, EXCHANGE_CMPXCHG };
handler_select select_exchange_operate; /* op_exchange.c */
handler_select select_exchange_double;  /* CMPXCHG8B, CMPXCHG16B */

enum multiply_variant { MULTIPLY_MUL, MULTIPLY_IMUL, MULTIPLY_DIV, MULTIPLY_IDIV };
handler_select select_multiply_wide; /* op_multiply.c: with the accumulator */
handler_select select_imul;          /* two and three operands */

enum bits_variant {
    BITS_BT,
    BITS_BTS,
    BITS_BTR,
    BITS_BTC,
    BITS_BSF,
    BITS_BSR,
    BITS_TZCNT,
    BITS_LZCNT,
    BITS_POPCNT,
};
handler_select select_bit_test; /* op_bits.c */
handler_select select_bit_scan;
handler_select select_crc32;
handler_select select_bswap;
handler_select select_movbe;

enum stack_variant {
    STACK_PUSH_REGISTER,
    STACK_PUSH_IMMEDIATE,
    STACK_PUSH_RM,
    STACK_POP_REGISTER,
    STACK_POP_RM,
    STACK_PUSHA,
    STACK_POPA,
    STACK_PUSHF,
    STACK_POPF,
    STACK_ENTER,
    STACK_LEAVE,
};
handler_select select_stack; /* op_stack.c */

enum string_variant { STRING_MOVS, STRING_CMPS, STRING_STOS, STRING_LODS, STRING_SCAS };
handler_select select_string; /* op_string.c */

enum flow_variant {
    FLOW_JUMP,
    FLOW_CALL,
    FLOW_RETURN,
    FLOW_LOOPNE,
    FLOW_LOOPE,
    FLOW_LOOP,
    FLOW_JCXZ,
};
handler_select select_jump_condition; /* op_flow.c: Jcc */
handler_select select_flow;           /* direct */
handler_select select_flow_indirect;  /* through register or memory, and RET */

enum misc_variant {
    MISC_NOP,
    MISC_PAUSE,
    MISC_LFENCE,
    MISC_MFENCE,
    MISC_SFENCE,
    MISC_UNDEFINED,
    MISC_CLC,
    MISC_STC,
    MISC_CMC,
    MISC_CLD,
    MISC_STD,
    MISC_LAHF,
    MISC_SAHF,
    MISC_SALC,
    MISC_XLAT,
    MISC_BOUND,
    MISC_AAA,
    MISC_AAS,
    MISC_AAM,
    MISC_AAD,
    MISC_DAA,
    MISC_DAS,
};
handler_select select_misc; /* op_misc.c, op_decimal.c */

/* ---- x87, MMX, SSE: forms_vector.c ---- */

/* What the host must have for an instruction, which is undefined without it. */
enum vector_need {
    NEED_SSE2, /* every x86-64 processor */
    NEED_SSE3,
    NEED_SSSE3,
    NEED_SSE41,
    NEED_SSE42,
    NEED_AES,
    NEED_PCLMUL,
};
bool vector_host_has(enum vector_need need); /* op_sse.c; for CPUID too */

handler_select select_vector;            /* op_sse.c; variants: vector_private.h */
handler_select select_vector_masked;     /* mask in XMM0; enum vector_masked */
handler_select select_vector_string;     /* op_sse_string.c; enum vector_string */
handler_select select_vector_mask_store; /* op_sse_move.c: MASKMOVDQU, MASKMOVQ */
handler_select select_emms;              /* op_mmx.c */

enum x87_variant {
    X87_STACK, /* on registers */
    X87_COMPARE_FLAGS,
    X87_LOAD, /* a memory operand is read, of the operand size; 0: 80 bits */
    X87_STORE,
};
handler_select select_x87; /* op_x87.c */

enum x87_control_variant {
    X87_FNSTENV,
    X87_FLDENV,
    X87_FNSAVE,
    X87_FRSTOR,
    X87_FNINIT,
    X87_FNCLEX,
    X87_FNSTCW,
    X87_FLDCW,
    X87_FNSTSW,
    X87_FNSTSW_AX,
    X87_NOTHING,
    X87_FWAIT,
};
handler_select select_x87_control; /* op_x87_control.c */

enum fxsave_variant { FXSAVE_SAVE, FXSAVE_RESTORE, FXSAVE_STMXCSR, FXSAVE_LDMXCSR };
handler_select select_fxsave; /* op_fxsave.c */

/* ---- system instructions: forms_system.c
 * ------------------------------------------------------------- */

enum segment_variant {
    SEGMENT_STORE,
    SEGMENT_LOAD,
    SEGMENT_LOAD_STACK,
    SEGMENT_LAR,
    SEGMENT_LSL,
    SEGMENT_VERR,
    SEGMENT_VERW,
    SEGMENT_LLDT,
    SEGMENT_LTR,
    SEGMENT_SLDT,
    SEGMENT_STR,
    SEGMENT_ARPL,
};
handler_select select_segment;         /* segments.c */
handler_select select_segment_push;    /* variant: enum x86_segment_register */
handler_select select_segment_pop;     /* the same */
handler_select select_segment_pointer; /* LDS and the like; the same */

enum far_variant { FAR_JUMP, FAR_CALL, FAR_RETURN, FAR_INTERRUPT_RETURN };
handler_select select_far;        /* far.c: JMP, CALL */
handler_select select_far_return; /* far_return.c: RET, IRET */

enum control_variant {
    CONTROL_FROM_CR,
    CONTROL_TO_CR,
    CONTROL_FROM_DR,
    CONTROL_TO_DR,
    CONTROL_CLTS,
    CONTROL_LMSW_REGISTER,
    CONTROL_LMSW_MEMORY,
    CONTROL_SMSW_REGISTER,
    CONTROL_SMSW_MEMORY,
    CONTROL_SGDT,
    CONTROL_SIDT,
    CONTROL_LGDT,
    CONTROL_LIDT,
    CONTROL_INVLPG,
    CONTROL_INVPCID,
};
handler_select select_control; /* op_control.c */

enum system_variant {
    SYSTEM_CLI,
    SYSTEM_STI,
    SYSTEM_HLT,
    SYSTEM_INT,
    SYSTEM_INT3,
    SYSTEM_INTO,
    SYSTEM_INT1,
    SYSTEM_CPUID,
    SYSTEM_RDTSC,
    SYSTEM_RDTSCP,
    SYSTEM_RDPMC,
    SYSTEM_RDMSR,
    SYSTEM_WRMSR,
    SYSTEM_FLUSH_CACHES, /* INVD, WBINVD */
    SYSTEM_FLUSH_LINE,   /* CLFLUSH, CLFLUSHOPT, CLWB */
    SYSTEM_SERIALIZE,
    SYSTEM_RDRAND, /* RDSEED, too */
    SYSTEM_STAC,
    SYSTEM_CLAC,
    SYSTEM_RDPKRU,
    SYSTEM_WRPKRU,
    SYSTEM_HYPERCALL, /* VMCALL, VMMCALL */
};
handler_select select_system; /* op_system.c */

enum syscall_variant {
    SYSCALL_SYSCALL,
    SYSCALL_SYSRET,
    SYSCALL_SYSENTER,
    SYSCALL_SYSEXIT,
    SYSCALL_SWAPGS,
    SYSCALL_RDFSBASE,
    SYSCALL_RDGSBASE,
    SYSCALL_WRFSBASE,
    SYSCALL_WRGSBASE,
};
handler_select select_syscall; /* op_syscall.c */

enum io_variant {
    IO_IN_IMMEDIATE,
    IO_IN_REGISTER,
    IO_OUT_IMMEDIATE,
    IO_OUT_REGISTER,
    IO_INS,
    IO_OUTS,
};
handler_select select_io; /* op_io.c */

#endif
