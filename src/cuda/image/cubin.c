/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a cubin, which is an ELF file: kernels with their parameters, variables, target. */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "cuda/image/image.h"
#include "writes/writes.h"

enum {
    MACHINE_CUDA = 190,
    SYMBOL_IS_KERNEL = 0x10, /* in st_other */
    INFO_PARAM = 0x17,       /* one parameter of a kernel */
    INFO_LARGE_PARAM = 0x45, /* the same, in kernels with large parameters */
    INFO_REQUIRED_BLOCK = 0x10
};

typedef struct reader {
    bh__module_image *image;
    const uint8_t *bytes;
    size_t size;
    Elf64_Ehdr head;
    bh__writes *writes; /* Owned. The compiler's record of written variables; NULL: none. */
} reader;

static bool section_at(const reader *r, size_t index, Elf64_Shdr *out) {
    if (index >= r->head.e_shnum) return false;
    memcpy(out, r->bytes + r->head.e_shoff + index * sizeof *out, sizeof *out);
    return out->sh_type == SHT_NOBITS || bh__range_fits(out->sh_offset, out->sh_size, r->size);
}

/* A name in a string table; empty if it is not valid. */
static const char *string_at(const reader *r, const Elf64_Shdr *strings, uint64_t offset) {
    if (strings->sh_type == SHT_NOBITS || offset >= strings->sh_size) return "";
    const char *text = (const char *)r->bytes + strings->sh_offset + offset;
    return memchr(text, '\0', strings->sh_size - offset) ? text : "";
}

static const char *section_name(const reader *r, size_t index) {
    Elf64_Shdr names, section;
    if (!section_at(r, r->head.e_shstrndx, &names) || !section_at(r, index, &section)) return "";
    return string_at(r, &names, section.sh_name);
}

static int compare_params(const void *a, const void *b) {
    uint32_t x = ((const bh__blob_param *)a)->offset, y = ((const bh__blob_param *)b)->offset;
    return (x > y) - (x < y);
}

/* The records of a kernel's .nv.info section: a format, an attribute, and two bytes that are its
 * value or the length of what follows. */
static void read_info(reader *r, const Elf64_Shdr *section, bh__module_image_kernel *kernel) {
    const uint8_t *at = r->bytes + section->sh_offset, *end = at + section->sh_size;
    while (end - at >= 4) {
        uint8_t format = at[0], attribute = at[1];
        uint16_t length = 0;
        if (format == 4) memcpy(&length, at + 2, sizeof length);
        at += 4;
        if (length > end - at) return;
        if ((attribute == INFO_PARAM || attribute == INFO_LARGE_PARAM) && length >= 12) {
            uint16_t offset;
            uint32_t shape;
            memcpy(&offset, at + 6, sizeof offset);
            memcpy(&shape, at + 8, sizeof shape);
            uint32_t bytes = attribute == INFO_PARAM ? shape >> 18 : shape;
            bh__module_image_add_param(r->image, kernel,
                                       (bh__blob_param){.offset = offset, .bytes = bytes});
        } else if (attribute == INFO_REQUIRED_BLOCK && length >= 12) {
            memcpy(kernel->required, at, sizeof kernel->required);
        }
        at += length;
    }
    if (kernel->param_count)
        qsort(kernel->params, kernel->param_count, sizeof *kernel->params, compare_params);
}

static void read_kernel(reader *r, const char *name) {
    bh__module_image_kernel *kernel = bh__module_image_add_kernel(r->image, name, strlen(name));
    if (!kernel) return;
    for (size_t i = 0; i < r->head.e_shnum; i++) {
        const char *section = section_name(r, i);
        Elf64_Shdr found;
        if (strncmp(section, ".nv.info.", 9) == 0 && strcmp(section + 9, name) == 0 &&
            section_at(r, i, &found) && found.sh_type != SHT_NOBITS)
            read_info(r, &found, kernel);
    }
}

/* Compilers keep the text of printf and assert in variables that nothing writes, with names that
 * C++ programs cannot have. */
static bool is_text(const char *name) {
    static const char *const begins[] = {"$str", "_$_str", "__unnamed_"};
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        if (strncmp(name, begins[i], strlen(begins[i])) == 0) return true;
    return false;
}

static void symbol_at(const reader *r, const Elf64_Shdr *table, uint64_t index, Elf64_Sym *out) {
    memcpy(out, r->bytes + table->sh_offset + index * sizeof *out, sizeof *out);
}

static void note_relocations(const reader *r, const Elf64_Shdr *section, uint64_t symbol_count,
                             uint8_t *named) {
    size_t element = section->sh_type == SHT_REL ? sizeof(Elf64_Rel) : sizeof(Elf64_Rela);
    for (uint64_t at = 0; at + element <= section->sh_size; at += element) {
        Elf64_Rel relocation; /* Elf64_Rela begins with the same fields */
        memcpy(&relocation, r->bytes + section->sh_offset + at, sizeof relocation);
        uint64_t symbol = ELF64_R_SYM(relocation.r_info);
        if (symbol < symbol_count) named[symbol] = 1;
    }
}

/* Finds the symbols of a table whose address is used by something else than a debugger: code,
 * tables of addresses that code uses, other variables. A variable whose address is not used is
 * never written. NULL: no memory. */
static uint8_t *find_named(const reader *r, size_t table_index, const Elf64_Shdr *table) {
    uint64_t count = table->sh_size / sizeof(Elf64_Sym);
    uint8_t *named = calloc(count + 1, 1), *whole = calloc(r->head.e_shnum + 1, 1);
    for (size_t i = 0; named && i < r->head.e_shnum; i++) {
        Elf64_Shdr section;
        if (section_at(r, i, &section) && section.sh_link == table_index &&
            (section.sh_type == SHT_REL || section.sh_type == SHT_RELA) &&
            strncmp(section_name(r, section.sh_info), ".debug", 6) != 0)
            note_relocations(r, &section, count, named);
    }
    /* A relocation against a section's own symbol may mean any variable in it. */
    for (int round = 0; named && whole && round < 2; round++) {
        for (uint64_t i = 0; i < count; i++) {
            Elf64_Sym symbol;
            symbol_at(r, table, i, &symbol);
            if (symbol.st_shndx >= r->head.e_shnum) continue;
            if (round == 0 && named[i] && ELF64_ST_TYPE(symbol.st_info) == STT_SECTION)
                whole[symbol.st_shndx] = 1;
            if (round == 1 && whole[symbol.st_shndx]) named[i] = 1;
        }
    }
    if (!whole) {
        free(named);
        named = NULL;
    }
    free(whole);
    return named;
}

static void read_symbol(reader *r, const Elf64_Shdr *strings, const Elf64_Sym *symbol) {
    const char *name = string_at(r, strings, symbol->st_name);
    int type = ELF64_ST_TYPE(symbol->st_info);
    if (!*name) return;
    if (strcmp(name, "vprintf") == 0) r->image->prints = true;
    if (symbol->st_shndx == SHN_UNDEF) return;
    if (type == STT_FUNC && (symbol->st_other & SYMBOL_IS_KERNEL)) {
        read_kernel(r, name);
    } else if (type == STT_OBJECT && symbol->st_size) {
        const char *section = section_name(r, symbol->st_shndx);
        bool constant = strncmp(section, ".nv.constant", 12) == 0;
        if (constant || strncmp(section, ".nv.global", 10) == 0)
            bh__module_image_add_variable(r->image, name, strlen(name), symbol->st_size, constant);
    }
}

static bool is_written(const reader *r, const char *name, bool named) {
    /* Variables declared in a function have other names here than in PTX. */
    bool renamed = strncmp(name, "$__", 3) == 0;
    if (r->writes && !renamed) return bh__writes_has(r->writes, name);
    return named && !is_text(name);
}

static void read_symbols(reader *r) {
    for (size_t i = 0; i < r->head.e_shnum; i++) {
        Elf64_Shdr table, strings;
        if (!section_at(r, i, &table) || table.sh_type != SHT_SYMTAB ||
            !section_at(r, table.sh_link, &strings))
            continue;
        uint8_t *named = find_named(r, i, &table);
        for (uint64_t at = 0; at < table.sh_size / sizeof(Elf64_Sym); at++) {
            Elf64_Sym symbol;
            symbol_at(r, &table, at, &symbol);
            size_t before = r->image->variable_count;
            read_symbol(r, &strings, &symbol);
            if (r->image->variable_count == before) continue;
            bh__module_image_variable *variable = &r->image->variables[before];
            if (!variable->constant)
                variable->written = is_written(r, variable->name, !named || named[at]);
        }
        free(named);
    }
}

bh_status bh__module_image_read_cubin(bh__module_image *image, const uint8_t *bytes, size_t size,
                                      bh_error *error) {
    reader r = {.image = image, .bytes = bytes, .size = size};
    const char *fix = "load the whole file as the compiler wrote it";
    if (size < sizeof r.head)
        return bh__fail(error, BH_E_LOAD, fix,
                        "the image begins like a cubin and is truncated at %zu bytes", size);
    memcpy(&r.head, bytes, sizeof r.head);
    if (r.head.e_ident[EI_CLASS] != ELFCLASS64 || r.head.e_machine != MACHINE_CUDA)
        return bh__fail(error, BH_E_LOAD, "load a cubin made for 64-bit NVIDIA devices",
                        "the image is an ELF file for machine %u, not a cubin (%d)",
                        r.head.e_machine, MACHINE_CUDA);
    if (r.head.e_shentsize != sizeof(Elf64_Shdr) ||
        !bh__range_fits(r.head.e_shoff, (uint64_t)r.head.e_shnum * sizeof(Elf64_Shdr), size))
        return bh__fail(error, BH_E_LOAD, fix,
                        "the cubin's table of %u sections does not lie in its %zu bytes",
                        r.head.e_shnum, size);
    /* The driver does not know where the image ends, and would read past it. */
    if (!bh__range_fits(r.head.e_phoff, (uint64_t)r.head.e_phnum * r.head.e_phentsize, size))
        return bh__fail(error, BH_E_LOAD, fix,
                        "the cubin's table of %u segments does not lie in its %zu bytes",
                        r.head.e_phnum, size);
    for (size_t i = 0; i < r.head.e_shnum; i++) {
        Elf64_Shdr section;
        if (!section_at(&r, i, &section))
            return bh__fail(error, BH_E_LOAD, fix,
                            "section %zu of the cubin does not lie in its %zu bytes", i, size);
    }
    image->kind = BH__MODULE_IMAGE_CUBIN;
    image->bytes = bytes;
    image->names_known = true;
    uint32_t flags = r.head.e_flags;
    /* From version 8 of its layout the architecture is in the second byte. */
    uint32_t target = r.head.e_ident[EI_ABIVERSION] >= 8 ? flags >> 8 & 0xff : flags & 0xff;
    snprintf(image->target, sizeof image->target, "sm_%u", target);
    r.writes = bh__writes_record_read(bytes, size);
    read_symbols(&r);
    bh__writes_free(r.writes);
    return BH_OK;
}
