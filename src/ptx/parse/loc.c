/* SPDX-License-Identifier: Apache-2.0 */
/* .loc and .file, which give source positions. Nothing marks their end: an instruction may follow
 * on the same line. */
#include "ptx/parse/parse.h"

static bool take(bh__ptx_parser *p, bh__ptx_token_kind kind, uint32_t *end) {
    if (p->token.kind != kind) return false;
    *end = p->token.start + p->token.length;
    bh__ptx_next(p);
    return true;
}

void bh__ptx_loc_take(bh__ptx_parser *p, bh__ptx_loc *out) {
    *out = (bh__ptx_loc){.start = p->token.start};
    take(p, TOKEN_DOT, &out->end);
    out->number = p->token;
    out->file = p->token.kind == TOKEN_INT ? (uint32_t)p->token.value : 0;
    uint32_t count = 0;
    for (; count < 3; count++) {
        if (count == 1 && p->token.kind == TOKEN_INT) out->line = (uint32_t)p->token.value;
        if (!take(p, TOKEN_INT, &out->end)) break;
    }
    out->whole = count >= 2;
    out->numbers_end = out->end;
    if (!bh__ptx_accept(p, ',')) return;
    if (!take(p, TOKEN_WORD, &out->end) || !take(p, TOKEN_WORD, &out->end)) return;
    if (bh__ptx_accept(p, '+')) take(p, TOKEN_INT, &out->end);
    if (!bh__ptx_accept(p, ',') || !take(p, TOKEN_WORD, &out->end)) return;
    for (count = 0; count < 3 && take(p, TOKEN_INT, &out->end);) count++;
}

bool bh__ptx_file_take(bh__ptx_parser *p, uint32_t *out_number, bh__ptx_token *out_name,
                       uint32_t *out_end) {
    bh__ptx_next(p);
    *out_number = (uint32_t)p->token.value;
    if (!take(p, TOKEN_INT, out_end)) return false;
    *out_name = p->token;
    if (!take(p, TOKEN_STRING, out_end)) return false;
    for (unsigned n = 0; n < 2 && bh__ptx_accept(p, ','); n++)
        if (!take(p, TOKEN_INT, out_end)) return false;
    return true;
}
