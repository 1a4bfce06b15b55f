/* SPDX-License-Identifier: Apache-2.0 */
/* .npy files: what the header says lies in the file. */
#include "cli/cli.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    unsigned char *copy = malloc(size + 1); /* as bh__file_read leaves it */
    FUZZ_CHECK(copy != NULL);
    memcpy(copy, data, size);
    copy[size] = 0;
    bh__bytes file = {copy, size};
    bh__npy npy;
    bh_error error;
    if (bh__npy_parse("input.npy", &file, &npy, &error) == BH_OK) {
        size_t element = npy.type ? bh_type_size(npy.type) : npy.raw_size;
        uint64_t bytes;
        FUZZ_CHECK(element && !__builtin_mul_overflow(npy.count, element, &bytes));
        FUZZ_CHECK(npy.offset <= size && bytes <= size - npy.offset);
    } else {
        FUZZ_CHECK(error.message[0] && error.fix[0]);
    }
    free(copy);
    return 0;
}
