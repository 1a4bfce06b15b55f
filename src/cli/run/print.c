/* SPDX-License-Identifier: Apache-2.0 */
/* Printing buffers as a line of text or as JSON. They are read in pieces, so large ones need no
 * copy. */
#include "../cli.h"

#define MAX_WHOLE  1000 /* buffers with more elements are shortened */
#define SHOWN_EACH 10   /* elements shown at each end of a shortened buffer */
#define PIECE      4096 /* elements read at once */

/* Prints one element; `quoted` if JSON cannot express it as a number. */
typedef void put_element(void *context, const char *text, bool quoted);

typedef struct job {
    bh_type type;
    bh__style style;
    bh__reader *read;
    void *reader_context;
    put_element *put;
    void *put_context;
} job;

static bh_status put_range(const job *work, uint64_t first, uint64_t count) {
    unsigned char piece[PIECE * 8];
    size_t size = bh_type_size(work->type);
    while (count > 0) {
        uint64_t now = count < PIECE ? count : PIECE;
        bh_status status = work->read(work->reader_context, first, now, piece);
        if (status != BH_OK) return status;
        for (uint64_t i = 0; i < now; i++) {
            char text[BH__VALUE_TEXT];
            uint64_t bits = bh__value_load(piece + i * size, work->type);
            if (work->style.hex)
                bh__value_format_hex(work->type, bits, text);
            else
                bh__value_format(work->type, bits, text);
            work->put(work->put_context, text,
                      work->style.hex || bh__value_is_special(work->type, bits));
        }
        first += now;
        count -= now;
    }
    return BH_OK;
}

static bool is_shortened(uint64_t count, bh__style style) {
    return count > MAX_WHOLE && !style.all;
}

static void put_line_element(void *context, const char *text, bool quoted) {
    (void)quoted;
    FILE *to = context;
    fputc(' ', to);
    fputs(text, to);
}

bh_status bh__print_line(FILE *to, bh_type type, uint64_t count, bh__style style, bh__reader *read,
                         void *context) {
    job work = {type, style, read, context, put_line_element, to};
    fprintf(to, "%s[%llu]", bh_type_name(type), (unsigned long long)count);
    bh_status status;
    if (!is_shortened(count, style)) {
        status = put_range(&work, 0, count);
    } else {
        status = put_range(&work, 0, SHOWN_EACH);
        fprintf(to, " ... (%llu more) ...", (unsigned long long)(count - 2 * SHOWN_EACH));
        if (status == BH_OK) status = put_range(&work, count - SHOWN_EACH, SHOWN_EACH);
    }
    fputc('\n', to);
    return status;
}

static void put_json_element(void *context, const char *text, bool quoted) {
    if (quoted)
        bh__json_text(context, text);
    else
        bh__json_raw(context, text);
}

static bh_status json_range(const job *work, bh__json *json, const char *key, uint64_t first,
                            uint64_t count) {
    bh__json_key(json, key);
    bh__json_open_inline(json, '[');
    bh_status status = put_range(work, first, count);
    bh__json_close(json, ']');
    return status;
}

bh_status bh__print_json(bh__json *json, bh_type type, uint64_t count, bh__style style,
                         bh__reader *read, void *context) {
    job work = {type, style, read, context, put_json_element, json};
    if (!is_shortened(count, style)) return json_range(&work, json, "values", 0, count);
    bh_status status = json_range(&work, json, "first", 0, SHOWN_EACH);
    bh__json_key(json, "omitted");
    bh__json_number(json, count - 2 * SHOWN_EACH);
    if (status == BH_OK) status = json_range(&work, json, "last", count - SHOWN_EACH, SHOWN_EACH);
    return status;
}
