/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of ops.h as data, and the quoting of source text in errors. */
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ptx/ir.h"

const bh__ptx_type_info bh__ptx_type_table[T_COUNT] = {[T_NONE] = {"", 0, 0},
#define X(id, name, bytes, class) [T_##id] = {name, bytes, class},
                                                       BH__PTX_TYPES(X)
#undef X
};

const char *const bh__ptx_mod_names[M_COUNT] = {
#define X(id, name, group) [M_##id] = name,
    BH__PTX_MODS(X) BH__PTX_MORE_MODS(X)
#undef X
};

#define T(id)  (UINT64_C(1) << T_##id)
#define M(id)  ((bh__ptx_mods)1 << M_##id)
#define M2(id) ((bh__ptx_mods)1 << (M_##id - M_MORE))

const bh__ptx_op_info bh__ptx_op_table[OP_COUNT] = {
#define X(id, mnemonic, operands, type0, type1, mods, unit)                                        \
    {mnemonic, operands, type0, type1, mods, UNIT_##unit},
    BH__PTX_OPS(X)
#undef X
};

const bh__ptx_mods bh__ptx_op_more[OP_COUNT] = {
#define X(id, mods) [OP_##id] = mods,
    BH__PTX_OPS_MORE(X)
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
    [SREG_PM] = {"%pm", T_U32, false},
    [SREG_PM64] = {"%pm", T_U64, false},
    [SREG_GRAPH_EXEC] = {"%current_graph_exec", T_U64, false},
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
    char place[BH__PTX_PLACE];
    bh__ptx_place(module, line, place);
    if (quoted[0] == 0) {
        return bh__fail(error, status, fix, "%s: %s", place, what);
    }
    return bh__fail(error, status, fix, "%s: %s: `%s`", place, what, quoted);
}

uint32_t bh__ptx_shown_line(const bh__ptx_module *module, uint32_t line, const char **file,
                            uint32_t *file_length) {
    uint32_t low = 0, high = module->mark_count;
    while (low < high) { /* the last mark that is not behind the line */
        uint32_t middle = low + (high - low) / 2;
        if (module->marks[middle].line <= line) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *file = module->name;
    *file_length = module->name != NULL ? (uint32_t)strlen(module->name) : 0;
    if (low == 0) {
        return line;
    }
    const bh__ptx_mark *mark = &module->marks[low - 1];
    if (mark->length > 0) {
        *file = module->text + mark->start;
        *file_length = mark->length;
    }
    return mark->shown + (line - mark->line);
}

const char *bh__ptx_place(const bh__ptx_module *module, uint32_t line, char out[BH__PTX_PLACE]) {
    const char *file;
    uint32_t length, shown = bh__ptx_shown_line(module, line, &file, &length);
    int n = snprintf(out, BH__PTX_PLACE, "line %u%s", (unsigned)shown, length > 0 ? " of " : "");
    /* Of a long path the end says most. */
    uint32_t skip = length > 80 ? length - 80 : 0;
    for (uint32_t i = skip; i < length; i++) {
        out[n++] = isprint((unsigned char)file[i]) ? file[i] : '?';
    }
    out[n] = 0;
    return out;
}

void bh__ptx_quote(const bh__ptx_module *module, uint32_t text, uint32_t length, char *out,
                   size_t size) {
    quote(module, text, length, out, size);
}
