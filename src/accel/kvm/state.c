/* SPDX-License-Identifier: Apache-2.0 */
/* A vCPU's state under KVM: registers in husk's form, CPUID, and what firmware would have
 * set up. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "accel/kvm/kvm_private.h"
#include "base/bytes.h"
#include "base/log.h"

/* ---- CPUID ------------------------------------------------------------------------- */

static struct kvm_cpuid2 *allocate_cpuid(uint32_t count)
{
    struct kvm_cpuid2 *table =
        calloc(1, sizeof(*table) + count * sizeof(table->entries[0]));

    if (table != NULL)
        table->nent = count;
    return table;
}

int kvm_read_supported_cpuid(struct accel_vm *vm, struct error *err)
{
    struct kvm_cpuid2 *table = allocate_cpuid(KVM_CPUID_CAPACITY);
    int result = 0;

    if (table == NULL)
        return error_set_errno(err, ENOMEM, "kvm: cannot read CPUID");
    if (ioctl(vm->device_fd, KVM_GET_SUPPORTED_CPUID, table) < 0) {
        result = kvm_ioctl_error(err, errno, "KVM_GET_SUPPORTED_CPUID");
        table->nent = 0;
    }
    vm->leaf_count = table->nent;
    for (uint32_t i = 0; i < table->nent; i++) {
        const struct kvm_cpuid_entry2 *entry = &table->entries[i];

        vm->leaves[i] = (struct cpuid_leaf){
            .function = entry->function,
            .index = entry->index,
            .has_index = (entry->flags & KVM_CPUID_FLAG_SIGNIFCANT_INDEX) != 0,
            .eax = entry->eax,
            .ebx = entry->ebx,
            .ecx = entry->ecx,
            .edx = entry->edx,
        };
    }
    free(table);
    return result;
}

static int set_cpuid(const struct accel_vcpu *vcpu, struct error *err)
{
    const struct accel_vm *vm = vcpu->vm;
    const struct cpuid_policy policy = {
        .cpu_index = vcpu->index,
        .cpu_count = vm->cpu_count,
        .tsc_deadline = vm->tsc_deadline,
        .hide_cmpxchg16b = vm->emulates,
    };
    struct cpuid_leaf leaves[KVM_CPUID_CAPACITY + CPUID_FILTER_EXTRA_LEAVES];
    struct kvm_cpuid2 *table = allocate_cpuid(ARRAY_SIZE(leaves));
    int result = 0;

    if (table == NULL)
        return error_set_errno(err, ENOMEM, "kvm: cannot set CPUID");
    memcpy(leaves, vm->leaves, vm->leaf_count * sizeof(leaves[0]));
    table->nent = (uint32_t)cpuid_filter(leaves, vm->leaf_count, &policy);
    for (uint32_t i = 0; i < table->nent; i++) {
        table->entries[i] = (struct kvm_cpuid_entry2){
            .function = leaves[i].function,
            .index = leaves[i].index,
            .flags = leaves[i].has_index ? KVM_CPUID_FLAG_SIGNIFCANT_INDEX : 0,
            .eax = leaves[i].eax,
            .ebx = leaves[i].ebx,
            .ecx = leaves[i].ecx,
            .edx = leaves[i].edx,
        };
    }
    if (ioctl(vcpu->fd, KVM_SET_CPUID2, table) < 0)
        result = kvm_ioctl_error(err, errno, "KVM_SET_CPUID2");
    free(table);
    return result;
}

/* ---- what firmware leaves behind --------------------------------------------------- */

/* One at a time: a host that refuses one of them must not stop the others. Kernels live
 * without each, so a refusal is only told. */
static void set_optional_msrs(const struct accel_vcpu *vcpu)
{
    static const struct {
        uint32_t number;
        uint64_t value;
        const char *name;
    } msrs[] = {
        /* SDM vol. 4, table 2-2: fast string operations */
        {0x1a0, 0x1, "IA32_MISC_ENABLE"},
        /* SDM vol. 3, 12.11.2.1: MTRRs on, default type write-back */
        {0x2ff, 0x806, "IA32_MTRR_DEF_TYPE"},
    };
    union {
        struct kvm_msrs table;
        uint8_t room[sizeof(struct kvm_msrs) + sizeof(struct kvm_msr_entry)];
    } request = {.table.nmsrs = 1};

    for (size_t i = 0; i < ARRAY_SIZE(msrs); i++) {
        request.table.entries[0].index = msrs[i].number;
        request.table.entries[0].data = msrs[i].value;
        if (ioctl(vcpu->fd, KVM_SET_MSRS, &request) != 1)
            log_debug("kvm: vCPU %u: KVM_SET_MSRS refuses %s", vcpu->index, msrs[i].name);
    }
}

/* After FNINIT (SDM vol. 1, 8.1.5), and MXCSR at its reset value (10.2.3). */
static int set_fpu(const struct accel_vcpu *vcpu, struct error *err)
{
    const struct kvm_fpu fpu = {.fcw = 0x37f, .mxcsr = 0x1f80};

    if (ioctl(vcpu->fd, KVM_SET_FPU, &fpu) < 0)
        return kvm_ioctl_error(err, errno, "KVM_SET_FPU");
    return 0;
}

/* LINT0 brings the 8259's interrupts, LINT1 the NMI (SDM vol. 3, 11.5.1: delivery mode in
 * bits 10:8 of the entry, 7 = ExtINT, 4 = NMI; bit 16 = masked). */
static int connect_local_interrupts(const struct accel_vcpu *vcpu, struct error *err)
{
    struct kvm_lapic_state apic;

    if (ioctl(vcpu->fd, KVM_GET_LAPIC, &apic) < 0)
        return kvm_ioctl_error(err, errno, "KVM_GET_LAPIC");
    store_le32(apic.regs + 0x350, UINT32_C(7) << 8);
    store_le32(apic.regs + 0x360, UINT32_C(4) << 8);
    if (ioctl(vcpu->fd, KVM_SET_LAPIC, &apic) < 0)
        return kvm_ioctl_error(err, errno, "KVM_SET_LAPIC");
    return 0;
}

static int set_activity(const struct accel_vcpu *vcpu, struct error *err)
{
    struct kvm_mp_state activity = {
        .mp_state = vcpu->index == 0 ? KVM_MP_STATE_RUNNABLE : KVM_MP_STATE_UNINITIALIZED,
    };

    if (ioctl(vcpu->fd, KVM_SET_MP_STATE, &activity) < 0)
        return kvm_ioctl_error(err, errno, "KVM_SET_MP_STATE");
    return 0;
}

int kvm_vcpu_init_state(struct accel_vcpu *vcpu, struct error *err)
{
    int result = set_cpuid(vcpu, err); /* first: KVM checks the rest against it */

    if (result == 0)
        result = set_fpu(vcpu, err);
    if (result == 0)
        result = connect_local_interrupts(vcpu, err);
    if (result == 0)
        result = set_activity(vcpu, err);
    if (result == 0)
        set_optional_msrs(vcpu);
    return result;
}

/* ---- registers --------------------------------------------------------------------- */

/* The general registers in encoding order, as members of struct kvm_regs. */
static const size_t register_offsets[X86_REGISTER_COUNT] = {
    [X86_RAX] = offsetof(struct kvm_regs, rax),
    [X86_RCX] = offsetof(struct kvm_regs, rcx),
    [X86_RDX] = offsetof(struct kvm_regs, rdx),
    [X86_RBX] = offsetof(struct kvm_regs, rbx),
    [X86_RSP] = offsetof(struct kvm_regs, rsp),
    [X86_RBP] = offsetof(struct kvm_regs, rbp),
    [X86_RSI] = offsetof(struct kvm_regs, rsi),
    [X86_RDI] = offsetof(struct kvm_regs, rdi),
    [X86_R8] = offsetof(struct kvm_regs, r8),
    [X86_R9] = offsetof(struct kvm_regs, r9),
    [X86_R10] = offsetof(struct kvm_regs, r10),
    [X86_R11] = offsetof(struct kvm_regs, r11),
    [X86_R12] = offsetof(struct kvm_regs, r12),
    [X86_R13] = offsetof(struct kvm_regs, r13),
    [X86_R14] = offsetof(struct kvm_regs, r14),
    [X86_R15] = offsetof(struct kvm_regs, r15),
};

static const size_t segment_offsets[X86_SEGMENT_COUNT] = {
    [X86_ES] = offsetof(struct kvm_sregs, es),
    [X86_CS] = offsetof(struct kvm_sregs, cs),
    [X86_SS] = offsetof(struct kvm_sregs, ss),
    [X86_DS] = offsetof(struct kvm_sregs, ds),
    [X86_FS] = offsetof(struct kvm_sregs, fs),
    [X86_GS] = offsetof(struct kvm_sregs, gs),
    [X86_LDTR] = offsetof(struct kvm_sregs, ldt),
    [X86_TR] = offsetof(struct kvm_sregs, tr),
};

static struct x86_segment segment_from_kvm(const struct kvm_segment *segment)
{
    return (struct x86_segment){
        .base = segment->base,
        .limit = segment->limit,
        .selector = segment->selector,
        .type = segment->type,
        .dpl = segment->dpl,
        .present = segment->present != 0 && segment->unusable == 0,
        .code_or_data = segment->s != 0,
        .db = segment->db != 0,
        .long_mode = segment->l != 0,
        .granularity = segment->g != 0,
    };
}

static struct kvm_segment segment_to_kvm(const struct x86_segment *segment)
{
    return (struct kvm_segment){
        .base = segment->base,
        .limit = segment->limit,
        .selector = segment->selector,
        .type = segment->type,
        .present = segment->present,
        .dpl = segment->dpl,
        .db = segment->db,
        .s = segment->code_or_data,
        .l = segment->long_mode,
        .g = segment->granularity,
        .unusable = !segment->present,
    };
}

int kvm_get_state(struct accel_vcpu *vcpu, struct cpu_state *state, struct error *err)
{
    struct kvm_regs registers;
    struct kvm_sregs system;

    if (ioctl(vcpu->fd, KVM_GET_REGS, &registers) < 0)
        return kvm_ioctl_error(err, errno, "KVM_GET_REGS");
    if (ioctl(vcpu->fd, KVM_GET_SREGS, &system) < 0)
        return kvm_ioctl_error(err, errno, "KVM_GET_SREGS");
    for (size_t i = 0; i < X86_REGISTER_COUNT; i++)
        state->registers[i] = load_le64((const char *)&registers + register_offsets[i]);
    for (size_t i = 0; i < X86_SEGMENT_COUNT; i++) {
        struct kvm_segment segment;

        memcpy(&segment, (const char *)&system + segment_offsets[i], sizeof(segment));
        state->segments[i] = segment_from_kvm(&segment);
    }
    state->rip = registers.rip;
    state->rflags = registers.rflags;
    state->gdt = (struct x86_table){system.gdt.base, system.gdt.limit};
    state->idt = (struct x86_table){system.idt.base, system.idt.limit};
    state->cr0 = system.cr0;
    state->cr2 = system.cr2;
    state->cr3 = system.cr3;
    state->cr4 = system.cr4;
    state->efer = system.efer;
    return 0;
}

int kvm_set_state(struct accel_vcpu *vcpu, const struct cpu_state *state,
                  struct error *err)
{
    struct kvm_regs registers = {.rip = state->rip, .rflags = state->rflags};
    struct kvm_sregs system;

    /* The rest of it, such as the APIC's base address, stays. */
    if (ioctl(vcpu->fd, KVM_GET_SREGS, &system) < 0)
        return kvm_ioctl_error(err, errno, "KVM_GET_SREGS");
    for (size_t i = 0; i < X86_REGISTER_COUNT; i++)
        store_le64((char *)&registers + register_offsets[i], state->registers[i]);
    for (size_t i = 0; i < X86_SEGMENT_COUNT; i++) {
        struct kvm_segment segment = segment_to_kvm(&state->segments[i]);

        memcpy((char *)&system + segment_offsets[i], &segment, sizeof(segment));
    }
    system.gdt = (struct kvm_dtable){.base = state->gdt.base, .limit = state->gdt.limit};
    system.idt = (struct kvm_dtable){.base = state->idt.base, .limit = state->idt.limit};
    system.cr0 = state->cr0;
    system.cr2 = state->cr2;
    system.cr3 = state->cr3;
    system.cr4 = state->cr4;
    system.efer = state->efer;
    if (ioctl(vcpu->fd, KVM_SET_SREGS, &system) < 0)
        return kvm_ioctl_error(err, errno, "KVM_SET_SREGS");
    if (ioctl(vcpu->fd, KVM_SET_REGS, &registers) < 0)
        return kvm_ioctl_error(err, errno, "KVM_SET_REGS");
    return 0;
}
