/* SPDX-License-Identifier: Apache-2.0 */
/* Comparing what two workers say that a module holds. */
#include <stdlib.h>
#include <string.h>

#include "client/module/module.h"

/* What arguments are placed and launches are checked by. */
static bool same_kernel(const bh__kernel *a, const bh__kernel *b) {
    const bh__blob_kernel *left = &a->shape, *right = &b->shape;
    return strcmp(a->name, b->name) == 0 && left->param_count == right->param_count &&
           left->param_bytes == right->param_bytes && left->static_shared == right->static_shared &&
           left->max_threads == right->max_threads && left->needs_cluster == right->needs_cluster &&
           memcmp(left->required_block, right->required_block, sizeof left->required_block) == 0 &&
           memcmp(left->required_cluster, right->required_cluster, sizeof left->required_cluster) ==
               0 &&
           memcmp(a->params, b->params, left->param_count * sizeof *a->params) == 0;
}

static bool same_variable(const bh__variable *a, const bh__variable *b) {
    return strcmp(a->name, b->name) == 0 && a->bytes == b->bytes && a->writable == b->writable;
}

static bool same(const bh__module *a, const bh__module *b) {
    bool all = a->kernel_count == b->kernel_count && a->variable_count == b->variable_count;
    for (uint32_t i = 0; all && i < a->kernel_count; i++)
        all = same_kernel(&a->kernels[i], &b->kernels[i]);
    for (uint32_t i = 0; all && i < a->variable_count; i++)
        all = same_variable(&a->variables[i], &b->variables[i]);
    return all;
}

bh__description bh__module_compare(const bh__module *module, int blob_fd) {
    bh__module other = {.image_bytes = module->image_bytes};
    bool read = bh__module_parse(&other, blob_fd);
    bool differs = read && !same(module, &other);
    free(other.kernels);
    free(other.variables);
    free(other.blob);
    if (!read) return BH__DESCRIPTION_UNREADABLE;
    return differs ? BH__DESCRIPTION_DIFFERS : BH__DESCRIPTION_SAME;
}
