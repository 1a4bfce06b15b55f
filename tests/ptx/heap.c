/* SPDX-License-Identifier: Apache-2.0 */
/* The heap of kernels: malloc and free from many threads, and what is not a block. */
#include <pthread.h>
#include <string.h>

#include "ptx/run/exec.h"
#include "support/kernel.h"
#include "test.h"

enum { BYTES = 1 << 20, ROUNDS = 20000, HELD = 64, THREADS = 4 };

static uint32_t next_number(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Takes and gives back blocks of many sizes; each holds its own pattern as long as it is taken. */
static void *churn(void *context) {
    bh__ptx_heap *heap = context;
    uint64_t held[HELD] = {0};
    uint32_t sizes[HELD], state = (uint32_t)(uintptr_t)&held;
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t n = next_number(&state) % HELD;
        uint8_t *at = (uint8_t *)(uintptr_t)held[n];
        if (at != NULL) {
            CHECK(at[0] == (uint8_t)n && at[sizes[n] - 1] == (uint8_t)n);
            CHECK(bh__ptx_heap_give(heap, held[n]));
            held[n] = 0;
            continue;
        }
        sizes[n] = 1 + next_number(&state) % (n % 8 == 0 ? 8000 : 100);
        held[n] = bh__ptx_heap_take(heap, sizes[n]);
        CHECK_EQ(held[n] % 16, 0);
        if (held[n] != 0) {
            memset((void *)(uintptr_t)held[n], (int)n, sizes[n]);
        }
    }
    for (int n = 0; n < HELD; n++) {
        CHECK(held[n] == 0 || bh__ptx_heap_give(heap, held[n]));
    }
    return NULL;
}

TEST(blocks_do_not_overlap_and_are_joined_again) {
    bh__ptx_heap *heap = bh__ptx_heap_create(BYTES);
    REQUIRE(heap != NULL);
    pthread_t threads[THREADS];
    for (int n = 0; n < THREADS; n++) {
        REQUIRE_EQ(pthread_create(&threads[n], NULL, churn, heap), 0);
    }
    for (int n = 0; n < THREADS; n++) {
        pthread_join(threads[n], NULL);
    }
    uint64_t all = bh__ptx_heap_take(heap, BYTES); /* nothing is lost between blocks */
    CHECK_EQ(all, bh__ptx_heap_range(heap)->base);
    CHECK_EQ(bh__ptx_heap_take(heap, 1), 0);
    CHECK(bh__ptx_heap_give(heap, all));
    bh__ptx_heap_destroy(heap);
}

TEST(only_blocks_can_be_given_back) {
    bh__ptx_heap *heap = bh__ptx_heap_create(BYTES);
    REQUIRE(heap != NULL);
    uint64_t at = bh__ptx_heap_take(heap, 100);
    CHECK(!bh__ptx_heap_give(heap, at + 16));
    CHECK(!bh__ptx_heap_give(heap, at + 1));
    CHECK(!bh__ptx_heap_give(heap, at - 16));
    CHECK(!bh__ptx_heap_give(heap, at + BYTES));
    CHECK(bh__ptx_heap_give(heap, at));
    CHECK(!bh__ptx_heap_give(heap, at));
    CHECK_EQ(bh__ptx_heap_take(heap, 0), 0);
    CHECK_EQ(bh__ptx_heap_take(heap, BYTES + 1), 0);
    CHECK_EQ(bh__ptx_heap_take(heap, UINT64_MAX), 0);
    bh__ptx_heap_destroy(heap);
}

#define HEAP_FUNCTIONS                                                                             \
    PTX_HEAD ".extern .func (.param .b64 r) malloc(.param .b64 n);\n"                              \
             ".extern .func free(.param .b64 a);\n"
#define HEAP_KERNEL(body)                                                                          \
    HEAP_FUNCTIONS ".visible .entry k(.param .u64 p) { .reg .b64 %a<4>, %out; .reg .b32 %t;\n"     \
                   " .param .b64 x; .param .b64 y; ld.param.u64 %out, [p]; mov.u32 %t, %tid.x;\n"  \
                   " mul.wide.u32 %a1, %t, 8; add.u64 %out, %out, %a1;\n" body "\nret; }\n"

static uint64_t slots[64];

static bh__ptx_outcome run(kernel *k, const char *text, bh__ptx_heap *heap, uint32_t threads) {
    bh_status status = kernel_open(k, text, threads, slots, sizeof slots);
    REQUIRE_EQ(status, BH_OK);
    CHECK(bh__ptx_uses_heap(k->module));
    k->grid.heap = heap;
    bh__ptx_outcome outcome = kernel_run(k);
    kernel_close(k);
    return outcome;
}

#define TAKE(size)                                                                                 \
    HEAP_KERNEL("st.param.b64 [x], " size "; call.uni (y), malloc, (x); ld.param.b64 %a2, [y];\n"  \
                "st.global.b64 [%out], %a2; st.u32 [%a2], %t;")
#define GIVE HEAP_KERNEL("ld.global.b64 %a2, [%out]; st.param.b64 [x], %a2; call.uni free, (x);")

TEST(blocks_outlive_their_kernel_and_its_module) {
    kernel k;
    bh__ptx_heap *heap = bh__ptx_heap_create(BYTES);
    REQUIRE(heap != NULL);
    CHECK_EQ(run(&k, TAKE("100"), heap, 64), BH__PTX_DONE);
    for (uint32_t t = 0; t < 64; t++) {
        CHECK_EQ(*(uint32_t *)(uintptr_t)slots[t], t);
    }
    CHECK_EQ(run(&k, GIVE, heap, 64), BH__PTX_DONE);
    CHECK_EQ(bh__ptx_heap_take(heap, BYTES), bh__ptx_heap_range(heap)->base);
    CHECK_EQ(run(&k, GIVE, heap, 1), BH__PTX_DONE); /* slots[0] is the heap's first block again */
    CHECK_EQ(run(&k, GIVE, heap, 1), BH__PTX_FAULTED);
    CHECK_EQ(k.fault.kind, BH__PTX_FAULT_HEAP);
    CHECK_EQ(k.fault.address, slots[0]);
    CHECK_STR_CONTAINS(k.fault.text, "freed before");
    memset(slots, 0, sizeof slots);
    CHECK_EQ(run(&k, GIVE, heap, 64), BH__PTX_DONE); /* NULL may be freed */
    bh__ptx_heap_destroy(heap);
}

TEST(a_full_heap_gives_null) {
    kernel k;
    bh__ptx_heap *heap = bh__ptx_heap_create(BYTES);
    REQUIRE(heap != NULL);
    CHECK_EQ(run(&k, TAKE("0x200000"), heap, 1), BH__PTX_FAULTED);
    CHECK_EQ(k.fault.kind, BH__PTX_FAULT_ADDRESS);
    CHECK_EQ(slots[0], 0);
    CHECK_EQ(run(&k, TAKE("16"), NULL, 1), BH__PTX_FAULTED);
    CHECK_EQ(slots[0], 0);
    bh__ptx_heap_destroy(heap);
}
