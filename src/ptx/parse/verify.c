/* SPDX-License-Identifier: Apache-2.0 */
/* The verifier: checks every operand against the operation table, and that names are defined. */
#include <string.h>

#include "ptx/ir.h"

typedef struct verifier {
    const bh__ptx_module *module;
    const bh__ptx_function *function;
    const bh__ptx_insn *insn;
    bh_error *error;
} verifier;

#define REFUSE(v, status, fix, ...)                                                                \
    bh__ptx_error_at((v)->module, (v)->error, status, (v)->insn->line, (v)->insn->text,            \
                     (v)->insn->text_length, fix, __VA_ARGS__)

static bh__ptx_type widened(bh__ptx_type type) {
    switch (type) {
    case T_U16:
        return T_U32;
    case T_S16:
        return T_S32;
    case T_U32:
        return T_U64;
    case T_S32:
        return T_S64;
    default:
        return T_NONE;
    }
}

static bool is_pair(bh__ptx_type type) {
    return type == T_F16X2 || type == T_BF16X2;
}

/* Registers of bits hold anything; those of two halves are bits to all but floats. */
bool bh__ptx_types_agree(bh__ptx_type have, bh__ptx_type want) {
    char a = bh__ptx_class(have), b = bh__ptx_class(want);
    if (want == T_U16X2 || want == T_S16X2) {
        return a == 'B' || is_pair(have);
    }
    if (a == 'B' || b == 'B') {
        return true;
    }
    return b == 'F' ? have == want : a != 'F' || is_pair(have);
}

static bh_status check_register(const verifier *v, unsigned position, uint32_t reg,
                                bh__ptx_type type, bool relaxed) {
    bh__ptx_type have = v->function->regs[reg].type;
    const char *have_name = bh__ptx_type_table[have].name;
    const char *want_name = bh__ptx_type_table[type].name;
    if ((have == T_PRED) != (type == T_PRED)) {
        return REFUSE(v, BH_E_LOAD, "use a register of the instruction's type",
                      "operand %u is a .%s register where .%s is needed", position, have_name,
                      want_name);
    }
    unsigned have_bytes = bh__ptx_bytes(have), want_bytes = bh__ptx_bytes(type);
    bool wider = relaxed && have != T_B128;
    if (wider ? have_bytes < want_bytes : have_bytes != want_bytes) {
        return REFUSE(v, BH_E_LOAD, "use a register of the instruction's width",
                      "operand %u is a .%s register where .%s is needed", position, have_name,
                      want_name);
    }
    if (!bh__ptx_types_agree(have, type)) {
        return REFUSE(v, BH_E_LOAD, "use a register of the instruction's type",
                      "operand %u is a .%s register where .%s is needed", position, have_name,
                      want_name);
    }
    return BH_OK;
}

static bh_status check_source(const verifier *v, unsigned position, const bh__ptx_operand *o,
                              bh__ptx_type type, bool relaxed) {
    char class = bh__ptx_class(type);
    if (type == T_B128 && o->kind != OPERAND_REG) {
        return REFUSE(v, BH_E_LOAD, "move it to a register first",
                      "operand %u is not a .b128 register", position);
    }
    switch (o->kind) {
    case OPERAND_REG:
        if (o->negated && type != T_PRED) {
            break;
        }
        return check_register(v, position, o->reg, type, relaxed);
    case OPERAND_INT:
        if (type == T_F32 || type == T_F64) {
            return REFUSE(v, BH_E_LOAD, "write it as a float, 0f3F800000 or 1.0 for example",
                          "operand %u is an integer where .%s is needed", position,
                          bh__ptx_type_table[type].name);
        }
        if (class == 'F' || type == T_U16X2 || type == T_S16X2) {
            return REFUSE(v, BH_E_LOAD, "move its bits to a register first",
                          "operand %u is a constant; there are none of type .%s", position,
                          bh__ptx_type_table[type].name);
        }
        return BH_OK;
    case OPERAND_FLOAT:
        if (type == T_F32 || type == T_F64 || (type == T_B32 && o->single) ||
            (type == T_B64 && !o->single)) {
            return BH_OK;
        }
        return REFUSE(v, BH_E_LOAD,
                      class == 'F' ? "move its bits to a register first" : "write it as an integer",
                      "operand %u is a float of %u bits where .%s is needed", position,
                      o->single ? 32 : 64, bh__ptx_type_table[type].name);
    case OPERAND_SREG:
        return REFUSE(v, BH_E_LOAD, "move it to a register first",
                      "only mov can read a special register, %s here",
                      bh__ptx_sreg_table[o->sreg].name);
    case OPERAND_ADDRESS:
        /* A variable in shared memory, for its address in another block. */
        if ((v->insn->op == OP_MAPA || v->insn->op == OP_GETCTARANK) &&
            HAS(v->insn, SHARED_CLUSTER) && o->symbol->kind == SYMBOL_VAR &&
            o->symbol->var->space == SPACE_SHARED) {
            return BH_OK;
        }
        return REFUSE(v, BH_E_LOAD, "take the address with mov first",
                      "operand %u is the address of %s", position, o->symbol->name);
    default:
        break;
    }
    return REFUSE(v, BH_E_LOAD, "give a register or a constant", "operand %u is of the wrong kind",
                  position);
}

static bh_status check_dest(const verifier *v, unsigned position, const bh__ptx_operand *o,
                            bh__ptx_type type, bool relaxed) {
    if (o->kind == OPERAND_SINK && (v->insn->op == OP_ATOM || v->insn->op == OP_LOP3)) {
        return BH_OK;
    }
    if (o->kind == OPERAND_SINK) {
        return REFUSE(v, BH_E_LOAD, "write to a register", "the result of %s cannot be discarded",
                      bh__ptx_op_table[v->insn->op].mnemonic);
    }
    if (o->kind != OPERAND_REG || o->negated) {
        return REFUSE(v, BH_E_LOAD, "write to a register", "operand %u is not a register",
                      position);
    }
    return check_register(v, position, o->reg, type, relaxed);
}

/* One of several results. */
static bh_status check_part(const verifier *v, unsigned position, const bh__ptx_operand *o,
                            bh__ptx_type type, bool relaxed) {
    return o->kind == OPERAND_SINK ? BH_OK : check_dest(v, position, o, type, relaxed);
}

static bh_status check_pair(const verifier *v, unsigned position, const bh__ptx_operand *o,
                            bh__ptx_type type) {
    if (o->kind != OPERAND_PAIR) {
        return check_dest(v, position, o, type, false);
    }
    bh_status status = check_part(v, position, &o->elements[0], type, false);
    return status != BH_OK ? status : check_part(v, position, &o->elements[1], T_PRED, false);
}

static unsigned vector_count(const bh__ptx_insn *insn) {
    return HAS(insn, V2) ? 2 : HAS(insn, V4) ? 4 : HAS(insn, V8) ? 8 : 1;
}

static bh_status check_vector(const verifier *v, unsigned position, const bh__ptx_operand *o,
                              bh__ptx_type type, bool dest, bool relaxed) {
    unsigned count = vector_count(v->insn);
    if (count == 1) {
        return dest ? check_dest(v, position, o, type, relaxed)
                    : check_source(v, position, o, type, relaxed);
    }
    if (o->kind != OPERAND_VECTOR || o->count != count) {
        return REFUSE(v, BH_E_LOAD, "list as many registers in braces as the vector has",
                      "operand %u is not a vector of %u elements", position, count);
    }
    if (bh__ptx_bytes(type) * count > 32) {
        return REFUSE(v, BH_E_LOAD, "use two accesses", "a vector of %u bytes; at most 32 exist",
                      bh__ptx_bytes(type) * count);
    }
    for (unsigned i = 0; i < count; i++) {
        const bh__ptx_operand *e = &o->elements[i];
        bh_status status = dest ? check_part(v, position, e, type, relaxed)
                                : check_source(v, position, e, type, relaxed);
        if (status != BH_OK) {
            return status;
        }
    }
    return BH_OK;
}

/* A name in brackets: its state space must be that of the instruction, and the access inside it. */
static bh_status check_named_memory(const verifier *v, const bh__ptx_operand *o,
                                    bh__ptx_space space) {
    const bh__ptx_var *var = o->symbol->var;
    bool plain = var->space == SPACE_GLOBAL;
    bool shared = var->space == SPACE_SHARED && space == SPACE_CLUSTER;
    if (var->space != space && !shared && !(space == SPACE_GENERIC && plain)) {
        return REFUSE(v, BH_E_LOAD, "name the space that the variable is in",
                      "%s is not in the state space of the instruction", o->symbol->name);
    }
    if (space != SPACE_PARAM || v->insn->type_count == 0) {
        return BH_OK;
    }
    if (var->unsized) {
        return BH_OK; /* checked when it is accessed: the argument has a size */
    }
    uint64_t bytes = (uint64_t)bh__ptx_bytes(v->insn->types[0]) * vector_count(v->insn);
    if (o->imm > var->size || bytes > var->size - o->imm) {
        return REFUSE(v, BH_E_LOAD, "stay inside the parameter",
                      "bytes %lld to %lld of %s, which has %llu", (long long)o->imm,
                      (long long)(o->imm + bytes - 1), o->symbol->name,
                      (unsigned long long)var->size);
    }
    if ((var->offset + o->imm) % bh__ptx_bytes(v->insn->types[0]) != 0) {
        return REFUSE(v, BH_E_LOAD, "align the access to its size",
                      "offset %lld of %s is not aligned to %u bytes", (long long)o->imm,
                      o->symbol->name, bh__ptx_bytes(v->insn->types[0]));
    }
    return BH_OK;
}

static bh_status check_memory(const verifier *v, unsigned position, const bh__ptx_operand *o,
                              bh__ptx_space space) {
    if (o->kind != OPERAND_MEMORY) {
        return REFUSE(v, BH_E_LOAD, "put the address in brackets", "operand %u is not an address",
                      position);
    }
    if (o->symbol != NULL) {
        return check_named_memory(v, o, space);
    }
    if (!o->has_reg) {
        return space == SPACE_LOCAL
                   ? BH_OK
                   : REFUSE(v, BH_E_LOAD, "put the address in a register",
                            "operand %u is a number as an address, which only .local has",
                            position);
    }
    bh__ptx_type type = v->function->regs[o->reg].type;
    unsigned bytes = bh__ptx_bytes(type);
    bool window = space == SPACE_SHARED || space == SPACE_LOCAL || space == SPACE_PARAM ||
                  space == SPACE_CONST || space == SPACE_CLUSTER;
    if (bh__ptx_class(type) == 'F' || !(bytes == 8 || (bytes == 4 && window))) {
        return REFUSE(v, BH_E_LOAD, "hold addresses in 64-bit integer registers",
                      "the address is in a .%s register", bh__ptx_type_table[type].name);
    }
    return BH_OK;
}

static bh_status check_operand(const verifier *v, unsigned position, char letter, bool dest,
                               const bh__ptx_operand *o) {
    const bh__ptx_insn *insn = v->insn;
    bh__ptx_type t0 = insn->type_count > 0 ? (bh__ptx_type)insn->types[0] : T_NONE;
    bh__ptx_type t1 = insn->type_count > 1 ? (bh__ptx_type)insn->types[1] : t0;
    bh__ptx_type type = t0;
    bool relaxed = false;
    switch (letter) {
    case 't':
    case 'c':
        break;
    case 'y':
        type = t1;
        break;
    case 'w':
        type = HAS(insn, WIDE) ? widened(t0) : t0;
        break;
    case 'u':
        type = T_U32;
        break;
    case 'q':
    case 'k':
        type = T_U64;
        break;
    case 'p':
        type = T_PRED;
        break;
    case 'r':
        relaxed = true;
        break;
    case 'R':
        type = t1;
        relaxed = true;
        break;
    case 'P':
        return check_pair(v, position, o, T_PRED);
    case 'D':
        return check_pair(v, position, o, t0);
    case 'E':
        return check_pair(v, position, o, T_U32);
    case 'v':
        return check_vector(v, position, o, t0, dest, true);
    case 'V':
        return check_vector(v, position, o, t0, dest, false);
    case 'm':
        return check_memory(v, position, o, bh__ptx_insn_space(insn));
    case 'a':
        if (o->kind == OPERAND_REG) {
            type = v->function->regs[o->reg].type;
            if (bh__ptx_bytes(type) < 4 || bh__ptx_class(type) == 'F') {
                type = T_U64;
            }
        } else {
            type = T_U64;
        }
        break;
    case 'i':
        if (o->kind != OPERAND_INT) {
            return REFUSE(v, BH_E_LOAD, "give a number", "operand %u must be a constant", position);
        }
        return BH_OK;
    default:
        return BH_OK;
    }
    if (type == T_NONE) {
        return REFUSE(v, BH_E_UNSUPPORTED, "use the narrower form",
                      "the CPU device does not support 128-bit products");
    }
    return dest ? check_dest(v, position, o, type, relaxed)
                : check_source(v, position, o, type, relaxed);
}

static bh_status check_insn(const verifier *v) {
    const bh__ptx_insn *insn = v->insn;
    const char *s = bh__ptx_op_table[insn->op].operands;
    unsigned n = 0;
    bool dest = false;
    for (; *s != 0; s++) {
        if (*s == '*') {
            return BH_OK;
        }
        if (*s == ' ') {
            continue;
        }
        if (*s == '=') {
            dest = true;
            continue;
        }
        if ((*s == 'c' && !HAS(insn, CAS)) || (*s == 'k' && !HAS(insn, POLICY))) {
            continue;
        }
        bool optional = s[1] == '?';
        if (n == insn->operand_count) {
            if (optional) {
                s++;
                continue;
            }
            return REFUSE(v, BH_E_LOAD, "add the missing operands", "%u operands are too few", n);
        }
        bh_status status = check_operand(v, n + 1, *s, dest, &insn->operands[n]);
        if (status != BH_OK) {
            return status;
        }
        n++;
        dest = false;
        s += optional;
    }
    if (n < insn->operand_count) {
        return REFUSE(v, BH_E_LOAD, "remove the extra operands", "%u operands are too many",
                      (unsigned)insn->operand_count);
    }
    return BH_OK;
}

/* Loads and stores: an order needs a scope, a scope an order, and both a space that is shared. */
static bh_status check_order(const verifier *v) {
    const bh__ptx_insn *insn = v->insn;
    bh__ptx_space space = bh__ptx_insn_space(insn);
    bool scope = HAS(insn, CTA) || HAS(insn, CLUSTER) || HAS(insn, GPU) || HAS(insn, SYS);
    bool order = HAS(insn, RELAXED) || HAS(insn, ACQUIRE) || HAS(insn, RELEASE);
    if (scope != order) {
        return REFUSE(v, BH_E_LOAD, "write both, .relaxed.gpu for example, or neither",
                      scope ? "a scope without .relaxed, .acquire or .release"
                            : "an order without .cta, .cluster, .gpu or .sys");
    }
    bool private = space == SPACE_LOCAL || space == SPACE_PARAM || space == SPACE_CONST;
    if ((order || HAS(insn, VOLATILE)) && private) {
        return REFUSE(v, BH_E_LOAD, "remove the order",
                      "accesses to this state space have no order: no other thread writes there");
    }
    if (HAS(insn, MMIO) && !(HAS(insn, RELAXED) && HAS(insn, SYS))) {
        return REFUSE(v, BH_E_LOAD, "write .mmio.relaxed.sys", ".mmio needs .relaxed.sys");
    }
    return BH_OK;
}

static bh_status check_noftz(const verifier *v) {
    const bh__ptx_insn *insn = v->insn;
    bh__ptx_type type = (bh__ptx_type)insn->types[0];
    bool half = type == T_F16 || type == T_BF16 || is_pair(type);
    if (half != HAS(insn, NOFTZ)) {
        return REFUSE(v, BH_E_LOAD, half ? "write .noftz" : "remove it",
                      half ? ".%s needs .noftz" : ".noftz is not for .%s",
                      bh__ptx_type_table[type].name);
    }
    return BH_OK;
}

static bh_status require(const verifier *v, bool found, const char *what) {
    return found ? BH_OK
                 : REFUSE(v, BH_E_LOAD, "add it", "%s needs %s",
                          bh__ptx_op_table[v->insn->op].mnemonic, what);
}

/* Positions and lengths of bit fields. */
static bh_status check_field(const verifier *v) {
    for (unsigned n = 2; n < v->insn->operand_count; n++) {
        const bh__ptx_operand *o = &v->insn->operands[n];
        bool number = n >= (v->insn->op == OP_BFE ? 2 : 3) && o->kind == OPERAND_INT;
        if (number && o->imm > UINT8_MAX) {
            return REFUSE(v, BH_E_LOAD, "give a number from 0 to 255",
                          "operand %u is %lld, which is out of range", n + 1, (long long)o->imm);
        }
    }
    return BH_OK;
}

/* Modifiers that need each other, or that cannot be left out; numbers that are out of range. */
static bh_status check_modifiers(const verifier *v) {
    const bh__ptx_insn *insn = v->insn;
    switch (insn->op) {
    case OP_LD:
    case OP_ST:
    case OP_MULTILOAD:
    case OP_MULTISTORE:
    case OP_MULTIRED:
        return check_order(v);
    case OP_ATOM:
    case OP_RED:
        return check_noftz(v);
    case OP_BFE:
    case OP_BFI:
        return check_field(v);
    case OP_FENCE:
        return require(v,
                       HAS(insn, CTA) || HAS(insn, CLUSTER) || HAS(insn, GPU) || HAS(insn, SYS) ||
                           HAS(insn, PROXY),
                       "a scope: .cta, .cluster, .gpu or .sys");
    case OP_MEMBAR:
        return require(v, HAS(insn, CTA) || HAS(insn, GL) || HAS(insn, SYS) || HAS(insn, PROXY),
                       "a level: .cta, .gl or .sys");
    case OP_PREFETCH:
        return require(v, HAS(insn, L1) || HAS(insn, L2) || HAS(insn, HINT) || HAS(insn, TENSORMAP),
                       "a cache level: .L1 or .L2");
    case OP_PREFETCHU:
        return require(v, HAS(insn, L1), ".L1");
    case OP_DISCARD:
        return require(v, HAS(insn, L2), ".L2");
    case OP_APPLYPRIORITY:
        return require(v, HAS(insn, HINT), ".L2::evict_normal");
    case OP_MADF:
        return require(v, HAS(insn, RN) || HAS(insn, RZ) || HAS(insn, RM) || HAS(insn, RP),
                       "a rounding mode: .rn, .rz, .rm or .rp");
    default:
        return BH_OK;
    }
}

static bh_status check_function(const bh__ptx_module *module, const bh__ptx_function *f,
                                bh_error *error) {
    for (uint32_t i = 0; i < f->insn_count; i++) {
        verifier v = {module, f, &f->insns[i], error};
        bh_status status = check_modifiers(&v);
        status = status == BH_OK ? check_insn(&v) : status;
        if (status != BH_OK) {
            return status;
        }
    }
    return BH_OK;
}

static bh_status check_missing(const bh__ptx_module *module, const bh__ptx_function *f,
                               bh_error *error) {
    if (strncmp(f->name, "cuda", 4) == 0) { /* cudaMalloc, cudaLaunchDeviceV2 and so on */
        return bh__ptx_error_at(module, error, BH_E_UNSUPPORTED, f->line, 0, 0,
                                "use malloc and free in place of cudaMalloc and cudaFree, and "
                                "launch kernels from the host",
                                "the CPU device has no CUDA runtime for kernels: %s", f->name);
    }
    return bh__ptx_error_at(module, error, BH_E_LOAD, f->line, 0, 0,
                            "compile the function into the same module, or link the modules first",
                            "function %s is declared but not defined", f->name);
}

bh_status bh__ptx_verify(bh__ptx_module *module, bh_error *error) {
    for (uint32_t i = 0; i < module->global_count; i++) {
        const bh__ptx_symbol *s = module->globals[i];
        if (s->var->is_extern) {
            return bh__ptx_error_at(module, error, BH_E_LOAD, s->line, 0, 0,
                                    "define the variable in the same module",
                                    "variable %s is declared .extern but not defined", s->name);
        }
    }
    for (uint32_t i = 0; i < module->function_count; i++) {
        const bh__ptx_function *f = module->functions[i];
        bh_status status = BH_OK;
        if (f->defined) {
            status = check_function(module, f, error);
        } else if (f->called && f->builtin == BUILTIN_NONE) {
            status = check_missing(module, f, error);
        }
        if (status != BH_OK) {
            return status;
        }
    }
    return BH_OK;
}
