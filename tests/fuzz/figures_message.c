/* SPDX-License-Identifier: Apache-2.0 */
/* Messages with the figures of a device, as a process may send them to `bulkhead top`; and the
 * pages that are made of them. */
#include "figures/figures.h"
#include "fuzz.h"

static bh__figures figures, again;
static char written[BH__FIGURES_MESSAGE_MAX], rewritten[BH__FIGURES_MESSAGE_MAX];

/* Sections as choices: most inputs would not pass the header. */
static size_t generate(fuzz_input *in, char *out, size_t room) {
    size_t used = 16;
    memset(out, 0, room);
    while (in->left && used + 16 < room) {
        uint32_t head[2] = {fuzz_byte(in) % 12u, (fuzz_byte(in) % 40u + 1) * 8u};
        if (head[0] >= 3 && head[0] <= 5) head[1] = (fuzz_byte(in) + 1u) * 8u;
        if (head[1] > room - used - 8) break;
        memcpy(out + used, head, sizeof head);
        uint32_t some = head[1] < 24 ? head[1] : 24;
        fuzz_take(in, out + used + 8, some);
        memset(out + used + 8 + some, fuzz_byte(in), head[1] - some);
        used += 8 + head[1];
    }
    uint64_t magic = BH__FIGURES_MAGIC, length = used;
    memcpy(out, &magic, 8);
    memcpy(out + 8, &length, 8);
    return used;
}

static void use(const void *message, size_t bytes) {
    if (bh__figures_unpack(message, bytes, &figures) != NULL) return;
    FUZZ_CHECK(figures.lane_count <= BH__FIGURES_LANES);
    FUZZ_CHECK(figures.tag_count <= BH__FIGURES_TAGS);
    size_t length = bh__figures_pack(&figures, written, sizeof written);
    FUZZ_CHECK(length > 0 && bh__figures_unpack(written, length, &again) == NULL);
    FUZZ_CHECK(bh__figures_pack(&again, rewritten, sizeof rewritten) == length);
    FUZZ_CHECK(memcmp(written, rewritten, length) == 0);
    const bh__figures *list[] = {&figures};
    static char page[1 << 16];
    bh__page measured = {0}, to = {.out = page, .room = sizeof page};
    bh__page_write(&measured, list, 1, NULL);
    bh__page_write(&to, list, 1, NULL);
    FUZZ_CHECK(measured.length == to.length);
    for (const char *at = page; *at; at++) FUZZ_CHECK(*at == '\n' || (*at >= ' ' && *at <= '~'));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static char message[16384];
    char *copy = calloc(1, size + 1);
    FUZZ_CHECK(copy != NULL);
    if (size) memcpy(copy, data, size);
    use(copy, size);
    free(copy);
    fuzz_input in = {data, size};
    use(message, generate(&in, message, sizeof message));
    return 0;
}
