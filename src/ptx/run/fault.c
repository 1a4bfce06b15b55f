/* SPDX-License-Identifier: Apache-2.0 */
/* Faults: the text that describes the access or event, the thread and the instruction. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ptx/run/exec.h"

void bh__ptx_site_text(const bh__ptx_module *m, uint32_t code, unsigned longest, char *out,
                       size_t size) {
    const bh__ptx_site *site = &m->sites[code];
    char quoted[100], source[80] = "", name[60];
    for (uint32_t n = 0; site->loc_line != 0 && n < m->file_count; n++) {
        const bh__ptx_file *file = &m->files[n];
        if (file->number == site->loc_file) {
            bh__ptx_quote(m, file->start, file->length, name, sizeof name);
            snprintf(source, sizeof source, " (%s:%u)", name, (unsigned)site->loc_line);
            break;
        }
    }
    bh__ptx_quote(m, site->text, longest > 0 ? site->text_length : 0, quoted,
                  longest < sizeof quoted ? longest + 1 : sizeof quoted);
    char place[BH__PTX_PLACE];
    snprintf(out, size, "PTX %s%s%s%s%s", bh__ptx_place(m, site->line, place), source,
             quoted[0] ? ": `" : "", quoted, quoted[0] ? "`" : "");
}

static void fill(bh__ptx_exec *x, bh__ptx_fault_kind kind, unsigned lane, const char *what) {
    bh__ptx_fault *f = x->fault;
    const bh__ptx_module *m = x->module;
    uint32_t thread = x->warp->index * LANES + lane;
    f->kind = kind;
    const char *file;
    uint32_t file_length;
    f->line = bh__ptx_shown_line(m, m->sites[x->code - m->code].line, &file, &file_length);
    for (int n = 0; n < 3; n++) {
        f->block[n] = x->block->id[n];
        f->thread[n] = x->block->tid[n][thread];
    }
    char site[280];
    bh__ptx_site_text(m, (uint32_t)(x->code - m->code), 99, site, sizeof site);
    snprintf(f->text, sizeof f->text,
             "%s, in kernel %.60s, block (%u,%u,%u), thread (%u,%u,%u), %s", what,
             x->grid->kernel->name, (unsigned)f->block[0], (unsigned)f->block[1],
             (unsigned)f->block[2], (unsigned)f->thread[0], (unsigned)f->thread[1],
             (unsigned)f->thread[2], site);
}

bool bh__ptx_fault_access(bh__ptx_exec *x, bh__ptx_fault_kind kind, unsigned lane, uint64_t address,
                          unsigned bytes, bool write, const char *space) {
    memset(x->fault, 0, sizeof *x->fault);
    x->fault->address = address;
    x->fault->size = bytes;
    x->fault->write = write;
    x->fault->global = (kind == BH__PTX_FAULT_ADDRESS || kind == BH__PTX_FAULT_READ_ONLY) &&
                       address >> BH__PTX_WINDOW_SHIFT == WINDOW_GLOBAL &&
                       (space[0] == 0 || strcmp(space, "global") == 0);
    char what[160];
    const char *gap = space[0] == 0 ? "" : " ";
    switch (kind) {
    case BH__PTX_FAULT_MISALIGNED:
        snprintf(what, sizeof what, "misaligned %s of %u bytes at%s%s address 0x%llx",
                 write ? "write" : "read", bytes, gap, space, (unsigned long long)address);
        break;
    case BH__PTX_FAULT_READ_ONLY:
        snprintf(what, sizeof what, "write of %u bytes to read-only memory at%s%s address 0x%llx",
                 bytes, gap, space, (unsigned long long)address);
        break;
    default:
        snprintf(what, sizeof what, "illegal %s of %u bytes at%s%s address 0x%llx",
                 write ? "write" : "read", bytes, gap, space, (unsigned long long)address);
        break;
    }
    fill(x, kind, lane, what);
    return false;
}

bool bh__ptx_fault_other(bh__ptx_exec *x, bh__ptx_fault_kind kind, unsigned lane,
                         const char *format, ...) {
    char what[200];
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    memset(x->fault, 0, sizeof *x->fault);
    fill(x, kind, lane, what);
    return false;
}
