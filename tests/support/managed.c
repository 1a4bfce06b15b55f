/* SPDX-License-Identifier: Apache-2.0 */
#include "managed.h"
#include "buffers.h"

made managed_made(bh_device device, uint64_t words, uint32_t flags) {
    made m;
    void *pointer = NULL;
    REQUIRE_OK(alloc_managed(device, BH_U32, words, flags, &m.buffer, &pointer));
    m.words = pointer;
    return m;
}

bh_buffer managed_driven(bh_device device, uint64_t words) {
    bh_buffer buffer;
    void *pointer = &buffer;
    bh_status status = alloc_managed(device, BH_U32, words, BH_BUFFER_DRIVER, &buffer, &pointer);
    if (status == BH_E_UNSUPPORTED) {
        bh_error error;
        bh_last_error(&error);
        SKIP("%s", error.message);
    }
    REQUIRE_OK(status);
    CHECK(pointer == NULL);
    return buffer;
}

bh_managed_info managed_info(bh_buffer buffer) {
    bh_managed_info info = BH_INIT(info);
    REQUIRE_OK(bh_managed_get_info(buffer, &info));
    return info;
}

bh_status prefetch_on(bh_lane lane, bh_buffer buffer, uint64_t offset, uint64_t bytes,
                      uint32_t where, bh_ticket *out) {
    bh_submit_options options = BH_INIT(options);
    options.lane = lane;
    return bh_managed_prefetch(buffer, offset, bytes, where, &options, out);
}

bool counts_up(const uint32_t *words, uint64_t count, uint32_t first) {
    for (uint64_t i = 0; i < count; i++) {
        if (words[i] == first + (uint32_t)i) continue;
        fprintf(stderr, "word %llu is %u, not %u\n", (unsigned long long)i, words[i],
                first + (uint32_t)i);
        return false;
    }
    return true;
}
