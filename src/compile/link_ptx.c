/* SPDX-License-Identifier: Apache-2.0 */
/* Linking PTX to PTX with the project's own linker, which needs no software of NVIDIA's. */
#include <stdio.h>

#include "compile/compile.h"
#include "ptx/link.h"

/* Flags are for nvJitLink: they change the code that it makes, and here none is made. */
static bh_status refuse_flags(bh__compile *c) {
    return bh__fail(&c->answer->error, BH_E_INVALID, "remove it, or ask for a cubin",
                    "flag '%.100s' has no effect on PTX that is linked to PTX",
                    bh__chars(c->job->extra.list[0]));
}

bh_status bh__compile_link_ptx(bh__compile *c, bh__bytes *out) {
    bh__texts inputs = c->job->inputs, names = c->job->input_names;
    bh__ptx_text *texts = bh__arena_alloc(c->arena, inputs.count, sizeof *texts);
    if (texts == NULL) return bh__compile_no_memory(c);
    if (c->job->output == BH_OUTPUT_PTX && c->job->extra.count > 0) return refuse_flags(c);
    for (size_t i = 0; i < inputs.count; i++) {
        const char *name = i < names.count ? bh__chars(names.list[i]) : "";
        texts[i] = (bh__ptx_text){name[0] ? name : bh__text_format(c->arena, "part %zu", i),
                                  bh__chars(inputs.list[i]), inputs.list[i].count};
        if (texts[i].name == NULL) return bh__compile_no_memory(c);
    }
    bh__ptx_linked linked;
    bh_status status = bh__ptx_link(c->arena, texts, inputs.count, &c->answer->error, &linked);
    c->answer->log = bh__bytes_of(linked.log);
    if (status != BH_OK) return status;
    *out = (bh__bytes){(const uint8_t *)linked.text, linked.length};
    if (c->job->max_registers) *out = bh__ptx_limit_registers(c, *out, c->job->max_registers);
    if (c->job->output == BH_OUTPUT_PTX)
        c->answer->arch = bh__bytes_of(bh__text_format(c->arena, "%s", linked.arch));
    return out->data != NULL ? BH_OK : bh__compile_no_memory(c);
}
