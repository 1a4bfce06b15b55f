/* SPDX-License-Identifier: Apache-2.0 */
/* Variables of the source from DWARF, versions 2 to 4, as compilers write it into PTX: an address is
 * the name of a label or variable, a register is the letters of its name. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/debug/debug.h"

enum { /* tags */
       TAG_ARRAY = 0x01,
       TAG_ENUM = 0x04,
       TAG_PARAMETER = 0x05,
       TAG_BLOCK = 0x0b,
       TAG_POINTER = 0x0f,
       TAG_REFERENCE = 0x10,
       TAG_TYPEDEF = 0x16,
       TAG_INLINED = 0x1d,
       TAG_BASE = 0x24,
       TAG_CONST = 0x26,
       TAG_FUNCTION = 0x2e,
       TAG_VARIABLE = 0x34,
       TAG_VOLATILE = 0x35,
       TAG_RESTRICT = 0x37,
       /* attributes */
       AT_LOCATION = 0x02,
       AT_NAME = 0x03,
       AT_BYTES = 0x0b,
       AT_LOW = 0x11,
       AT_HIGH = 0x12,
       AT_ORIGIN = 0x31,
       AT_ENCODING = 0x3e,
       AT_SPECIFICATION = 0x47,
       AT_TYPE = 0x49,
       /* encodings of base types */
       ENCODING_BOOL = 0x02,
       ENCODING_FLOAT = 0x04,
       ENCODING_SIGNED = 0x05,
       ENCODING_SIGNED_CHAR = 0x06,
       /* operations of expressions */
       OP_ADDR = 0x03,
       OP_PLUS = 0x23,
       OP_REGX = 0x90
};

enum { MAX_DEPTH_OF_SCOPES = 64, MAX_TYPES = 16, MAX_VARIABLES = 100000, MAX_NAME = 256 };

/* Entries, attributes and bytes of names that are looked at, so that no text keeps a reader busy
 * for long; what was found by then is shown. */
#define MAX_WORK ((uint64_t)1 << 26)

/* A text file of labels, so that each is found quickly. */
typedef struct label {
    const char *name;
    uint32_t length, place;
} label;

typedef struct reader {
    const bh__ptx_module *m;
    bh__ptx_variables *out;
    const bh__ptx_section_bytes *in; /* that is read */
    uint32_t at;
    uint64_t *work;                  /* that is left: MAX_WORK */
    bool bad;                        /* read past its end, or too much work */
    uint32_t unit, unit_end, abbrev; /* of the unit that is read */
    uint16_t version;
    label *labels;
    uint32_t label_count;
    size_t label_capacity;
} reader;

/* What is of interest of an entry. */
typedef struct entry {
    uint64_t tag;
    bool children;
    const char *name;
    uint32_t low, high; /* places in the text; 0: none */
    uint32_t type, origin;
    uint32_t location, location_bytes;
    uint64_t bytes, encoding;
} entry;

/* ---- numbers ---- */

static uint64_t fixed(reader *r, unsigned bytes) {
    uint64_t value = 0;
    if (r->bad || bytes > r->in->count - r->at) {
        r->bad = true;
        return 0;
    }
    for (unsigned n = 0; n < bytes; n++) {
        value |= (uint64_t)r->in->at[r->at++] << 8 * n;
    }
    return value;
}

/* LEB128; the sign does not matter to what is read here. */
static uint64_t leb(reader *r) {
    uint64_t value = 0;
    for (unsigned shift = 0; !r->bad; shift += 7) {
        uint64_t byte = fixed(r, 1);
        value |= shift < 64 ? (byte & 127) << shift : 0;
        if (!(byte & 128)) {
            break;
        }
    }
    return value;
}

static void spend(reader *r, uint64_t work) {
    r->bad |= work > *r->work;
    *r->work -= work > *r->work ? *r->work : work;
}

static void skip(reader *r, uint64_t bytes) {
    if (r->bad || bytes > r->in->count - r->at) {
        r->bad = true;
    } else {
        r->at += (uint32_t)bytes;
    }
}

static const char *string_at(reader *r, const bh__ptx_section_bytes *in, uint64_t at) {
    if (at >= in->count) {
        return NULL;
    }
    const char *from = (const char *)in->at + at;
    size_t room = in->count - at, length = strnlen(from, room);
    spend(r, length);
    return length < room ? from : NULL;
}

/* ---- labels ---- */

static int by_name(const void *a, const void *b) {
    const label *x = a, *y = b;
    int order = memcmp(x->name, y->name, x->length < y->length ? x->length : y->length);
    return order != 0 ? order : (x->length > y->length) - (x->length < y->length);
}

/* Lines that begin with a name and a colon. */
static bool find_labels(reader *r) {
    const char *text = r->m->text, *end = text + r->m->length;
    for (const char *line = text; line < end;) {
        const char *name = line;
        while (name < end && (*name == ' ' || *name == '\t')) {
            name++;
        }
        const char *stop = name;
        while (stop < end && (isalnum((unsigned char)*stop) || *stop == '_' || *stop == '$')) {
            stop++;
        }
        if (stop > name && stop < end && *stop == ':') {
            if (r->label_count == r->label_capacity) {
                size_t capacity = r->label_capacity == 0 ? 256 : r->label_capacity * 2;
                label *grown = realloc(r->labels, capacity * sizeof *grown);
                if (grown == NULL) {
                    return false;
                }
                r->labels = grown;
                r->label_capacity = capacity;
            }
            r->labels[r->label_count++] =
                (label){name, (uint32_t)(stop - name), (uint32_t)(name - text)};
        }
        const char *next = memchr(stop, '\n', (size_t)(end - stop));
        line = next != NULL ? next + 1 : end;
    }
    if (r->label_count > 0) {
        qsort(r->labels, r->label_count, sizeof *r->labels, by_name);
    }
    return true;
}

/* The place of the label whose name is at this place of the bytes; 0: there is none. */
static uint32_t label_at(const reader *r, uint32_t at) {
    const bh__ptx_reference *reference = bh__ptx_section_reference(r->in, at);
    if (reference == NULL || r->label_count == 0) {
        return 0;
    }
    label key = {.name = r->m->text + reference->name, .length = reference->length};
    const label *found = bsearch(&key, r->labels, r->label_count, sizeof key, by_name);
    return found != NULL ? found->place : 0;
}

/* ---- entries ---- */

typedef struct value {
    uint64_t number;
    uint32_t from, bytes; /* of a block */
    const char *string;
} value;

static void read_block(reader *r, uint64_t bytes, value *out) {
    out->from = r->at;
    out->bytes = (uint32_t)bytes;
    skip(r, bytes);
}

static void read_form(reader *r, uint64_t form, value *out) {
    *out = (value){.from = r->at};
    switch (form) {
    case 0x01: /* an address: its name counts */
        out->number = fixed(r, 8);
        break;
    case 0x03:
        read_block(r, fixed(r, 2), out);
        break;
    case 0x04:
        read_block(r, fixed(r, 4), out);
        break;
    case 0x09:
    case 0x18:
        read_block(r, leb(r), out);
        break;
    case 0x0a:
        read_block(r, fixed(r, 1), out);
        break;
    case 0x0b: /* one byte: data, a flag, a reference */
    case 0x0c:
    case 0x11:
        out->number = fixed(r, 1);
        break;
    case 0x05:
    case 0x12:
        out->number = fixed(r, 2);
        break;
    case 0x06:
    case 0x13:
    case 0x17:
        out->number = fixed(r, 4);
        break;
    case 0x07:
    case 0x14:
    case 0x20:
        out->number = fixed(r, 8);
        break;
    case 0x0d:
    case 0x0f:
    case 0x15:
        out->number = leb(r);
        break;
    case 0x10: /* from the start of the section */
        out->number = fixed(r, r->version == 2 ? 8 : 4) - r->unit;
        break;
    case 0x08:
        out->string = string_at(r, r->in, r->at);
        skip(r, out->string != NULL ? strlen(out->string) + 1 : UINT32_MAX);
        break;
    case 0x0e:
        out->string = string_at(r, &r->out->str, fixed(r, 4));
        break;
    case 0x16:
        form = leb(r);
        if (form == 0x16) {
            r->bad = true;
        } else {
            read_form(r, form, out);
        }
        break;
    case 0x19:
        out->number = 1;
        break;
    default: /* its size is not known */
        r->bad = true;
        break;
    }
}

static void note_attribute(const reader *r, uint64_t name, const value *v, entry *out) {
    switch (name) {
    case AT_NAME:
        out->name = v->string;
        break;
    case AT_LOW:
        out->low = label_at(r, v->from);
        break;
    case AT_HIGH:
        out->high = label_at(r, v->from);
        break;
    case AT_TYPE:
        out->type = r->unit + (uint32_t)v->number;
        break;
    case AT_ORIGIN:
    case AT_SPECIFICATION:
        out->origin = r->unit + (uint32_t)v->number;
        break;
    case AT_LOCATION:
        out->location = v->from;
        out->location_bytes = v->bytes;
        break;
    case AT_BYTES:
        out->bytes = v->number;
        break;
    case AT_ENCODING:
        out->encoding = v->number;
        break;
    default:
        break;
    }
}

/* Finds the description of entries with this code; false: there is none. */
static bool find_abbreviation(reader *in, uint64_t code, reader *abbrev) {
    *abbrev = *in;
    abbrev->in = &in->out->abbrev;
    abbrev->at = in->abbrev;
    abbrev->bad = in->abbrev > abbrev->in->count;
    for (;;) {
        uint64_t this = leb(abbrev);
        if (this == 0 || abbrev->bad) {
            return false;
        }
        if (this == code) {
            return true;
        }
        leb(abbrev);
        skip(abbrev, 1);
        do {
            spend(abbrev, 1);
        } while ((leb(abbrev) | leb(abbrev)) != 0 && !abbrev->bad);
    }
}

/* Reads the entry at `r->at`. Its tag is 0 at the end of a list of entries. */
static void read_entry(reader *r, entry *out) {
    *out = (entry){0};
    uint64_t code = leb(r);
    reader abbrev;
    if (code == 0 || r->bad) {
        return;
    }
    if (!find_abbreviation(r, code, &abbrev)) {
        r->bad = true;
        return;
    }
    out->tag = leb(&abbrev);
    out->children = fixed(&abbrev, 1) != 0;
    while (!r->bad && !abbrev.bad) {
        uint64_t name = leb(&abbrev), form = leb(&abbrev);
        if (name == 0 && form == 0) {
            return;
        }
        value v;
        read_form(r, form, &v);
        note_attribute(r, name, &v, out);
    }
    r->bad = true;
}

static bool entry_at(const reader *r, uint32_t at, entry *out) {
    reader other = *r;
    other.at = at;
    other.bad = at <= r->unit || at >= r->unit_end;
    read_entry(&other, out);
    return !other.bad && out->tag != 0;
}

/* ---- variables ---- */

static bh__ptx_type simple_type(const entry *e) {
    static const uint8_t types[4][4] = {{T_U8, T_U16, T_U32, T_U64},
                                        {T_S8, T_S16, T_S32, T_S64},
                                        {T_NONE, T_F16, T_F32, T_F64},
                                        {T_PRED, T_NONE, T_NONE, T_NONE}};
    int size = e->bytes == 1 ? 0 : e->bytes == 2 ? 1 : e->bytes == 4 ? 2 : e->bytes == 8 ? 3 : -1;
    int kind = e->encoding == ENCODING_FLOAT                                           ? 2
               : e->encoding == ENCODING_SIGNED || e->encoding == ENCODING_SIGNED_CHAR ? 1
               : e->encoding == ENCODING_BOOL                                          ? 3
                                                                                       : 0;
    return size < 0 ? T_NONE : (bh__ptx_type)types[kind][size];
}

static void find_type(const reader *r, uint32_t at, bh__ptx_source_variable *out) {
    for (int n = 0; n < MAX_TYPES && at != 0; n++) {
        entry e;
        if (!entry_at(r, at, &e)) {
            return;
        }
        switch (e.tag) {
        case TAG_TYPEDEF:
        case TAG_CONST:
        case TAG_VOLATILE:
        case TAG_RESTRICT:
            at = e.type;
            continue;
        case TAG_POINTER:
        case TAG_REFERENCE:
            out->type = T_B64;
            out->bytes = 8;
            return;
        case TAG_ENUM:
            e.encoding = ENCODING_SIGNED;
            e.bytes = e.bytes == 0 ? 4 : e.bytes;
            break;
        case TAG_BASE:
            break;
        default:
            out->bytes = e.bytes < UINT32_MAX ? (uint32_t)e.bytes : 0;
            return;
        }
        out->type = simple_type(&e);
        out->bytes = e.bytes < UINT32_MAX ? (uint32_t)e.bytes : 0;
        return;
    }
}

/* A register is a number whose bytes, the highest first, are the letters of its name. */
static bool register_name(uint64_t code, char out[12]) {
    unsigned length = 0;
    for (int shift = 56; shift >= 0; shift -= 8) {
        char c = (char)(code >> shift);
        if (c == 0 && length == 0) {
            continue;
        }
        if (c < '!' || c > '~') {
            return false;
        }
        out[length++] = c;
    }
    out[length] = '\0';
    return length > 0;
}

/* A register, or the address of a PTX variable and an offset. False: anything else. */
static bool find_location(const reader *from, const entry *e, bh__ptx_source_variable *out) {
    reader r = *from;
    uint32_t end = e->location + e->location_bytes;
    r.at = e->location;
    if (e->location_bytes == 0) {
        return false;
    }
    uint64_t op = fixed(&r, 1);
    if (op == OP_REGX) {
        return register_name(leb(&r), out->reg) && !r.bad && r.at == end;
    }
    const bh__ptx_reference *reference =
        op == OP_ADDR ? bh__ptx_section_reference(r.in, r.at) : NULL;
    if (reference == NULL) {
        return false;
    }
    out->symbol = reference->name;
    out->symbol_length = reference->length;
    out->offset = (uint32_t)fixed(&r, 8);
    if (r.at < end && fixed(&r, 1) == OP_PLUS) {
        out->offset += (uint32_t)leb(&r);
    }
    return !r.bad && r.at == end;
}

static void note_variable(reader *r, const entry *e, uint32_t from, uint32_t to) {
    bh__ptx_variables *out = r->out;
    bh__ptx_source_variable v = {.name = e->name, .from = from, .to = to};
    uint32_t type = e->type;
    entry origin = {0};
    if (e->origin != 0 && entry_at(r, e->origin, &origin)) {
        v.name = v.name != NULL ? v.name : origin.name;
        type = type != 0 ? type : origin.type;
    }
    if (v.name == NULL || strnlen(v.name, MAX_NAME) == MAX_NAME || from >= to ||
        !find_location(r, e, &v) || out->count >= MAX_VARIABLES) {
        return;
    }
    find_type(r, type, &v);
    if (out->count == out->capacity) {
        size_t capacity = out->capacity == 0 ? 64 : out->capacity * 2;
        bh__ptx_source_variable *grown = realloc(out->list, capacity * sizeof *grown);
        if (grown == NULL) {
            return;
        }
        out->list = grown;
        out->capacity = capacity;
    }
    out->list[out->count++] = v;
}

static void read_entries(reader *r) {
    struct {
        uint32_t from, to;
    } scopes[MAX_DEPTH_OF_SCOPES] = {{0, 0}};
    uint32_t depth = 0;
    while (!r->bad && r->at < r->unit_end) {
        entry e;
        read_entry(r, &e);
        if (e.tag == 0) {
            if (r->bad || depth == 0) {
                return;
            }
            depth--;
            continue;
        }
        uint32_t here = depth < MAX_DEPTH_OF_SCOPES ? depth : MAX_DEPTH_OF_SCOPES - 1;
        if (e.tag == TAG_VARIABLE || e.tag == TAG_PARAMETER) {
            note_variable(r, &e, scopes[here].from, scopes[here].to);
        }
        if (!e.children) {
            continue;
        }
        depth++;
        if (depth < MAX_DEPTH_OF_SCOPES) {
            bool range = e.low != 0 && e.high > e.low &&
                         (e.tag == TAG_FUNCTION || e.tag == TAG_BLOCK || e.tag == TAG_INLINED);
            scopes[depth] = scopes[depth - 1];
            if (range) {
                scopes[depth].from = e.low;
                scopes[depth].to = e.high;
            } else if (e.tag == TAG_FUNCTION) {
                scopes[depth].from = scopes[depth].to = 0;
            }
        }
    }
}

static void read_units(reader *r) {
    while (!r->bad && r->in->count - r->at > 11) {
        r->unit = r->at;
        uint64_t length = fixed(r, 4);
        if (length > r->in->count - r->at) {
            return;
        }
        r->unit_end = r->at + (uint32_t)length;
        r->version = (uint16_t)fixed(r, 2);
        r->abbrev = (uint32_t)fixed(r, 4);
        bool known = r->version >= 2 && r->version <= 4 && fixed(r, 1) == 8;
        if (known) {
            read_entries(r);
        }
        r->at = r->unit_end;
        r->bad = false;
    }
}

void bh__ptx_variables_read(const bh__ptx_module *m, bh__ptx_variables *out) {
    *out = (bh__ptx_variables){0};
    if (m->section_count == 0) {
        return;
    }
    bh__ptx_section_read(m, ".debug_info", &out->info);
    bh__ptx_section_read(m, ".debug_abbrev", &out->abbrev);
    bh__ptx_section_read(m, ".debug_str", &out->str);
    reader r = {.m = m, .out = out, .in = &out->info};
    uint64_t work = MAX_WORK;
    r.work = &work;
    if (find_labels(&r)) {
        read_units(&r);
    }
    free(r.labels);
}

void bh__ptx_variables_free(bh__ptx_variables *variables) {
    bh__ptx_section_free(&variables->info);
    bh__ptx_section_free(&variables->abbrev);
    bh__ptx_section_free(&variables->str);
    free(variables->list);
    *variables = (bh__ptx_variables){0};
}
