/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels in what nvJitLink made. It keeps static kernels of the same name apart, but does not
 * say which is which: it calls one of them NAME$3, or, in a cubin made of PTX or cubins, both
 * NAME. */
#include <ctype.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "compiler/compile.h"
#include "compiler/link/image.h"

enum { CUDA_ENTRY = 0x10 }; /* in st_other of a kernel */

typedef struct kernel_list {
    bh__arena *arena;
    bh__bytes *names;
    size_t count, capacity;
    bool failed;
} kernel_list;

static void add(kernel_list *list, const char *name, size_t length) {
    bh__bytes *names =
        bh__arena_grow(list->arena, list->names, list->count, &list->capacity, sizeof *names);
    char *copy = names != NULL ? bh__arena_copy(list->arena, name, length) : NULL;
    if (copy == NULL) {
        list->failed = true;
        return;
    }
    list->names = names;
    names[list->count++] = bh__bytes_of(copy);
}

/* ---- PTX, as NVIDIA's compilers write it ---- */

static void list_ptx(kernel_list *list, bh__bytes text) {
    static const char word[] = ".entry ";
    const char *at = bh__chars(text);
    while ((at = strstr(at, word)) != NULL) {
        at += sizeof word - 1;
        add(list, at, strcspn(at, " \t\n("));
    }
}

/* ---- cubins ---- */

static bool is_inside(bh__bytes image, uint64_t offset, uint64_t bytes) {
    uint64_t end;
    return bh__add_u64(offset, bytes, &end) && end <= image.count;
}

static bool read_section(bh__bytes image, const Elf64_Ehdr *head, uint32_t index, Elf64_Shdr *out) {
    uint64_t offset = head->e_shoff + (uint64_t)index * sizeof *out;
    if (index >= head->e_shnum || !is_inside(image, offset, sizeof *out)) return false;
    memcpy(out, image.data + offset, sizeof *out);
    return out->sh_type == SHT_NOBITS || is_inside(image, out->sh_offset, out->sh_size);
}

static void list_symbols(kernel_list *list, bh__bytes image, const Elf64_Shdr *symbols,
                         const Elf64_Shdr *strings) {
    for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= symbols->sh_size; at += sizeof(Elf64_Sym)) {
        Elf64_Sym symbol;
        memcpy(&symbol, image.data + symbols->sh_offset + at, sizeof symbol);
        if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || !(symbol.st_other & CUDA_ENTRY) ||
            symbol.st_name >= strings->sh_size)
            continue;
        const char *name = (const char *)image.data + strings->sh_offset + symbol.st_name;
        add(list, name, strnlen(name, strings->sh_size - symbol.st_name));
    }
}

static void list_cubin(kernel_list *list, bh__bytes image) {
    Elf64_Ehdr head;
    Elf64_Shdr symbols, strings;
    if (image.count < sizeof head) return;
    memcpy(&head, image.data, sizeof head);
    for (uint32_t i = 0; i < head.e_shnum; i++) {
        if (read_section(image, &head, i, &symbols) && symbols.sh_type == SHT_SYMTAB &&
            read_section(image, &head, symbols.sh_link, &strings))
            list_symbols(list, image, &symbols, &strings);
    }
}

/* ---- names that mean two kernels ---- */

static int compare(const void *a, const void *b) {
    return strcmp(bh__chars(*(const bh__bytes *)a), bh__chars(*(const bh__bytes *)b));
}

static bool is_wanted(const bh__compile_job *job, const char *name, size_t length) {
    for (size_t i = 0; i < job->expressions.count; i++) {
        const char *wanted = bh__chars(job->expressions.list[i]);
        if (strlen(wanted) == length && memcmp(wanted, name, length) == 0) return true;
    }
    return false;
}

/* The length of NAME in NAME$3; 0: the name is no such one. */
static size_t renamed_from(const char *name) {
    const char *mark = strrchr(name, '$');
    if (mark == NULL || mark == name || !isdigit((unsigned char)mark[1])) return 0;
    return mark[1 + strspn(mark + 1, "0123456789")] == 0 ? (size_t)(mark - name) : 0;
}

bh_status bh__compile_check_kernels(bh__compile *c) {
    kernel_list list = {.arena = c->arena};
    if (c->job->output == BH_OUTPUT_PTX)
        list_ptx(&list, c->answer->output);
    else
        list_cubin(&list, c->answer->output);
    if (list.failed) return bh__compile_no_memory(c);
    if (list.count > 1) qsort(list.names, list.count, sizeof *list.names, compare);
    for (size_t i = 0; i < list.count; i++) {
        const char *name = bh__chars(list.names[i]);
        bool twice = i > 0 && strcmp(bh__chars(list.names[i - 1]), name) == 0;
        size_t base = renamed_from(name);
        if (!twice && !(base > 0 && is_wanted(c->job, name, base))) continue;
        return bh__fail(&c->answer->error, BH_E_COMPILE,
                        "give the kernels other names, or link parts that are PTX to PTX",
                        "%s: several parts have a static kernel %.*s, and the result does not say "
                        "which of them a name means",
                        bh__chars(c->answer->version),
                        twice        ? 200
                        : base < 200 ? (int)base
                                     : 200,
                        name);
    }
    return BH_OK;
}
