/* SPDX-License-Identifier: Apache-2.0 */
/* LLVM as this library uses it: from a request to code that any process can use. */
#include <llvm-c/Analysis.h>
#include <llvm-c/Error.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "jit/floats.h"
#include "jit/image.h"

/* A fixed list: the passes that pay for themselves, and none that may take very long. */
static const char *const passes =
    "function(sroa,early-cse<memssa>,simplifycfg,instcombine<no-verify-fixpoint>,"
    "loop-mssa(loop-rotate,licm),gvn,instcombine<no-verify-fixpoint>,simplifycfg,adce)";

static struct {
    char *triple, *cpu, *features;
    LLVMTargetRef target;
    LLVMTargetMachineRef machine;
} engine;

static bool open_engine(char *name, size_t name_size, char *why, size_t size) {
    char *error = NULL;
    unsigned major, minor, patch;
    LLVMGetVersion(&major, &minor, &patch);
    snprintf(name, name_size, "LLVM %u.%u.%u", major, minor, patch);
    if (LLVMInitializeNativeTarget() || LLVMInitializeNativeAsmPrinter()) {
        snprintf(why, size, "LLVM has no code generator for this processor");
        return false;
    }
    engine.triple = LLVMGetDefaultTargetTriple();
    engine.cpu = LLVMGetHostCPUName();
    engine.features = LLVMGetHostCPUFeatures();
    if (LLVMGetTargetFromTriple(engine.triple, &engine.target, &error)) {
        snprintf(why, size, "LLVM: %.100s", error);
        LLVMDisposeMessage(error);
        return false;
    }
    engine.machine =
        LLVMCreateTargetMachine(engine.target, engine.triple, engine.cpu, engine.features,
                                LLVMCodeGenLevelLess, LLVMRelocPIC, LLVMCodeModelSmall);
    if (engine.machine == NULL) {
        snprintf(why, size, "LLVM makes no code for %.60s", engine.cpu);
        return false;
    }
    return true;
}

bool bh__jit_has_roundings(void) {
    return strstr(engine.features, "+avx512f") != NULL;
}

bool bh__jit_has_halves(void) {
    return strstr(engine.features, "+f16c") != NULL;
}

/* ---- code ---- */

static void add_attribute(bh__jit_unit *u, const char *name, const char *value) {
    LLVMAttributeRef a = LLVMCreateStringAttribute(u->context, name, (unsigned)strlen(name), value,
                                                   (unsigned)strlen(value));
    LLVMAddAttributeAtIndex(u->function, LLVMAttributeFunctionIndex, a);
}

/* Vectors as wide as the processor has them. A large frame touches each of its pages in order, so
 * that one that does not fit ends at the guard page, and LLVM tells of one that is too large. */
static void set_attributes(bh__jit_unit *u) {
    bool wide = strstr(engine.features, "+avx512vl") != NULL;
    unsigned id = LLVMGetEnumAttributeKindForName("nounwind", 8);
    LLVMAddAttributeAtIndex(u->function, LLVMAttributeFunctionIndex,
                            LLVMCreateEnumAttribute(u->context, id, 0));
    add_attribute(u, "target-cpu", engine.cpu);
    add_attribute(u, "target-features", engine.features);
    add_attribute(u, "prefer-vector-width", wide ? "512" : "256");
    add_attribute(u, "min-legal-vector-width", wide ? "512" : "256");
    add_attribute(u, "probe-stack", "inline-asm");
    char most[16];
    snprintf(most, sizeof most, "%u", (unsigned)BH__JIT_MAX_STACK);
    add_attribute(u, "warn-stack-size", most);
}

/* What LLVM tells while it makes the code: nothing is printed, and the first refusal stays. */
static void hear(LLVMDiagnosticInfoRef told, void *context) {
    bh__jit_unit *u = context;
    LLVMDiagnosticSeverity severity = LLVMGetDiagInfoSeverity(told);
    char *text = LLVMGetDiagInfoDescription(told);
    bool stack = strstr(text, "stack frame size") != NULL;
    const char *number = strchr(text, '(');
    unsigned long bytes = number != NULL ? strtoul(number + 1, NULL, 10) : 0;
    if (stack && !u->refused) {
        bh__jit_refuse(u, "its code needs %lu bytes of stack; %u is the limit", bytes,
                       (unsigned)BH__JIT_MAX_STACK);
    } else if (severity == LLVMDSError && !u->refused) {
        bh__jit_refuse(u, "LLVM: %.80s", text);
    }
    u->refused |= stack || severity == LLVMDSError;
    LLVMDisposeMessage(text);
}

static bool optimise(bh__jit_unit *u) {
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    LLVMErrorRef failed = LLVMRunPasses(u->module, passes, engine.machine, options);
    LLVMDisposePassBuilderOptions(options);
    if (failed == NULL) {
        return true;
    }
    char *text = LLVMGetErrorMessage(failed);
    bh__jit_refuse(u, "LLVM: %.80s", text);
    LLVMDisposeErrorMessage(text);
    return false;
}

/* The time that LLVM takes grows faster than the function does. */
static bool is_small(bh__jit_unit *u) {
    uint32_t count = 0, blocks = 0;
    LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(u->function);
    for (; b != NULL; b = LLVMGetNextBasicBlock(b)) {
        blocks++;
        for (LLVMValueRef v = LLVMGetFirstInstruction(b); v != NULL;
             v = LLVMGetNextInstruction(v)) {
            count++;
        }
    }
    return count <= BH__JIT_MAX_SIZE ||
           bh__jit_refuse(u, "it takes %u LLVM instructions in %u blocks; %u is the limit",
                          (unsigned)count, (unsigned)blocks, (unsigned)BH__JIT_MAX_SIZE);
}

/* An address of this process would be wrong in the one that runs the code. */
static bool has_addresses(LLVMValueRef v) {
    for (int n = 0; n < LLVMGetNumOperands(v); n++) {
        LLVMValueRef operand = LLVMGetOperand(v, (unsigned)n);
        if (LLVMIsAConstantExpr(operand) && LLVMGetConstOpcode(operand) == LLVMIntToPtr) {
            return true;
        }
    }
    return false;
}

static bool is_portable(bh__jit_unit *u) {
    LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(u->function);
    for (; b != NULL; b = LLVMGetNextBasicBlock(b)) {
        for (LLVMValueRef v = LLVMGetFirstInstruction(b); v != NULL;
             v = LLVMGetNextInstruction(v)) {
            if (has_addresses(v)) {
                return bh__jit_refuse(u, "its code has an address of the compiler's process");
            }
        }
    }
    return true;
}

static bool emit(bh__jit_unit *u) {
    char *error = NULL;
    LLVMMemoryBufferRef object;
    LLVMContextSetDiagnosticHandler(u->context, hear, u);
    if (LLVMTargetMachineEmitToMemoryBuffer(engine.machine, u->module, LLVMObjectFile, &error,
                                            &object)) {
        bh__jit_refuse(u, "LLVM: %.80s", error);
        LLVMDisposeMessage(error);
        return false;
    }
    if (u->refused) {
        LLVMDisposeMemoryBuffer(object);
        return false;
    }
    const char *why =
        bh__jit_image(LLVMGetBufferStart(object), LLVMGetBufferSize(object), "kernel", u->result);
    LLVMDisposeMemoryBuffer(object);
    return why == NULL || bh__jit_refuse(u, "its code cannot be placed: %s", why);
}

bool bh__jit_finish(bh__jit_unit *u) {
    char *error = NULL;
    set_attributes(u);
    if (LLVMVerifyModule(u->module, LLVMReturnStatusAction, &error)) {
        bh__jit_refuse(u, "LLVM: %.80s", error);
        LLVMDisposeMessage(error);
        return false;
    }
    LLVMDisposeMessage(error);
    return is_small(u) && is_portable(u) && optimise(u) && emit(u);
}

/* ---- one kernel ---- */

static void count_steps(bh__jit_unit *u) {
    uint32_t most[OP_COUNT] = {0}, top = 0;
    for (uint32_t n = 0; n < u->step_count; n++) {
        const bh__jit_step *s = &u->steps[n];
        if (s->op != JIT_HANDLED) {
            u->result->native++;
            continue;
        }
        u->result->handled++;
        if (++most[s->insn->op] > most[top]) {
            top = s->insn->op;
        }
    }
    u->result->note[0] = 0;
    if (u->result->handled > 0) {
        snprintf(u->result->note, sizeof u->result->note, "%s", bh__ptx_op_table[top].mnemonic);
    }
}

static bool make(bh__jit_unit *u) {
    if (!bh__jit_plan(u)) {
        return false;
    }
    bh__jit_classify(u);
    bh__jit_find_nans(u);
    if (!bh__jit_fits_stack(u) || !bh__jit_find_ranges(u)) {
        return false;
    }
    u->context = LLVMContextCreate();
    u->module = LLVMModuleCreateWithNameInContext("kernel", u->context);
    LLVMSetTarget(u->module, engine.triple);
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(engine.machine);
    LLVMSetModuleDataLayout(u->module, layout);
    LLVMDisposeTargetData(layout);
    u->b = LLVMCreateBuilderInContext(u->context);
    bool ok = bh__jit_build(u);
    LLVMDisposeBuilder(u->b);
    ok = ok && bh__jit_finish(u);
    if (u->module != NULL) {
        LLVMDisposeModule(u->module);
    }
    LLVMContextDispose(u->context);
    if (ok) {
        count_steps(u);
    }
    return ok;
}

static void compile(const bh__jit_request *request, bh__jit_result *out) {
    uint64_t began = bh__now_ns();
    bh__jit_unit u = {.request = request, .result = out};
    u.part_lanes = request->row == 0 ? LANES : request->row;
    u.parts = LANES / u.part_lanes;
    memset(out, 0, sizeof *out);
    if (!make(&u)) {
        free(out->image);
        out->image = NULL;
        out->bytes = 0;
    }
    bh__arena_free(&u.arena);
    out->nanoseconds = bh__now_ns() - began;
}

__attribute__((visibility("default"))) const bh__jit_interface bh__jit_library = {
    .version = BH__JIT_VERSION, .open = open_engine, .compile = compile};
