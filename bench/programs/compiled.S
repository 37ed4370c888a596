/* SPDX-License-Identifier: Apache-2.0 */
/* The file that run_compile compiles, as bytes. */
    .section .rodata
    .globl compiled_source, compiled_source_bytes
compiled_source:
    .incbin "compiled.c"
compiled_end:
    .balign 4
compiled_source_bytes:
    .long compiled_end - compiled_source

    .section .note.GNU-stack, "", @progbits
