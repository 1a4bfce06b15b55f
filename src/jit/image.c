/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small linker: puts the sections of one object file that are needed at run time behind each
 * other and resolves the references between them, which are all relative. The object comes from
 * LLVM in this process; what does not fit is refused.
 */
#include "jit/image.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"

enum { MAX_SECTIONS = 256, MAX_ALIGN = 64 };

typedef struct object {
    const uint8_t *data;
    size_t bytes;
    const Elf64_Shdr *sections;
    uint32_t count;
    size_t at[MAX_SECTIONS]; /* in the image; NOWHERE: not part of it */
    const Elf64_Sym *symbols;
    size_t symbol_count;
    const char *names;
    size_t name_bytes;
} object;

#define NOWHERE SIZE_MAX

static bool is_inside(const object *o, uint64_t offset, uint64_t bytes) {
    return bh__range_fits(offset, bytes, o->bytes);
}

static const char *open_object(object *o) {
    const Elf64_Ehdr *head = (const void *)o->data;
    if (o->bytes < sizeof *head || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 ||
        head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_shentsize != sizeof(Elf64_Shdr)) {
        return "it is not a 64-bit ELF object";
    }
    if (head->e_machine != EM_X86_64) {
        return "it is not for x86-64";
    }
    if (head->e_shnum > MAX_SECTIONS || head->e_shoff % 8 != 0 ||
        !is_inside(o, head->e_shoff, (uint64_t)head->e_shnum * sizeof(Elf64_Shdr))) {
        return "it has too many sections";
    }
    o->sections = (const void *)(o->data + head->e_shoff);
    o->count = head->e_shnum;
    for (uint32_t n = 0; n < o->count; n++) {
        const Elf64_Shdr *s = &o->sections[n];
        if (s->sh_type != SHT_NOBITS && !is_inside(o, s->sh_offset, s->sh_size)) {
            return "a section is outside of it";
        }
        if (s->sh_type == SHT_SYMTAB && s->sh_link < o->count) {
            const Elf64_Shdr *names = &o->sections[s->sh_link];
            o->symbols = (const void *)(o->data + s->sh_offset);
            o->symbol_count = s->sh_size / sizeof *o->symbols;
            o->names = (const char *)o->data + names->sh_offset;
            o->name_bytes = names->sh_size;
        }
    }
    bool named = o->name_bytes > 0 && o->names[o->name_bytes - 1] == 0;
    return o->symbols != NULL && named ? NULL : "it has no symbols";
}

static bool is_needed(const Elf64_Shdr *s) {
    return (s->sh_flags & SHF_ALLOC) && s->sh_type == SHT_PROGBITS && s->sh_size > 0;
}

/* Unwind tables are for debuggers, which do not see this code. */
static const char *place(object *o, bh__jit_result *out) {
    size_t end = 0;
    for (uint32_t n = 0; n < o->count; n++) {
        const Elf64_Shdr *s = &o->sections[n];
        o->at[n] = NOWHERE;
        if ((s->sh_flags & SHF_ALLOC) && (s->sh_flags & SHF_WRITE)) {
            return "it has variables";
        }
        if (!is_needed(s)) {
            continue;
        }
        size_t align = s->sh_addralign > 1 ? s->sh_addralign : 1;
        if (align > MAX_ALIGN || (align & (align - 1)) != 0) {
            return "a section has an alignment above 64";
        }
        o->at[n] = (end + align - 1) / align * align;
        if (!bh__add_size(o->at[n], s->sh_size, &end)) {
            return "it is too large";
        }
    }
    out->image = calloc(1, end + 1);
    out->bytes = end;
    if (out->image == NULL) {
        return "there is no memory";
    }
    for (uint32_t n = 0; n < o->count; n++) {
        if (o->at[n] != NOWHERE) {
            memcpy(out->image + o->at[n], o->data + o->sections[n].sh_offset,
                   o->sections[n].sh_size);
        }
    }
    return NULL;
}

/* Where a symbol is in the image. False: it is not in it. */
static bool find(const object *o, uint64_t index, uint64_t *out) {
    if (index >= o->symbol_count) {
        return false;
    }
    const Elf64_Sym *s = &o->symbols[index];
    if (s->st_shndx == SHN_UNDEF || s->st_shndx >= o->count || o->at[s->st_shndx] == NOWHERE) {
        return false;
    }
    *out = o->at[s->st_shndx] + s->st_value;
    return true;
}

static const char *relocate(const object *o, size_t base, uint64_t size, const Elf64_Rela *r,
                            bh__jit_result *out) {
    uint64_t target;
    if (!find(o, ELF64_R_SYM(r->r_info), &target)) {
        return "it calls a function of the C library";
    }
    if (!bh__range_fits(r->r_offset, 4, size)) {
        return "a reference is outside of its section";
    }
    uint64_t from = base + r->r_offset;
    uint64_t type = ELF64_R_TYPE(r->r_info);
    if (type != R_X86_64_PC32 && type != R_X86_64_PLT32) {
        return "it has references that are not relative";
    }
    int64_t distance = (int64_t)(target + (uint64_t)r->r_addend - from);
    if (distance != (int32_t)distance) {
        return "it is too large";
    }
    int32_t word = (int32_t)distance;
    memcpy(out->image + from, &word, sizeof word);
    return NULL;
}

static const char *relocate_all(const object *o, bh__jit_result *out) {
    for (uint32_t n = 0; n < o->count; n++) {
        const Elf64_Shdr *s = &o->sections[n];
        bool here = s->sh_info < o->count && o->at[s->sh_info] != NOWHERE;
        if (s->sh_type != SHT_RELA || !here) {
            continue;
        }
        const Elf64_Rela *list = (const void *)(o->data + s->sh_offset);
        uint64_t size = o->sections[s->sh_info].sh_size;
        for (size_t i = 0; i < s->sh_size / sizeof *list; i++) {
            const char *why = relocate(o, o->at[s->sh_info], size, &list[i], out);
            if (why != NULL) {
                return why;
            }
        }
    }
    return NULL;
}

static const char *find_entry(const object *o, const char *name, bh__jit_result *out) {
    for (size_t i = 0; i < o->symbol_count; i++) {
        uint64_t at, text = o->symbols[i].st_name;
        if (text < o->name_bytes && strcmp(o->names + text, name) == 0 && find(o, i, &at) &&
            at < out->bytes) {
            out->entry = at;
            return NULL;
        }
    }
    return "it has no such function";
}

const char *bh__jit_image(const void *data, size_t bytes, const char *name, bh__jit_result *out) {
    object o = {.data = data, .bytes = bytes};
    const char *why = open_object(&o);
    if (why == NULL) {
        why = place(&o, out);
    }
    if (why == NULL) {
        why = relocate_all(&o, out);
    }
    return why != NULL ? why : find_entry(&o, name, out);
}
