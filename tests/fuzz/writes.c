/* SPDX-License-Identifier: Apache-2.0 */
/* Which variables kernels can write: the scan of PTX text, and the record of it behind an image.
 * What is written to a record is read from it again. */
#include "writes/writes.h"
#include "fuzz.h"

/* A record behind an image of a few bytes holds the same names. */
static void read_back(const bh__writes *writes, const uint8_t *data, size_t size) {
    size_t bytes;
    uint8_t *record = bh__writes_record_make(writes, &bytes);
    if (!record) return;
    uint8_t *image = malloc(8 + bytes);
    FUZZ_CHECK(image != NULL);
    memset(image, 0, 8);
    memcpy(image + 8, record, bytes);
    bh__writes *again = bh__writes_record_read(image, 8 + bytes);
    FUZZ_CHECK(again != NULL);
    fuzz_input in = {data, size};
    while (in.left) {
        char *name = fuzz_text(&in, ' ', NULL);
        FUZZ_CHECK(bh__writes_has(writes, name) == bh__writes_has(again, name));
        free(name);
    }
    bh__writes_free(again);
    free(image);
    free(record);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    bh__writes *writes = bh__writes_of_ptx((const char *)data, size);
    if (writes) read_back(writes, data, size);
    bh__writes_free(writes);
    bh__writes_free(bh__writes_record_read(data, size));
    return 0;
}
