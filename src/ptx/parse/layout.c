/* SPDX-License-Identifier: Apache-2.0 */
/* Memory layout: the shared variables of each kernel, and stack depth from the call graph. */
#include <string.h>

#include "ptx/ir.h"

static bh_status no_memory(bh_error *error) {
    return bh__fail(error, BH_E_NO_HOST_MEMORY, "free memory, or load a smaller module",
                    "no memory to lay out a module");
}

static bool add_edge(bh__ptx_module *module, bh__ptx_function *f, bh__ptx_function *callee) {
    bh__ptx_call_edge *edge = bh__arena_alloc(&module->arena, 1, sizeof *edge);
    if (edge == NULL) {
        return false;
    }
    *edge = (bh__ptx_call_edge){callee, f->calls};
    f->calls = edge;
    return true;
}

static bool find_calls(bh__ptx_module *module, bh__ptx_function *f) {
    for (uint32_t i = 0; i < f->insn_count; i++) {
        const bh__ptx_insn *insn = &f->insns[i];
        if (insn->op != OP_CALL) {
            continue;
        }
        bool known = false;
        for (unsigned n = 0; n < insn->operand_count && !known; n++) {
            const bh__ptx_operand *o = &insn->operands[n];
            if (o->kind == OPERAND_ADDRESS && o->symbol->kind == SYMBOL_FUNCTION) {
                known = true;
                if (!add_edge(module, f, o->symbol->function)) {
                    return false;
                }
            }
        }
        f->calls_unknown |= !known;
    }
    return true;
}

typedef struct walk {
    bh__ptx_module *module;
    bh__ptx_function **stack; /* each function at most once */
    uint32_t depth, mark;
} walk;

static void push(walk *w, bh__ptx_function *f) {
    if (f->mark != w->mark) {
        f->mark = w->mark;
        w->stack[w->depth++] = f;
    }
}

/* Calls `visit` for `from` and every function that it can call, directly or not. */
static void reach(walk *w, bh__ptx_function *from, void (*visit)(void *, bh__ptx_function *),
                  void *context) {
    w->mark++;
    push(w, from);
    while (w->depth > 0) {
        bh__ptx_function *f = w->stack[--w->depth];
        visit(context, f);
        for (const bh__ptx_call_edge *e = f->calls; e != NULL; e = e->next) {
            push(w, e->callee);
        }
        for (uint32_t i = 0; f->calls_unknown && i < w->module->function_count; i++) {
            if (w->module->functions[i]->address_taken) {
                push(w, w->module->functions[i]);
            }
        }
    }
}

/*
 * A shared variable has one offset in the whole module, because kernels can call the same
 * functions. Variables that several kernels use are placed first, without overlap; then the
 * variables that one kernel uses, after the common ones that it uses. Variables of unrelated
 * kernels may overlap.
 */
typedef struct shared_layout {
    uint64_t top;
    uint32_t kernel; /* plus one */
} shared_layout;

static void place(shared_layout *s, bh__ptx_var *var) {
    uint64_t offset = (s->top + var->align - 1) & ~((uint64_t)var->align - 1);
    if (offset <= UINT32_MAX / 2) {
        var->offset = (uint32_t)offset;
        s->top = offset + var->size;
        var->placed = true;
    }
}

static void count_users(void *context, bh__ptx_function *f) {
    const shared_layout *s = context;
    for (uint32_t i = 0; i < f->shared_count; i++) {
        bh__ptx_var *var = f->shared[i];
        var->users += var->last_user != s->kernel;
        var->last_user = s->kernel;
    }
}

static void place_common(void *context, bh__ptx_function *f) {
    for (uint32_t i = 0; i < f->shared_count; i++) {
        bh__ptx_var *var = f->shared[i];
        if (!var->is_extern && !var->placed && var->users > 1) {
            place(context, var);
        }
    }
}

static void find_top(void *context, bh__ptx_function *f) {
    shared_layout *s = context;
    for (uint32_t i = 0; i < f->shared_count; i++) {
        uint64_t end = (uint64_t)f->shared[i]->offset + f->shared[i]->size;
        if (f->shared[i]->placed && end > s->top) {
            s->top = end;
        }
    }
}

static void place_own(void *context, bh__ptx_function *f) {
    for (uint32_t i = 0; i < f->shared_count; i++) {
        if (!f->shared[i]->is_extern && !f->shared[i]->placed) {
            place(context, f->shared[i]);
        }
    }
}

static bh_status layout_shared(walk *w, bh_error *error) {
    bh__ptx_module *m = w->module;
    for (uint32_t i = 0; i < m->kernel_count; i++) {
        shared_layout s = {.kernel = i + 1};
        reach(w, m->kernel_functions[i], count_users, &s);
    }
    shared_layout common = {0};
    for (uint32_t i = 0; i < m->kernel_count; i++) {
        reach(w, m->kernel_functions[i], place_common, &common);
    }
    for (uint32_t i = 0; i < m->kernel_count; i++) {
        shared_layout s = {0};
        reach(w, m->kernel_functions[i], find_top, &s);
        reach(w, m->kernel_functions[i], place_own, &s);
        if (s.top > BH__PTX_MAX_SHARED) {
            const bh__ptx_function *f = m->kernel_functions[i];
            return bh__ptx_error_at(
                m, error, BH_E_LOAD, f->line, 0, 0, "use less shared memory",
                "kernel %s has %llu bytes of shared variables; at most %llu fit", f->name,
                (unsigned long long)s.top, (unsigned long long)BH__PTX_MAX_SHARED);
        }
        m->kernels[i].static_shared = (uint32_t)s.top;
    }
    return BH_OK;
}

typedef struct dynamic_layout {
    uint32_t align;
} dynamic_layout;

static void visit_dynamic(void *context, bh__ptx_function *f) {
    dynamic_layout *d = context;
    for (uint32_t i = 0; i < f->shared_count; i++) {
        if (f->shared[i]->is_extern && f->shared[i]->align > d->align) {
            d->align = f->shared[i]->align;
        }
    }
}

static void visit_local(void *context, bh__ptx_function *f) {
    *(uint64_t *)context += f->local_bytes;
}

static void round_frames(bh__ptx_module *m) {
    for (uint32_t i = 0; i < m->function_count; i++) {
        bh__ptx_function *f = m->functions[i];
        f->local_align = f->local_align < 16 ? 16 : f->local_align;
        f->local_used = f->local_bytes;
        f->local_bytes = (f->local_bytes + f->local_align - 1) & ~(f->local_align - 1);
    }
}

static void describe_kernel(bh__ptx_kernel *k, const bh__ptx_function *f, bh__ptx_param *params) {
    k->name = f->name;
    k->params = params;
    k->param_count = f->param_count;
    k->param_bytes = f->param_bytes;
    k->max_threads = f->max_threads;
    memcpy(k->required, f->required, sizeof k->required);
    memcpy(k->cluster, f->cluster, sizeof k->cluster);
    k->max_cluster = f->max_cluster != 0 && f->max_cluster < BH__PTX_MAX_CLUSTER
                         ? f->max_cluster
                         : BH__PTX_MAX_CLUSTER;
    k->needs_cluster = f->needs_cluster;
    for (uint32_t i = 0; i < f->param_count; i++) {
        const bh__ptx_var *var = f->params[i];
        params[i] = (bh__ptx_param){var->offset, (uint32_t)var->size, var->align, var->pointer,
                                    var->type == T_F64 && var->size == 8};
    }
    for (uint32_t i = 0; i < f->reg_count; i++) {
        unsigned bytes = bh__ptx_bytes(f->regs[i].type);
        k->registers += bytes == 8 ? 2 : bytes == 0 ? 0 : 1;
    }
}

static bh_status describe(bh__ptx_module *m, bh_error *error) {
    for (uint32_t i = 0; i < m->function_count; i++) {
        m->kernel_count += m->functions[i]->entry && m->functions[i]->defined;
    }
    m->kernels = bh__arena_alloc(&m->arena, m->kernel_count, sizeof *m->kernels);
    m->kernel_functions = bh__arena_alloc(&m->arena, m->kernel_count, sizeof *m->kernel_functions);
    m->variables = bh__arena_alloc(&m->arena, m->global_count, sizeof *m->variables);
    if (m->kernels == NULL || m->kernel_functions == NULL || m->variables == NULL) {
        return no_memory(error);
    }
    for (uint32_t i = 0, n = 0; i < m->function_count; i++) {
        bh__ptx_function *f = m->functions[i];
        if (!f->entry || !f->defined) {
            continue;
        }
        bh__ptx_param *params = bh__arena_alloc(&m->arena, f->param_count, sizeof *params);
        if (params == NULL) {
            return no_memory(error);
        }
        describe_kernel(&m->kernels[n], f, params);
        f->kernel = &m->kernels[n];
        m->kernel_functions[n++] = f;
    }
    for (uint32_t i = 0; i < m->global_count; i++) {
        const bh__ptx_var *var = m->globals[i]->var;
        m->variables[i] = (bh__ptx_variable){m->globals[i]->name, var->size, var->align,
                                             var->space == SPACE_CONST};
    }
    return BH_OK;
}

bh_status bh__ptx_layout(bh__ptx_module *m, bh_error *error) {
    round_frames(m);
    bh_status status = describe(m, error);
    if (status != BH_OK) {
        return status;
    }
    walk w = {.module = m,
              .stack = bh__arena_alloc(&m->arena, (size_t)m->function_count + 1, sizeof *w.stack)};
    if (w.stack == NULL) {
        return no_memory(error);
    }
    for (uint32_t i = 0; i < m->function_count; i++) {
        if (!find_calls(m, m->functions[i])) {
            return no_memory(error);
        }
    }
    status = layout_shared(&w, error);
    dynamic_layout dynamic = {.align = 16};
    for (uint32_t i = 0; status == BH_OK && i < m->kernel_count; i++) {
        uint64_t local = 0;
        reach(&w, m->kernel_functions[i], visit_dynamic, &dynamic);
        reach(&w, m->kernel_functions[i], visit_local, &local);
        m->kernels[i].local_bytes =
            local > BH__PTX_MAX_LOCAL ? (uint32_t)BH__PTX_MAX_LOCAL : (uint32_t)local;
    }
    m->dynamic_align = dynamic.align;
    return status;
}
