/* SPDX-License-Identifier: Apache-2.0 */
/* Linking PTX to PTX with the project's own linker, which needs no software of NVIDIA's. */
#include <stdio.h>
#include <stdlib.h>

#include "compiler/compile.h"
#include "ptx/link/link.h"

/* Flags are for nvJitLink: they change the code that it makes, and here none is made. */
static bh_status refuse_flags(bh__compile *c) {
    return bh__fail(&c->answer->error, BH_E_INVALID, "remove it, or ask for a cubin",
                    "flag '%.100s' has no effect on PTX that is linked to PTX",
                    bh__chars(c->job->extra.list[0]));
}

const char *bh__compile_input_name(bh__compile *c, size_t index) {
    bh__texts names = c->job->input_names;
    const char *name = index < names.count ? bh__chars(names.list[index]) : "";
    return name[0] ? name : bh__text_format(c->arena, "part %zu", index);
}

/* Gives the texts the names that the job asks for. They come in the order of the inputs. */
static bool ask_names(bh__compile *c, bh__ptx_text *texts, bh__ptx_name *names) {
    const bh__compile_job *job = c->job;
    for (size_t i = 0; i < job->expressions.count; i++) {
        size_t input = strtoul(bh__chars(job->expression_inputs.list[i]), NULL, 10);
        names[i] = (bh__ptx_name){bh__chars(job->expressions.list[i]), NULL};
        if (input >= job->inputs.count) return false;
        if (texts[input].name_count == 0) texts[input].names = &names[i];
        if (&names[i] != texts[input].names + texts[input].name_count) return false;
        texts[input].name_count++;
    }
    return true;
}

static bool answer_names(bh__compile *c, const bh__ptx_name *names) {
    bh__texts *lowered = &c->answer->lowered;
    for (size_t i = 0; i < lowered->count; i++) {
        const char *copy = bh__text_format(c->arena, "%s", names[i].result);
        if (copy == NULL) return false;
        lowered->list[i] = bh__bytes_of(copy);
    }
    return true;
}

static bh_status refuse_names(bh__compile *c) {
    return bh__fail(&c->answer->error, BH_E_INVALID,
                    "install the library and its programs from one version",
                    "the %zu names are not in the order of the %zu inputs",
                    c->job->expressions.count, c->job->inputs.count);
}

bh_status bh__compile_link_ptx(bh__compile *c, bh__bytes *out) {
    bh__texts inputs = c->job->inputs;
    bh__ptx_text *texts = bh__arena_alloc(c->arena, inputs.count, sizeof *texts);
    bh__ptx_name *names = bh__arena_alloc(c->arena, c->job->expressions.count + 1, sizeof *names);
    if (texts == NULL || names == NULL) return bh__compile_no_memory(c);
    if (c->job->output == BH_OUTPUT_PTX && c->job->extra.count > 0) return refuse_flags(c);
    for (size_t i = 0; i < inputs.count; i++) {
        texts[i] = (bh__ptx_text){.name = bh__compile_input_name(c, i),
                                  .text = bh__chars(inputs.list[i]),
                                  .length = inputs.list[i].count};
        if (texts[i].name == NULL) return bh__compile_no_memory(c);
    }
    if (!ask_names(c, texts, names)) return refuse_names(c);
    bh__ptx_linked linked;
    bh_status status = bh__ptx_link(c->arena, texts, inputs.count, &c->answer->error, &linked);
    c->answer->log = bh__bytes_of(linked.log);
    if (status != BH_OK) return status;
    if (!answer_names(c, names)) return bh__compile_no_memory(c);
    *out = (bh__bytes){(const uint8_t *)linked.text, linked.length};
    if (c->job->max_registers) *out = bh__ptx_limit_registers(c, *out, c->job->max_registers);
    if (c->job->output == BH_OUTPUT_PTX)
        c->answer->arch = bh__bytes_of(bh__text_format(c->arena, "%s", linked.arch));
    return out->data != NULL ? BH_OK : bh__compile_no_memory(c);
}
