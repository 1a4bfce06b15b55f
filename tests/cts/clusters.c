/* SPDX-License-Identifier: Apache-2.0 */
/* Launches in clusters: shared memory of other blocks, the cluster's barrier, asynchronous
 * copies. */
#include "../support/support.h"

/* A kernel with buffers at %in and %out, a number %n, its rank and the cluster's size. */
#define KERNEL(name, directives, body)                                                              \
    ".visible .entry " name "(.param .u64 in, .param .u64 out, .param .u32 n)\n" directives         \
    "{ .reg .pred %p<8>, %done; .reg .b16 %h<4>; .reg .b32 %r<24>, %t, %n, %rank, %size, %s;\n"     \
    ".reg .b64 %rd<12>, %in, %out;\n"                                                               \
    ".shared .align 128 .b8 s[2048]; .shared .align 8 .b64 bar[8];\n"                               \
    "ld.param.u64 %in, [in]; ld.param.u64 %out, [out]; ld.param.u32 %n, [n];\n"                     \
    "cvta.to.global.u64 %in, %in; cvta.to.global.u64 %out, %out; mov.u32 %s, s;\n"                  \
    "mov.u32 %t, %tid.x; mov.u32 %rank, %cluster_ctarank; mov.u32 %size, %cluster_nctarank;\n" body \
    "\nret; }\n"

#define SYNC "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"

/* %rd1: the address of word number %r1 of %out */
#define WORD "mul.wide.u32 %rd1, %r1, 4; add.u64 %rd1, %rd1, %out;\n"

static const char text[] = ".version 8.1\n.target sm_90\n.address_size 64\n"
    /* Every block has 256 bins of a histogram in its shared memory. */
    KERNEL("histogram", "",
           "mov.u32 %r2, 0; mov.u32 %r1, %t;\n"
           "ZERO: shl.b32 %r3, %r1, 2; add.u32 %r3, %r3, %s; st.shared.u32 [%r3], %r2;\n"
           "add.u32 %r1, %r1, 128; setp.lt.u32 %p1, %r1, 256; @%p1 bra ZERO;\n" SYNC
           "mov.u32 %r4, %ctaid.x; mov.u32 %r5, %nctaid.x; mad.lo.u32 %r6, %r4, 128, %t;\n"
           "shl.b32 %r5, %r5, 7;\n"
           "COUNT: setp.ge.u32 %p1, %r6, %n; @%p1 bra COUNTED; mul.wide.u32 %rd2, %r6, 4;\n"
           "add.u64 %rd2, %rd2, %in; ld.global.u32 %r7, [%rd2]; shr.u32 %r8, %r7, 8;\n"
           "and.b32 %r7, %r7, 255; shl.b32 %r7, %r7, 2; add.u32 %r7, %r7, %s;\n"
           "mapa.shared::cluster.u32 %r9, %r7, %r8; red.shared::cluster.add.u32 [%r9], 1;\n"
           "add.u32 %r6, %r6, %r5; bra COUNT;\n"
           "COUNTED: " SYNC "mov.u32 %r2, %t;\n"
           "ADD: shl.b32 %r3, %r2, 2; add.u32 %r3, %r3, %s; ld.shared.u32 %r4, [%r3];\n"
           "mad.lo.u32 %r1, %rank, 256, %r2; " WORD "red.global.add.u32 [%rd1], %r4;\n"
           "add.u32 %r2, %r2, 128; setp.lt.u32 %p1, %r2, 256; @%p1 bra ADD;")
    /* Each thread sends 8 bytes to the block of the next rank, whose mbarrier expects them. */
    KERNEL("ring", "",
           "mov.u32 %r2, bar; setp.ne.u32 %p1, %t, 0; @%p1 bra INITED;\n"
           "mbarrier.init.shared::cta.b64 [%r2], 1; fence.mbarrier_init.release.cluster;\n"
           "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 512; INITED: " SYNC
           "add.u32 %r3, %rank, 1; rem.u32 %r3, %r3, %size;\n"
           "mapa.shared::cluster.u32 %r4, %r2, %r3; mapa.shared::cluster.u32 %r5, %s, %r3;\n"
           "shl.b32 %r6, %t, 3; add.u32 %r5, %r5, %r6; mad.lo.u32 %r7, %rank, 1000, %t;\n"
           "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.u32 [%r5], {%r7, %t}, "
           "[%r4];\n"
           "WAIT: mbarrier.try_wait.parity.shared::cta.b64 %done, [%r2], 0; @!%done bra WAIT;\n"
           "add.u32 %r8, %s, %r6; ld.shared.v2.u32 {%r9, %r10}, [%r8]; add.u32 %r9, %r9, %r10;\n"
           "mov.u32 %r11, %ctaid.x; mad.lo.u32 %r1, %r11, 64, %t; " WORD
           "st.global.u32 [%rd1], %r9; " SYNC)
    /* Warp 2 of the first block copies tiles of 256 bytes to all blocks through three stages. Two
     * warps of every block read them, and tell the first block when they have. */
    KERNEL("tiles", "",
           "mov.u32 %r2, bar; mov.u32 %r3, 0; shl.b32 %r4, %size, 6; mov.u32 %r20, 0;\n"
           "setp.ne.u32 %p1, %t, 0; @%p1 bra INITED;\n"
           "INIT: shl.b32 %r5, %r3, 3; add.u32 %r5, %r5, %r2;\n"
           "mbarrier.init.shared::cta.b64 [%r5], 1; mbarrier.init.shared::cta.b64 [%r5+32], %r4;\n"
           "add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 3; @%p2 bra INIT;\n"
           "fence.mbarrier_init.release.cluster; INITED: " SYNC "mov.u32 %r3, 0;\n"
           "setp.lt.u32 %p3, %t, 64; @%p3 bra READ; mad.lo.u32 %r6, %rank, 1024, 64;\n"
           "setp.ne.u32 %p4, %r6, %t; @%p4 bra END; mov.u32 %r7, 1; shl.b32 %r7, %r7, %size;\n"
           "sub.u32 %r7, %r7, 1; cvt.u16.u32 %h1, %r7;\n"
           "COPY: rem.u32 %r8, %r3, 3; div.u32 %r9, %r3, 3; and.b32 %r9, %r9, 1;\n"
           "xor.b32 %r9, %r9, 1; shl.b32 %r10, %r8, 3; add.u32 %r10, %r10, %r2;\n"
           "shl.b32 %r11, %r8, 8; add.u32 %r11, %r11, %s; mul.wide.u32 %rd2, %r3, 256;\n"
           "add.u64 %rd2, %rd2, %in;\n"
           "EMPTY: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %done, [%r10+32], "
           "%r9; @!%done bra EMPTY;\n"
           "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
           "[%r11], [%rd2], 256, [%r10], %h1;\n"
           "add.u32 %r3, %r3, 1; setp.lt.u32 %p5, %r3, %n; @%p5 bra COPY; bra END;\n"
           "READ: rem.u32 %r8, %r3, 3; div.u32 %r9, %r3, 3; and.b32 %r9, %r9, 1;\n"
           "shl.b32 %r10, %r8, 3; add.u32 %r10, %r10, %r2; shl.b32 %r11, %r8, 8;\n"
           "add.u32 %r11, %r11, %s; shl.b32 %r12, %t, 2; add.u32 %r11, %r11, %r12;\n"
           "@!%p1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r10], 256;\n"
           "FULL: mbarrier.try_wait.parity.shared::cta.b64 %done, [%r10], %r9;\n"
           "@!%done bra FULL; ld.shared.u32 %r13, [%r11]; mad.lo.u32 %r20, %r20, 3, %r13;\n"
           "mapa.shared::cluster.u32 %r14, %r10, 0;\n"
           "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r14+32];\n"
           "add.u32 %r3, %r3, 1; setp.lt.u32 %p5, %r3, %n; @%p5 bra READ;\n"
           "mov.u32 %r15, %ctaid.x; mad.lo.u32 %r1, %r15, 64, %t; " WORD
           "st.global.u32 [%rd1], %r20; END: bar.sync 0; " SYNC)
    /* Each round a block writes to the memory of the next one, and reads its own. */
    KERNEL("rounds", "",
           "add.u32 %r2, %rank, 1; rem.u32 %r2, %r2, %size; mapa.shared::cluster.u32 %r3, %s, "
           "%r2;\n"
           "shl.b32 %r4, %t, 2; add.u32 %r3, %r3, %r4; add.u32 %r5, %s, %r4; mov.u32 %r6, 0;\n"
           "mov.u32 %r9, 0; " SYNC
           "LOOP: mad.lo.u32 %r7, %r6, 10, %rank; st.shared::cluster.u32 [%r3], %r7; " SYNC
           "ld.shared.u32 %r8, [%r5]; mad.lo.u32 %r9, %r9, 7, %r8; " SYNC
           "add.u32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, %n; @%p1 bra LOOP;\n"
           "mov.u32 %r11, %ctaid.x; mad.lo.u32 %r1, %r11, 64, %t; " WORD
           "st.global.u32 [%rd1], %r9;")
    /* The block of rank 1 ends at once, and half of the others' threads. */
    KERNEL("leave", "",
           "setp.eq.u32 %p1, %rank, 1; @%p1 ret; setp.gt.u32 %p2, %t, 31; @%p2 ret;\n"
           "barrier.cluster.arrive; barrier.cluster.wait; barrier.cluster.arrive.relaxed;\n"
           "barrier.cluster.wait.acquire; mov.u32 %r1, %ctaid.x; " WORD
           "red.global.add.u32 [%rd1], 1;")
    /* Where the block is: ten words for each. */
    KERNEL("place", "",
           "mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ctaid.y; mov.u32 %r4, %ctaid.z;\n"
           "mov.u32 %r5, %nctaid.x; mov.u32 %r6, %nctaid.y; mad.lo.u32 %r7, %r4, %r6, %r3;\n"
           "mad.lo.u32 %r7, %r7, %r5, %r2; mul.lo.u32 %r1, %r7, 10; " WORD
           "mov.u32 %r2, %clusterid.x; st.global.u32 [%rd1], %r2;\n"
           "mov.u32 %r2, %clusterid.y; st.global.u32 [%rd1+4], %r2;\n"
           "mov.u32 %r2, %clusterid.z; st.global.u32 [%rd1+8], %r2;\n"
           "mov.u32 %r2, %nclusterid.x; st.global.u32 [%rd1+12], %r2;\n"
           "mov.u32 %r2, %cluster_ctaid.x; st.global.u32 [%rd1+16], %r2;\n"
           "mov.u32 %r2, %cluster_ctaid.y; st.global.u32 [%rd1+20], %r2;\n"
           "mov.u32 %r2, %cluster_ctaid.z; st.global.u32 [%rd1+24], %r2;\n"
           "mov.pred %p1, %is_explicit_cluster; selp.u32 %r2, 1, 0, %p1;\n"
           "st.global.u32 [%rd1+28], %r2; st.global.u32 [%rd1+32], %rank;\n"
           "st.global.u32 [%rd1+36], %size;")
    /* A barrier of the whole grid, at [in], between two of the cluster. */
    KERNEL("both", "",
           "mov.u32 %r2, %ctaid.x; st.shared.u32 [%s], %r2; " SYNC "mov.u32 %r3, %nctaid.x;\n"
           "setp.ne.u32 %p1, %t, 0; @%p1 bra CAME; atom.acq_rel.gpu.global.add.u32 %r4, [%in], 1;\n"
           "SPIN: ld.acquire.gpu.global.u32 %r4, [%in]; setp.ne.u32 %p2, %r4, %r3;\n"
           "@%p2 bra SPIN; CAME: bar.sync 0; add.u32 %r5, %rank, 1; rem.u32 %r5, %r5, %size;\n"
           "mapa.shared::cluster.u32 %r6, %s, %r5; ld.shared::cluster.u32 %r7, [%r6];\n"
           "mov.u32 %r1, %r2; " WORD "st.global.u32 [%rd1], %r7; " SYNC)
        KERNEL("required", ".reqnctapercluster 2, 1, 1\n",
               "mov.u32 %r1, %ctaid.x; " WORD "st.global.u32 [%rd1], %size;")
            KERNEL("explicit", ".explicitcluster\n",
                   "mov.u32 %r1, %ctaid.x; " WORD "st.global.u32 [%rd1], %size;");

/* What only an interpreter finds. */
static const char wrong[] = ".version 8.1\n.target sm_90\n.address_size 64\n" KERNEL(
    "ended", "",
    "mapa.shared::cluster.u32 %r2, %s, 1; setp.eq.u32 %p1, %rank, 1; @%p1 ret;\n"
    "READ: ld.shared::cluster.u32 %r3, [%r2]; bra READ;")
    KERNEL("beyond", "",
           "xor.b32 %r2, %rank, 1; mapa.shared::cluster.u32 %r3, %s, %r2; " SYNC
           "st.shared::cluster.u32 [%r3+65536], %t; " SYNC)
        KERNEL("stuck", "",
               "setp.eq.u32 %p1, %rank, 1; @%p1 bra ONE; " SYNC "ret;\n"
               "ONE: setp.lt.u32 %p2, %t, 32; @%p2 bra TWO; barrier.sync 1, 96; ret; TWO: " SYNC)
            KERNEL("uninitialised", "",
                   "mov.u32 %r2, bar; mbarrier.arrive.shared::cta.b64 _, [%r2+16];")
                KERNEL(
                    "odd_size", "",
                    "mov.u32 %r2, bar; mbarrier.init.shared::cta.b64 [%r2], 1; add.u32 %n, %n, 20;\n"
                    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%in], %n, "
                    "[%r2];");

static bh_shape clusters_of(uint32_t blocks, uint32_t size, uint32_t threads) {
    bh_shape shape = BH_SHAPE(blocks, 1, 1, threads, 1, 1);
    shape.cluster.x = size;
    return shape;
}

static bool has_clusters(bh_device device) {
    return limits_of(device).cluster_launch;
}

#define OPEN(device, module)                                                                       \
    bh_device device = open_device();                                                              \
    if (!has_clusters(device)) SKIP("the device has no clusters");                                 \
    bh_module module = load_module(device, text)

/* ---- each kernel, on any device; `size` blocks in a cluster ---- */

static void run_histogram(bh_module module, bh_device device, uint32_t size) {
    enum { N = 20000 };
    static uint32_t data[N], expected[16 * 256];
    rng r = rng_seeded(size);
    memset(expected, 0, sizeof expected);
    for (int i = 0; i < N; i++) expected[data[i] = rng_below(&r, size * 256)]++;
    bh_buffer in = words_alloc(device, N), out = words_filled(device, size * 256, 0);
    REQUIRE_OK(bh_buffer_write(in, 0, data, sizeof data));
    REQUIRE_OK(run_now(get_kernel(module, "histogram"), clusters_of(3 * size, size, 128),
                       BH_ARGS(BH_IN(in), BH_INOUT(out), (uint32_t)N)));
    for (uint32_t i = 0; i < size * 256; i++) REQUIRE_EQ(word_read(out, i), expected[i]);
}

static void run_ring(bh_module module, bh_device device, uint32_t size) {
    bh_buffer out = words_filled(device, 2 * size * 64, 0);
    REQUIRE_OK(run_now(get_kernel(module, "ring"), clusters_of(2 * size, size, 64),
                       BH_ARGS(BH_NULL, BH_OUT(out), 0u)));
    for (uint32_t i = 0; i < 2 * size * 64; i++)
        REQUIRE_EQ(word_read(out, i), (i / 64 + size - 1) % size * 1000 + i % 64 * 2);
}

static void run_tiles(bh_module module, bh_device device, uint32_t size) {
    enum { TILES = 20 };
    bh_buffer in = words_counting(device, TILES * 64, 100);
    bh_buffer out = words_filled(device, 2 * size * 64, 0);
    REQUIRE_OK(run_now(get_kernel(module, "tiles"), clusters_of(2 * size, size, 96),
                       BH_ARGS(BH_IN(in), BH_OUT(out), (uint32_t)TILES)));
    for (uint32_t i = 0; i < 2 * size * 64; i++) {
        uint32_t sum = 0;
        for (uint32_t tile = 0; tile < TILES; tile++) sum = sum * 3 + 100 + tile * 64 + i % 64;
        REQUIRE_EQ(word_read(out, i), sum);
    }
}

static void run_rounds(bh_module module, bh_device device, uint32_t size) {
    enum { ROUNDS = 9 };
    bh_buffer out = words_filled(device, 3 * size * 64, 0);
    REQUIRE_OK(run_now(get_kernel(module, "rounds"), clusters_of(3 * size, size, 64),
                       BH_ARGS(BH_NULL, BH_OUT(out), (uint32_t)ROUNDS)));
    for (uint32_t i = 0; i < 3 * size * 64; i++) {
        uint32_t left = (i / 64 + size - 1) % size, sum = 0;
        for (uint32_t n = 0; n < ROUNDS; n++) sum = sum * 7 + n * 10 + left;
        REQUIRE_EQ(word_read(out, i), sum);
    }
}

static void run_both(bh_module module, bh_device device, uint32_t size) {
    bh_buffer in = words_filled(device, 1, 0), out = words_filled(device, 4 * size, 0);
    bh_launch_options options = BH_INIT(options);
    options.flags = BH_LAUNCH_COOPERATIVE;
    REQUIRE_OK(run_with(get_kernel(module, "both"), clusters_of(4 * size, size, 64),
                        BH_ARGS(BH_INOUT(in), BH_OUT(out), 0u), &options));
    for (uint32_t i = 0; i < 4 * size; i++)
        REQUIRE_EQ(word_read(out, i), i / size * size + (i % size + 1) % size);
}

TEST(a_histogram_over_the_shared_memory_of_a_cluster) {
    OPEN(device, module);
    for (uint32_t size = 1; size <= 8; size *= 2) run_histogram(module, device, size);
    CHECK_OK(bh_device_close(device));
}

TEST(stores_to_the_next_block_complete_its_mbarrier) {
    OPEN(device, module);
    for (uint32_t size = 2; size <= 8; size++) run_ring(module, device, size);
    CHECK_OK(bh_device_close(device));
}

TEST(tiles_are_copied_to_all_blocks_in_stages) {
    OPEN(device, module);
    for (uint32_t size = 2; size <= 8; size *= 2) run_tiles(module, device, size);
    CHECK_OK(bh_device_close(device));
}

TEST(the_barrier_of_a_cluster_holds_in_a_loop) {
    OPEN(device, module);
    for (uint32_t size = 2; size <= 8; size++) run_rounds(module, device, size);
    CHECK_OK(bh_device_close(device));
}

TEST(cooperative_launches_have_clusters_too) {
    OPEN(device, module);
    run_both(module, device, 2);
    run_both(module, device, 8);
    CHECK_OK(bh_device_close(device));
}

TEST(threads_that_have_ended_count_as_arrived) {
    OPEN(device, module);
    bh_buffer out = words_filled(device, 8, 0);
    REQUIRE_OK(run_now(get_kernel(module, "leave"), clusters_of(8, 4, 64),
                       BH_ARGS(BH_NULL, BH_INOUT(out), 0u)));
    for (uint32_t i = 0; i < 8; i++) CHECK_EQ(word_read(out, i), i % 4 == 1 ? 0 : 32);
    CHECK_OK(bh_device_close(device));
}

TEST(blocks_know_where_they_are) {
    OPEN(device, module);
    bh_shape shape = BH_SHAPE(4, 4, 6, 1, 1, 1);
    shape.cluster = (bh_dim){2, 1, 3};
    bh_buffer out = words_filled(device, 96 * 10, 99);
    REQUIRE_OK(run_now(get_kernel(module, "place"), shape, BH_ARGS(BH_NULL, BH_OUT(out), 0u)));
    for (uint32_t i = 0; i < 96; i++) {
        uint32_t x = i % 4, y = i / 4 % 4, z = i / 16;
        const uint32_t expected[10] = {x / 2, y, z / 3, 2, x % 2, 0, z % 3, 1, x % 2 + z % 3 * 2,
                                       6};
        for (uint32_t n = 0; n < 10; n++) REQUIRE_EQ(word_read(out, i * 10 + n), expected[n]);
    }
    shape.cluster = (bh_dim){0, 0, 0};
    REQUIRE_OK(run_now(get_kernel(module, "place"), shape, BH_ARGS(BH_NULL, BH_OUT(out), 0u)));
    CHECK_EQ(word_read(out, 3), 4);
    CHECK_EQ(word_read(out, 7), 0);
    CHECK_EQ(word_read(out, 9), 1);
    CHECK_OK(bh_device_close(device));
}

/* ---- what is refused ---- */

#define REFUSED(call, status, why)                                                                 \
    do {                                                                                           \
        CHECK_REFUSED(call, status);                                                               \
        bh_error refused_;                                                                         \
        bh_last_error(&refused_);                                                                  \
        CHECK_EQ(refused_.reason, why);                                                            \
    } while (0)

TEST(kernels_get_the_cluster_they_were_built_for) {
    OPEN(device, module);
    bh_buffer out = words_filled(device, 8, 0);
    bh_kernel required = get_kernel(module, "required"), explicit = get_kernel(module, "explicit");
    bh_args args = BH_ARGS(BH_NULL, BH_OUT(out), 0u);
    CHECK_OK(run_now(required, clusters_of(8, 0, 32), args));
    CHECK(words_are(out, 8, 2));
    REFUSED(bh_launch(required, clusters_of(8, 4, 32), args, NULL, NULL), BH_E_LAUNCH,
            BH_REASON_REQUIRED_CLUSTER);
    REFUSED(bh_launch(required, clusters_of(7, 0, 32), args, NULL, NULL), BH_E_LAUNCH,
            BH_REASON_CLUSTER_GRID);
    REFUSED(bh_launch(explicit, clusters_of(8, 0, 32), args, NULL, NULL), BH_E_LAUNCH,
            BH_REASON_REQUIRED_CLUSTER);
    CHECK_OK(run_now(explicit, clusters_of(8, 4, 32), args));
    CHECK(words_are(out, 8, 4));
    CHECK_OK(run_now(explicit, clusters_of(8, 1, 32), args));
    CHECK(words_are(out, 8, 1));
    CHECK_OK(bh_device_close(device));
}

TEST(clusters_that_cannot_run_are_refused) {
    OPEN(device, module);
    bh_kernel kernel = get_kernel(module, "rounds");
    bh_args args = BH_ARGS(BH_NULL, BH_NULL, 0u);
    bh_preflight p = BH_INIT(p);
    REQUIRE_OK(bh_launch_preflight(kernel, clusters_of(16, 8, 64), NULL, NULL, &p));
    CHECK_EQ(p.error.status, BH_OK);
    CHECK_EQ(p.resident_blocks % 8, 0);
    bh_occupancy o = BH_INIT(o);
    REQUIRE_OK(bh_kernel_get_occupancy(kernel, clusters_of(16, 8, 64), &o));
    CHECK_GE(o.max_cluster, 8);
    CHECK_EQ(o.resident_blocks, p.resident_blocks);
    uint32_t beyond = o.max_cluster + 1;
    REFUSED(bh_launch(kernel, clusters_of(beyond, beyond, 64), args, NULL, NULL), BH_E_LAUNCH,
            BH_REASON_CLUSTER_SIZE);
    REFUSED(bh_launch(kernel, clusters_of(9, 2, 64), args, NULL, NULL), BH_E_LAUNCH,
            BH_REASON_CLUSTER_GRID);
    bh_launch_options options = BH_INIT(options);
    options.flags = BH_LAUNCH_COOPERATIVE;
    uint32_t many = (uint32_t)p.resident_blocks + 8;
    REFUSED(bh_launch(kernel, clusters_of(many, 8, 64), args, &options, NULL), BH_E_RESIDENCY,
            BH_REASON_RESIDENCY);
    CHECK_OK(bh_device_close(device));
}

/* ---- faults of the CPU device, which say where ---- */

static void check_fault(bh_device device, const char *name, const char *what) {
    bh_module module = load_module(device, wrong);
    bh_buffer in = words_filled(device, 64, 0);
    bh_ticket ticket = submit(get_kernel(module, name), clusters_of(4, 2, 64),
                              BH_ARGS(BH_IN(in), BH_NULL, 0u), NULL);
    CHECK_STATUS(bh_wait(ticket, LONG_NS), BH_E_FAULT);
    bh_error error;
    bh_ticket_error(ticket, &error);
    CHECK_STR_CONTAINS(error.message, what);
    CHECK_STR_CONTAINS(error.message, "block (");
    CHECK(error.fix[0] != 0);
    wait_worker(device);
}

TEST_TIMEOUT(faults_in_clusters_say_what_happened, 60) {
    bh_device device = open_device();
    if (!is_cpu(device) || has_queues(device)) SKIP("texts of the CPU device without queues");
    check_fault(device, "ended", "of the block of rank 1 of the cluster, which has ended");
    check_fault(device, "beyond", "illegal write of 4 bytes at cluster's shared address");
    check_fault(device, "stuck", "can never complete");
    check_fault(device, "uninitialised", "the mbarrier is not initialised");
    check_fault(device, "odd_size", "a bulk copy of 20 bytes, which is not a multiple of 16");
    CHECK_OK(bh_device_close(device));
}

TEST_TIMEOUT(checks_find_nothing_wrong_with_clusters, 120) {
    bh_device plain = open_device();
    if (!is_cpu(plain) || has_queues(plain)) SKIP("checks are for the CPU device without queues");
    bh_device_options options = device_options(BH_DEVICE_CHECK);
    bh_device device = open_device_with(&options);
    bh_module module = load_module(device, text);
    run_histogram(module, device, 4);
    run_ring(module, device, 4);
    run_tiles(module, device, 4);
    run_rounds(module, device, 4);
    run_both(module, device, 2);
    CHECK_OK(bh_device_close(device));
    CHECK_OK(bh_device_close(plain));
}
