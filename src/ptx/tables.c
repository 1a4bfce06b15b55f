/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of ops.h as data, and the quoting of source text in errors. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>

#include "ptx/ir.h"

const bh__ptx_type_info bh__ptx_type_table[T_COUNT] = {[T_NONE] = {"", 0, 0},
#define X(id, name, bytes, class) [T_##id] = {name, bytes, class},
                                                       BH__PTX_TYPES(X)
#undef X
};

const char *const bh__ptx_mod_names[M_COUNT] = {
#define X(id, name, group) name,
    BH__PTX_MODS(X)
#undef X
};

#define T(id) (UINT64_C(1) << T_##id)
#define M(id) ((bh__ptx_mods)1 << M_##id)

const bh__ptx_op_info bh__ptx_op_table[OP_COUNT] = {
#define X(id, mnemonic, operands, type0, type1, mods, unit)                                        \
    {mnemonic, operands, type0, type1, mods, UNIT_##unit},
    BH__PTX_OPS(X)
#undef X
};

const bh__ptx_sreg_info bh__ptx_sreg_table[SREG_COUNT] = {
    [SREG_TID] = {"%tid", T_U32, true},
    [SREG_NTID] = {"%ntid", T_U32, true},
    [SREG_CTAID] = {"%ctaid", T_U32, true},
    [SREG_NCTAID] = {"%nctaid", T_U32, true},
    [SREG_CLUSTERID] = {"%clusterid", T_U32, true},
    [SREG_NCLUSTERID] = {"%nclusterid", T_U32, true},
    [SREG_CLUSTER_CTAID] = {"%cluster_ctaid", T_U32, true},
    [SREG_CLUSTER_NCTAID] = {"%cluster_nctaid", T_U32, true},
    [SREG_CLUSTER_CTARANK] = {"%cluster_ctarank", T_U32, false},
    [SREG_CLUSTER_NCTARANK] = {"%cluster_nctarank", T_U32, false},
    [SREG_IS_EXPLICIT_CLUSTER] = {"%is_explicit_cluster", T_PRED, false},
    [SREG_LANEID] = {"%laneid", T_U32, false},
    [SREG_WARPID] = {"%warpid", T_U32, false},
    [SREG_NWARPID] = {"%nwarpid", T_U32, false},
    [SREG_SMID] = {"%smid", T_U32, false},
    [SREG_NSMID] = {"%nsmid", T_U32, false},
    [SREG_GRIDID] = {"%gridid", T_U64, false},
    [SREG_CLOCK] = {"%clock", T_U32, false},
    [SREG_CLOCK_HI] = {"%clock_hi", T_U32, false},
    [SREG_CLOCK64] = {"%clock64", T_U64, false},
    [SREG_GLOBALTIMER] = {"%globaltimer", T_U64, false},
    [SREG_GLOBALTIMER_LO] = {"%globaltimer_lo", T_U32, false},
    [SREG_GLOBALTIMER_HI] = {"%globaltimer_hi", T_U32, false},
    [SREG_LANEMASK_EQ] = {"%lanemask_eq", T_U32, false},
    [SREG_LANEMASK_LE] = {"%lanemask_le", T_U32, false},
    [SREG_LANEMASK_LT] = {"%lanemask_lt", T_U32, false},
    [SREG_LANEMASK_GE] = {"%lanemask_ge", T_U32, false},
    [SREG_LANEMASK_GT] = {"%lanemask_gt", T_U32, false},
    [SREG_DYNAMIC_SMEM_SIZE] = {"%dynamic_smem_size", T_U32, false},
    [SREG_TOTAL_SMEM_SIZE] = {"%total_smem_size", T_U32, false},
    [SREG_AGGR_SMEM_SIZE] = {"%aggr_smem_size", T_U32, false},
    [SREG_RESERVED_BEGIN] = {"%reserved_smem_offset_begin", T_U32, false},
    [SREG_RESERVED_END] = {"%reserved_smem_offset_end", T_U32, false},
    [SREG_RESERVED_CAP] = {"%reserved_smem_offset_cap", T_U32, false},
    [SREG_RESERVED_0] = {"%reserved_smem_offset_0", T_U32, false},
    [SREG_RESERVED_1] = {"%reserved_smem_offset_1", T_U32, false},
    [SREG_ENVREG] = {"%envreg", T_U32, false},
};

/* One line of printable text: white space becomes one space; truncated to `size`. */
static void quote(const bh__ptx_module *module, uint32_t text, uint32_t length, char *out,
                  size_t size) {
    size_t n = 0;
    bool space = false;
    for (uint32_t i = 0; i < length && text + i < module->length; i++) {
        unsigned char c = (unsigned char)module->text[text + i];
        if (isspace(c)) {
            space = n > 0;
            continue;
        }
        if (n + 5 >= size) {
            out[n++] = '.';
            out[n++] = '.';
            break;
        }
        if (space) {
            out[n++] = ' ';
            space = false;
        }
        out[n++] = isprint(c) ? (char)c : '?';
    }
    out[n] = 0;
}

bh_status bh__ptx_error_at(const bh__ptx_module *module, bh_error *error, bh_status status,
                           uint32_t line, uint32_t text, uint32_t length, const char *fix,
                           const char *format, ...) {
    char what[320], quoted[140];
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    quote(module, text, length, quoted, sizeof quoted);
    if (quoted[0] == 0) {
        return bh__fail(error, status, fix, "line %u: %s", (unsigned)line, what);
    }
    return bh__fail(error, status, fix, "line %u: %s: `%s`", (unsigned)line, what, quoted);
}

void bh__ptx_quote(const bh__ptx_module *module, uint32_t text, uint32_t length, char *out,
                   size_t size) {
    quote(module, text, length, out, size);
}
