/* SPDX-License-Identifier: Apache-2.0 */
/* What the lockstep checker says of a difference; see check_private.h. */
#include <errno.h>
#include <stdio.h>

#include "accel/soft/soft_private.h"
#include "accel/soft/translator/check_shadow_private.h"
#include "base/check.h"
#include "base/log.h"

/* Of code, in one line. */
#define HEX_BYTES 32
struct hex {
    char text[3 * HEX_BYTES + 1];
};

static struct hex to_hex(const uint8_t *bytes, size_t count)
{
    struct hex hex = {.text = ""};

    for (size_t i = 0; i < count && i < HEX_BYTES; i++)
        (void)snprintf(hex.text + 3 * i, 4, "%02x ", bytes[i]);
    return hex;
}

static void log_code(const struct block *block, const uint8_t *code)
{
    for (size_t at = 0; at < block->byte_count; at += HEX_BYTES)
        log_error("  %#llx: %s", (unsigned long long)(block->rip + at),
                  to_hex(code + at, block->byte_count - at).text);
}

static void log_registers(const char *when, const uint64_t *registers)
{
    for (unsigned i = 0; i < X86_REGISTER_COUNT; i += 4)
        log_error("  %s r%u-%u: %016llx %016llx %016llx %016llx", when, i, i + 3,
                  (unsigned long long)registers[i], (unsigned long long)registers[i + 1],
                  (unsigned long long)registers[i + 2],
                  (unsigned long long)registers[i + 3]);
}

void lockstep_report(struct lockstep *lockstep, const struct difference *difference)
{
    const struct block *block = lockstep->block;
    const uint8_t *code =
        soft_vm_page(lockstep->cpu->vm, block->gpa) + block->gpa % X86_PAGE_BYTES;

    error_set(&lockstep->failure, -EIO,
              "soft: translated code differs from the interpreter: behind the block at "
              "%#llx, %u bytes, %s is %#llx, interpreted %#llx; the log has its code",
              (unsigned long long)block->rip, block->byte_count, difference->what,
              (unsigned long long)difference->translated,
              (unsigned long long)difference->interpreted);
    log_error("%s", lockstep->failure.text);
    log_code(block, code);
    log_registers("before", lockstep->registers);
    log_registers("translated", lockstep->cpu->r);
    log_registers("interpreted", lockstep->shadow->r);
}
