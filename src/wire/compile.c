/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs and answers as blocks: a head with a checksum, then fields of {tag, length, bytes, a NUL,
 * zeros up to a multiple of 8}. A list is one field for each element, in order. One table for each
 * struct maps tags to members, for writing and for reading.
 */
#include "wire/compile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/siphash.h"

typedef struct head {
    uint64_t magic;
    uint32_t version;
    uint32_t kind;    /* KIND_JOB, KIND_ANSWER */
    uint64_t bytes;   /* of the block, this head included */
    uint64_t hash[2]; /* of everything after the head */
} head;

typedef struct field_head {
    uint32_t tag;
    uint32_t zero;
    uint64_t bytes; /* without the NUL and the padding */
} field_head;

#define MAGIC     0x454c49504d4f4342u /* "BCOMPILE" */
#define MAX_BLOCK ((uint64_t)4 << 30)

enum { VERSION = 2, KIND_JOB = 1, KIND_ANSWER = 2 };

typedef enum member_type {
    TYPE_U32,
    TYPE_U64,
    TYPE_U64_PAIR,
    TYPE_ERROR,
    TYPE_TEXT, /* no NUL within */
    TYPE_BYTES,
    TYPE_TEXTS,
    TYPE_BLOBS, /* like TEXTS, with any bytes */
    TYPE_LIST   /* of structs that have their own table */
} member_type;

typedef struct shape shape;

typedef struct member {
    uint32_t tag;
    member_type type;
    size_t offset;
    size_t count_offset;   /* LIST: of the count */
    const shape *elements; /* LIST */
} member;

struct shape {
    const member *members;
    size_t count;
    size_t bytes; /* of the struct */
};

#define MEMBERS(list) list, sizeof list / sizeof *list

static const member read_members[] = {
    {1, TYPE_TEXT, offsetof(bh__compile_read, path), 0, NULL},
    {2, TYPE_U32, offsetof(bh__compile_read, missing), 0, NULL},
    {3, TYPE_U64, offsetof(bh__compile_read, bytes), 0, NULL},
    {4, TYPE_U64_PAIR, offsetof(bh__compile_read, hash), 0, NULL},
};
static const shape read_shape = {MEMBERS(read_members), sizeof(bh__compile_read)};

static const member found_members[] = {
    {1, TYPE_U32, offsetof(bh__compiler_found, compiler), 0, NULL},
    {2, TYPE_U32, offsetof(bh__compiler_found, usable), 0, NULL},
    {3, TYPE_TEXT, offsetof(bh__compiler_found, path), 0, NULL},
    {4, TYPE_TEXT, offsetof(bh__compiler_found, version), 0, NULL},
    {5, TYPE_TEXT, offsetof(bh__compiler_found, why), 0, NULL},
};
static const shape found_shape = {MEMBERS(found_members), sizeof(bh__compiler_found)};

static const member job_members[] = {
    {1, TYPE_U32, offsetof(bh__compile_job, op), 0, NULL},
    {2, TYPE_U32, offsetof(bh__compile_job, compiler), 0, NULL},
    {3, TYPE_U32, offsetof(bh__compile_job, output), 0, NULL},
    {4, TYPE_U32, offsetof(bh__compile_job, standard), 0, NULL},
    {5, TYPE_U32, offsetof(bh__compile_job, flags), 0, NULL},
    {6, TYPE_U32, offsetof(bh__compile_job, max_registers), 0, NULL},
    {7, TYPE_U64, offsetof(bh__compile_job, memory_limit), 0, NULL},
    {8, TYPE_U64, offsetof(bh__compile_job, time_limit_ns), 0, NULL},
    {9, TYPE_TEXT, offsetof(bh__compile_job, compiler_path), 0, NULL},
    {10, TYPE_TEXT, offsetof(bh__compile_job, arch), 0, NULL},
    {11, TYPE_TEXT, offsetof(bh__compile_job, name), 0, NULL},
    {12, TYPE_TEXT, offsetof(bh__compile_job, source), 0, NULL},
    {13, TYPE_TEXTS, offsetof(bh__compile_job, defines), 0, NULL},
    {14, TYPE_TEXTS, offsetof(bh__compile_job, include_paths), 0, NULL},
    {15, TYPE_TEXTS, offsetof(bh__compile_job, header_names), 0, NULL},
    {16, TYPE_TEXTS, offsetof(bh__compile_job, header_bodies), 0, NULL},
    {17, TYPE_TEXTS, offsetof(bh__compile_job, expressions), 0, NULL},
    {18, TYPE_TEXTS, offsetof(bh__compile_job, extra), 0, NULL},
    {20, TYPE_U32, offsetof(bh__compile_job, parent), 0, NULL},
    {19, TYPE_BLOBS, offsetof(bh__compile_job, inputs), 0, NULL},
    {21, TYPE_TEXTS, offsetof(bh__compile_job, input_names), 0, NULL},
    {22, TYPE_TEXTS, offsetof(bh__compile_job, expression_inputs), 0, NULL},
    {23, TYPE_U32, offsetof(bh__compile_job, kernel), 0, NULL},
    {24, TYPE_U32, offsetof(bh__compile_job, shapes), 0, NULL},
};
static const shape job_shape = {MEMBERS(job_members), sizeof(bh__compile_job)};

static const member answer_members[] = {
    {1, TYPE_ERROR, offsetof(bh__compile_answer, error), 0, NULL},
    {2, TYPE_TEXT, offsetof(bh__compile_answer, log), 0, NULL},
    {3, TYPE_TEXT, offsetof(bh__compile_answer, version), 0, NULL},
    {9, TYPE_TEXT, offsetof(bh__compile_answer, arch), 0, NULL},
    {4, TYPE_BYTES, offsetof(bh__compile_answer, output), 0, NULL},
    {8, TYPE_BYTES, offsetof(bh__compile_answer, ptx), 0, NULL},
    {5, TYPE_TEXTS, offsetof(bh__compile_answer, lowered), 0, NULL},
    {6, TYPE_LIST, offsetof(bh__compile_answer, reads), offsetof(bh__compile_answer, read_count),
     &read_shape},
    {7, TYPE_LIST, offsetof(bh__compile_answer, found), offsetof(bh__compile_answer, found_count),
     &found_shape},
};
static const shape answer_shape = {MEMBERS(answer_members), sizeof(bh__compile_answer)};

/* ---- writing ---- */

typedef struct writer {
    uint8_t *block;
    size_t used, room;
    bool failed;
} writer;

static void append(writer *w, const void *data, size_t bytes) {
    size_t wanted;
    if (w->failed || !bh__add_size(w->used, bytes, &wanted) || wanted > MAX_BLOCK) {
        w->failed = true;
        return;
    }
    if (wanted > w->room) {
        size_t room = wanted + wanted / 2 + 256;
        uint8_t *larger = realloc(w->block, room);
        if (larger == NULL) {
            w->failed = true;
            return;
        }
        w->block = larger;
        w->room = room;
    }
    if (bytes > 0) memcpy(w->block + w->used, data, bytes);
    w->used += bytes;
}

static void pad(writer *w) {
    static const uint8_t zeros[8];
    append(w, zeros, 8 - w->used % 8); /* at least one: the NUL */
}

static void append_field(writer *w, uint32_t tag, const void *data, size_t bytes) {
    field_head field = {tag, 0, bytes};
    append(w, &field, sizeof field);
    append(w, data, bytes);
    pad(w);
}

static void append_struct(writer *w, const shape *of, const uint8_t *from);

static void append_list(writer *w, const member *m, const uint8_t *from) {
    const uint8_t *list;
    size_t count;
    memcpy(&list, from + m->offset, sizeof list);
    memcpy(&count, from + m->count_offset, sizeof count);
    for (size_t i = 0; i < count && !w->failed; i++) {
        field_head field = {m->tag, 0, 0};
        size_t at = w->used;
        append(w, &field, sizeof field);
        append_struct(w, m->elements, list + i * m->elements->bytes);
        if (w->failed) return;
        field.bytes = w->used - at - sizeof field;
        memcpy(w->block + at, &field, sizeof field);
        pad(w);
    }
}

static void append_struct(writer *w, const shape *of, const uint8_t *from) {
    for (size_t i = 0; i < of->count; i++) {
        const member *m = &of->members[i];
        const void *at = from + m->offset;
        const bh__bytes *bytes = at;
        const bh__texts *texts = at;
        switch (m->type) {
        case TYPE_U32:
            append_field(w, m->tag, at, 4);
            break;
        case TYPE_U64:
            append_field(w, m->tag, at, 8);
            break;
        case TYPE_U64_PAIR:
            append_field(w, m->tag, at, 16);
            break;
        case TYPE_ERROR:
            append_field(w, m->tag, at, sizeof(bh_error));
            break;
        case TYPE_TEXT:
        case TYPE_BYTES:
            append_field(w, m->tag, bytes->data, bytes->count);
            break;
        case TYPE_TEXTS:
        case TYPE_BLOBS:
            for (size_t n = 0; n < texts->count; n++)
                append_field(w, m->tag, texts->list[n].data, texts->list[n].count);
            break;
        case TYPE_LIST:
            append_list(w, m, from);
            break;
        }
    }
}

/* Returns the block, which the caller frees, or NULL if memory is exhausted or it is too large. */
static uint8_t *build(uint32_t kind, const shape *of, const void *from, size_t *out_bytes) {
    writer w = {0};
    head h = {.magic = MAGIC, .version = VERSION, .kind = kind};
    append(&w, &h, sizeof h);
    append_struct(&w, of, from);
    if (w.failed) {
        free(w.block);
        return NULL;
    }
    h.bytes = w.used;
    bh__checksum(w.block + sizeof h, w.used - sizeof h, h.hash);
    memcpy(w.block, &h, sizeof h);
    *out_bytes = w.used;
    return w.block;
}

static int write_whole(int fd, const uint8_t *block, size_t bytes) {
    for (size_t at = 0; at < bytes;) {
        ssize_t done = pwrite(fd, block + at, bytes - at, (off_t)at);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return done < 0 ? -errno : -ENOSPC;
        at += (size_t)done;
    }
    return 0;
}

static void seal(int fd) {
    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
}

int bh__compile_job_write(const bh__compile_job *job) {
    size_t bytes;
    uint8_t *block = build(KIND_JOB, &job_shape, job, &bytes);
    if (block == NULL) return -ENOMEM;
    int fd = memfd_create("bulkhead-job", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int result = fd < 0 ? -errno : write_whole(fd, block, bytes);
    free(block);
    if (result < 0) {
        if (fd >= 0) close(fd);
        return result;
    }
    seal(fd);
    return fd;
}

bool bh__compile_answer_write(int fd, const bh__compile_answer *answer) {
    size_t bytes;
    uint8_t *block = build(KIND_ANSWER, &answer_shape, answer, &bytes);
    if (block == NULL) return false;
    bool written = write_whole(fd, block, bytes) == 0;
    free(block);
    if (written) seal(fd); /* sealing may fail: seals are optional */
    return written;
}

/* ---- reading ---- */

typedef struct reader {
    bh__arena *arena;
    const uint8_t *at, *end;
} reader;

/* Reads the next field. Its bytes lie in the block and are followed by a NUL. */
static bool next_field(reader *r, uint32_t *tag, bh__bytes *out) {
    field_head field;
    size_t left = (size_t)(r->end - r->at);
    if (left < sizeof field) return false;
    memcpy(&field, r->at, sizeof field);
    left -= sizeof field;
    uint64_t padded;
    if (field.zero != 0 || field.bytes >= left) return false;
    padded = field.bytes + (8 - field.bytes % 8);
    if (padded > left) return false;
    out->data = r->at + sizeof field;
    out->count = field.bytes;
    for (uint64_t i = field.bytes; i < padded; i++) {
        if (out->data[i] != 0) return false;
    }
    *tag = field.tag;
    r->at += sizeof field + padded;
    return true;
}

static bool read_struct(bh__arena *arena, bh__bytes block, const shape *of, uint8_t *to);

static bool read_fixed(bh__bytes from, void *to, size_t bytes) {
    if (from.count != bytes) return false;
    memcpy(to, from.data, bytes);
    return true;
}

static bool read_error(bh__bytes from, bh_error *to) {
    if (!read_fixed(from, to, sizeof *to)) return false;
    to->device_name[sizeof to->device_name - 1] = 0;
    to->message[sizeof to->message - 1] = 0;
    to->fix[sizeof to->fix - 1] = 0;
    to->kernel[sizeof to->kernel - 1] = 0;
    return to->status >= BH_OK && to->status <= BH_E_INTERNAL;
}

/* `room` is the capacity of the list, which the caller stores. */
static bool read_element(reader *r, const member *m, bh__bytes from, uint8_t *to, size_t *room) {
    uint8_t *list;
    size_t count;
    memcpy(&list, to + m->offset, sizeof list);
    memcpy(&count, to + m->count_offset, sizeof count);
    list = bh__arena_grow(r->arena, list, count, room, m->elements->bytes);
    if (list == NULL) return false;
    if (!read_struct(r->arena, from, m->elements, list + count * m->elements->bytes)) return false;
    count++;
    memcpy(to + m->offset, &list, sizeof list);
    memcpy(to + m->count_offset, &count, sizeof count);
    return true;
}

static bool read_member(reader *r, const member *m, bh__bytes from, uint8_t *to, size_t *room) {
    void *at = to + m->offset;
    bh__texts *texts = at;
    bool text = m->type == TYPE_TEXT || m->type == TYPE_TEXTS;
    if (text && memchr(from.data, 0, from.count) != NULL) return false;
    switch (m->type) {
    case TYPE_U32:
        return read_fixed(from, at, 4);
    case TYPE_U64:
        return read_fixed(from, at, 8);
    case TYPE_U64_PAIR:
        return read_fixed(from, at, 16);
    case TYPE_ERROR:
        return read_error(from, at);
    case TYPE_TEXT:
    case TYPE_BYTES:
        memcpy(at, &from, sizeof from);
        return true;
    case TYPE_TEXTS:
    case TYPE_BLOBS: {
        bh__bytes *list =
            bh__arena_grow(r->arena, texts->list, texts->count, room, sizeof *texts->list);
        if (list == NULL) return false;
        texts->list = list;
        list[texts->count++] = from;
        return true;
    }
    case TYPE_LIST:
        return read_element(r, m, from, to, room);
    }
    return false;
}

enum { MAX_MEMBERS = 32 };
_Static_assert(sizeof job_members / sizeof *job_members <= MAX_MEMBERS,
               "MAX_MEMBERS covers every member");

static const member *find_member(const shape *of, uint32_t tag) {
    for (size_t i = 0; i < of->count; i++) {
        if (of->members[i].tag == tag) return &of->members[i];
    }
    return NULL;
}

static bool is_list(const member *m) {
    return m->type == TYPE_TEXTS || m->type == TYPE_BLOBS || m->type == TYPE_LIST;
}

/* Fills the struct at `to`, which is zeroed. Every member except lists must be present exactly
 * once. */
static bool read_struct(bh__arena *arena, bh__bytes block, const shape *of, uint8_t *to) {
    reader r = {arena, block.data, block.data + block.count};
    size_t rooms[MAX_MEMBERS] = {0};
    bool seen[MAX_MEMBERS] = {false};
    while (r.at < r.end) {
        uint32_t tag;
        bh__bytes bytes;
        const member *m;
        if (!next_field(&r, &tag, &bytes) || (m = find_member(of, tag)) == NULL) return false;
        size_t index = (size_t)(m - of->members);
        if (seen[index] && !is_list(m)) return false;
        seen[index] = true;
        if (!read_member(&r, m, bytes, to, &rooms[index])) return false;
    }
    for (size_t i = 0; i < of->count; i++) {
        if (!seen[i] && !is_list(&of->members[i])) return false;
    }
    return true;
}

static bool read_whole(int fd, uint8_t *to, size_t bytes) {
    for (size_t at = 0; at < bytes;) {
        ssize_t done = pread(fd, to + at, bytes - at, (off_t)at);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return false;
        at += (size_t)done;
    }
    return true;
}

/* Copied, not mapped: another process can still change or truncate the file. */
static bool read_block(int fd, bh__arena *arena, uint32_t kind, const shape *of, void *out) {
    memset(out, 0, of->bytes);
    struct stat info;
    if (fstat(fd, &info) != 0 || info.st_size < (off_t)sizeof(head) ||
        (uint64_t)info.st_size > MAX_BLOCK)
        return false;
    size_t bytes = (size_t)info.st_size;
    uint8_t *block = bh__arena_alloc(arena, bytes, 1);
    if (block == NULL || !read_whole(fd, block, bytes)) return false;
    head h;
    memcpy(&h, block, sizeof h);
    if (h.magic != MAGIC || h.version != VERSION || h.kind != kind || h.bytes != bytes)
        return false;
    uint64_t hash[2];
    bh__checksum(block + sizeof h, bytes - sizeof h, hash);
    if (hash[0] != h.hash[0] || hash[1] != h.hash[1]) return false;
    if (read_struct(arena, (bh__bytes){block + sizeof h, bytes - sizeof h}, of, out)) return true;
    memset(out, 0, of->bytes);
    return false;
}

bool bh__compile_job_read(int fd, bh__arena *arena, bh__compile_job *out) {
    return read_block(fd, arena, KIND_JOB, &job_shape, out) && out->op >= BH__COMPILE_PROBE &&
           out->op <= BH__COMPILE_NATIVE && out->header_names.count == out->header_bodies.count;
}

bool bh__compile_answer_read(int fd, bh__arena *arena, bh__compile_answer *out) {
    return read_block(fd, arena, KIND_ANSWER, &answer_shape, out);
}
