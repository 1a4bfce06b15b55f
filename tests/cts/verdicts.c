/* SPDX-License-Identifier: Apache-2.0 */
/* Thousands of launches, right and wrong: our verdict beside the plain driver's, in another
 * process. In geometry and resources nothing is refused that it takes, and nothing passed that it
 * rejects. */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "../support/support.h"

enum { LAUNCHES = 6000, LIVE = 180, MAX_TOLD = 20 };

/* ---- kernels: few and many registers, bounds, shared memory, clusters ---- */

static void write_hungry(FILE *to) {
    fprintf(to,
            ".visible .entry hungry()\n{\n  .reg .b32 %%r<%d>;\n  .reg .b32 %%a;\n"
            "  .shared .align 4 .b8 words[%d];\n  mov.u32 %%a, words;\n",
            LIVE, LIVE * 4);
    /* Read all, then write all in the other order: all are alive at once. */
    for (int i = 0; i < LIVE; i++)
        fprintf(to, "  ld.volatile.shared.u32 %%r%d, [%%a+%d];\n", i, 4 * i);
    for (int i = LIVE - 1; i >= 0; i--)
        fprintf(to, "  st.volatile.shared.u32 [%%a+%d], %%r%d;\n", 4 * (LIVE - 1 - i), i);
    fputs("  ret;\n}\n", to);
}

static void write_kernels(const char *path, bool clusters) {
    FILE *to = fopen(path, "we");
    REQUIRE(to);
    fputs(clusters ? ".version 7.8\n.target sm_90\n" : ".version 7.0\n.target sm_70\n", to);
    fputs(".address_size 64\n"
          ".visible .entry plain()\n{\n  ret;\n}\n"
          ".visible .entry bounded()\n.maxntid 256, 1, 1\n{\n  ret;\n}\n"
          ".visible .entry flat()\n.maxntid 16, 8, 2\n{\n  ret;\n}\n"
          ".visible .entry required()\n.reqntid 8, 4, 2\n{\n  ret;\n}\n"
          ".visible .entry crowded()\n.maxntid 1024, 1, 1\n.minnctapersm 2\n{\n  ret;\n}\n"
          ".visible .entry holding()\n{\n  .shared .align 4 .b8 held[40000];\n  .reg .b32 %r<3>;\n"
          "  mov.u32 %r1, held;\n  mov.u32 %r2, 5;\n  st.volatile.shared.u32 [%r1], %r2;\n"
          "  ret;\n}\n",
          to);
    if (clusters)
        fputs(".visible .entry pairs()\n.reqnctapercluster 2, 1, 1\n{\n  ret;\n}\n"
              ".visible .entry grouped()\n.explicitcluster\n{\n  ret;\n}\n",
              to);
    write_hungry(to);
    REQUIRE_EQ(fclose(to), 0);
}

static const char *const names[] = {"plain",   "bounded", "flat",  "required", "crowded",
                                    "holding", "hungry",  "pairs", "grouped"};
enum { PLAIN_NAMES = 7, ALL_NAMES = 9 };

/* ---- the plain driver, in a process of its own ---- */

typedef struct other_side {
    pid_t pid;
    FILE *to, *from;
} other_side;

static other_side side_start(const char *ptx) {
    other_side side = {0};
    int down[2], up[2];
    char program[512], ordinal[16] = "0";
    const char *colon = strchr(test_device(), ':');
    if (colon) snprintf(ordinal, sizeof ordinal, "%s", colon + 1);
    test_path(program, sizeof program, "%s/tests/programs/plain_driver", test_build_dir());
    REQUIRE(pipe2(down, O_CLOEXEC) == 0 && pipe2(up, O_CLOEXEC) == 0);
    side.pid = fork();
    if (side.pid == 0) {
        dup2(down[0], 0);
        dup2(up[1], 1);
        execl(program, program, ordinal, ptx, (char *)NULL);
        _exit(127);
    }
    close(down[0]);
    close(up[1]);
    side.to = fdopen(down[1], "w");
    side.from = fdopen(up[0], "r");
    char line[512] = "";
    REQUIRE(side.pid > 0 && side.to && side.from);
    if (!fgets(line, sizeof line, side.from) || strcmp(line, "ready\n") != 0) {
        FAIL("the plain driver says: %s", line);
        REQUIRE(false);
    }
    return side;
}

/* A cluster of one block counts as none here, unless the kernel requires clusters. The driver fits
 * fewer cooperative blocks with it. */
static bool is_no_cluster(const char *name, bh_dim cluster) {
    bool requires = strcmp(name, "pairs") == 0 || strcmp(name, "grouped") == 0;
    return cluster.x == 1 && cluster.y == 1 && cluster.z == 1 && !requires;
}

static int side_ask(const other_side *side, const char *name, const bh_shape *s, bool cooperative,
                    char *said, size_t size) {
    bh_dim cluster = is_no_cluster(name, s->cluster) ? (bh_dim){0} : s->cluster;
    fprintf(side->to, "%s %u %u %u %u %u %u %u %u %u %u %d\n", name, s->grid.x, s->grid.y,
            s->grid.z, s->block.x, s->block.y, s->block.z, cluster.x, cluster.y, cluster.z,
            s->shared_bytes, cooperative);
    fflush(side->to);
    REQUIRE(fgets(said, (int)size, side->from));
    said[strcspn(said, "\n")] = '\0';
    return atoi(said);
}

static void side_end(other_side *side) {
    fclose(side->to);
    fclose(side->from);
    waitpid(side->pid, NULL, 0);
}

/* ---- configurations: most of them near some limit ---- */

static uint32_t pick(rng *r, const uint32_t *list, uint32_t count) {
    return list[rng_below(r, count)];
}
#define PICK(r, ...)                                                                               \
    pick(r, (const uint32_t[]){__VA_ARGS__},                                                       \
         (uint32_t)(sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)))

static bh_dim random_block(rng *r, const bh_device_info *info) {
    switch (rng_below(r, 8)) {
    case 0:
        return (bh_dim){PICK(r, 0, 1, 1023, 1024, 1025, UINT32_MAX), 1, 1};
    case 1:
        return (bh_dim){1, PICK(r, 1, 1023, 1024, 1025, 65536), 1};
    case 2:
        return (bh_dim){1, 1, PICK(r, 1, 63, 64, 65, 1024)};
    case 3:
        return (bh_dim){8, 4, 2};
    case 4:
        return (bh_dim){PICK(r, 32, 64, 16, 31), PICK(r, 1, 16, 32, 33), PICK(r, 1, 2, 4)};
    case 5:
        return (bh_dim){PICK(r, 255, 256, 257, 288, 320, 321, 352, 384), 1, 1};
    case 6:
        return (bh_dim){16, 8, PICK(r, 1, 2, 3)};
    default:
        return (bh_dim){1 + rng_below(r, info->max_threads_per_block), 1, 1};
    }
}

static bh_dim random_grid(rng *r, uint32_t cooperative_limit) {
    uint32_t near = cooperative_limit ? cooperative_limit - 2 + rng_below(r, 5) : 7;
    switch (rng_below(r, 8)) {
    case 0:
        return (bh_dim){PICK(r, 0, 0x80000000u, UINT32_MAX), 1, 1};
    case 1:
        return (bh_dim){1, PICK(r, 0, 65535, 65536, UINT32_MAX), 1};
    case 2:
        return (bh_dim){1, 1, PICK(r, 65535, 65536, UINT32_MAX)};
    case 3:
        return (bh_dim){0, 0, 0};
    case 4:
        return (bh_dim){1 + rng_below(r, 64), 1 + rng_below(r, 8), 1 + rng_below(r, 4)};
    default:
        return (bh_dim){near ? near : 1, 1, 1};
    }
}

static bh_dim random_cluster(rng *r) {
    switch (rng_below(r, 4)) {
    case 0:
        return (bh_dim){1 + rng_below(r, 18), 1, 1};
    case 1:
        return (bh_dim){PICK(r, 1, 2, 4), PICK(r, 1, 2, 4), PICK(r, 1, 2)};
    case 2:
        return (bh_dim){PICK(r, 1, 2, 8, 16, 32), 1, 1};
    default:
        return (bh_dim){1, PICK(r, 2, 8, 9, 16, 17), 1};
    }
}

static uint32_t random_shared(rng *r, const bh_device_limits *limits) {
    uint32_t most = limits->shared_per_block_max;
    switch (rng_below(r, 6)) {
    case 0:
        return PICK(r, most - 1, most, most + 1, UINT32_MAX);
    case 1:
        return PICK(r, most - 40000, most - 39999, most - LIVE * 4, most - LIVE * 4 + 1);
    case 2:
        return PICK(r, 48 * 1024, 48 * 1024 + 1, 64 * 1024, 100 * 1024);
    case 3:
        return rng_below(r, most);
    default:
        return 0;
    }
}

/* How many blocks fit, so that grids can be made that are just too large. */
static uint32_t limit_of(bh_kernel kernel, bh_shape shape, const bh_launch_options *options) {
    bh_preflight p = BH_INIT(p);
    shape.grid = shape.cluster.x ? shape.cluster : (bh_dim){1, 1, 1};
    if (bh_launch_preflight(kernel, shape, NULL, options, &p) != BH_OK) return 0;
    return p.resident_blocks < 100000 ? (uint32_t)p.resident_blocks : 0;
}

static void round_grid(rng *r, bh_shape *shape) {
    if (!shape->cluster.x || rng_below(r, 6) == 0) return;
    bh_dim c = shape->cluster;
    if (shape->grid.x < 100000) shape->grid.x = (shape->grid.x + c.x - 1) / c.x * c.x;
    if (shape->grid.y < 1000) shape->grid.y = (shape->grid.y + c.y - 1) / c.y * c.y;
    if (shape->grid.z < 1000) shape->grid.z = (shape->grid.z + c.z - 1) / c.z * c.z;
}

TEST_TIMEOUT(our_verdict_is_the_drivers, 300) {
    bh_device device = open_device();
    bh_device_info info = BH_INIT(info);
    REQUIRE_OK(bh_device_get_info(device, &info));
    bh_device_limits limits = limits_of(device);
    if (strcmp(info.kind, "cuda") != 0)
        SKIP("the device under test is %s, which has no driver to compare with", info.kind);
    char path[512];
    test_path(path, sizeof path, "%s/kernels.ptx", test_tmp_dir());
    write_kernels(path, limits.cluster_launch);
    bh_module module;
    REQUIRE_OK(bh_module_load_file(device, path, &module));
    other_side side = side_start(path);
    rng r = rng_seeded(2026);
    int taken = 0, refused = 0, wrong = 0;
    for (int i = 0; i < LAUNCHES && wrong < MAX_TOLD; i++) {
        const char *name = names[rng_below(&r, limits.cluster_launch ? ALL_NAMES : PLAIN_NAMES)];
        bh_kernel kernel = get_kernel(module, name);
        bh_launch_options options = BH_INIT(options);
        bool cooperative = info.cooperative && rng_below(&r, 3) == 0;
        options.flags = cooperative ? BH_LAUNCH_COOPERATIVE : 0;
        bh_shape shape = {.block = random_block(&r, &info),
                          .shared_bytes = random_shared(&r, &limits)};
        if (limits.cluster_launch && rng_below(&r, 3) == 0) shape.cluster = random_cluster(&r);
        shape.grid = random_grid(&r, cooperative ? limit_of(kernel, shape, &options) : 0);
        round_grid(&r, &shape);
        char said[256], line[BH_LINE_BYTES] = "taken";
        bh_ticket ticket;
        bh_status ours = bh_launch(kernel, shape, BH_NO_ARGS, &options, &ticket);
        if (ours != BH_OK) bh_preflight_line(NULL, line, sizeof line);
        bh_status after = ours == BH_OK ? bh_wait(ticket, LONG_NS) : BH_OK;
        int theirs = side_ask(&side, name, &shape, cooperative, said, sizeof said);
        taken += theirs == 0;
        refused += theirs != 0;
        if ((ours == BH_OK) == (theirs == 0) && after == BH_OK) continue;
        wrong++;
        FAIL(
            "%s grid %u,%u,%u block %u,%u,%u cluster %u,%u,%u shared %u cooperative %d: the driver "
            "says %s; we say %s (%s, then %s)",
            name, shape.grid.x, shape.grid.y, shape.grid.z, shape.block.x, shape.block.y,
            shape.block.z, shape.cluster.x, shape.cluster.y, shape.cluster.z, shape.shared_bytes,
            cooperative, said, line, bh_status_name(ours), bh_status_name(after));
    }
    printf("%d taken, %d refused by the driver, %d verdicts differ\n", taken, refused, wrong);
    CHECK_GT(taken, LAUNCHES / 20);
    CHECK_GT(refused, LAUNCHES / 20);
    side_end(&side);
    CHECK_OK(bh_device_close(device));
}
