/* SPDX-License-Identifier: Apache-2.0 */
/* The hash of what the processor says that it can do. */
#include "base/processor_kind.h"

#include <stddef.h>
#include <string.h>
#include <sys/auxv.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "base/siphash.h"

enum { MAX_WORDS = 64 };

typedef struct words {
    uint32_t list[MAX_WORDS];
    size_t count;
} words;

static void add(words *w, uint64_t value) {
    w->list[w->count++] = (uint32_t)value;
    w->list[w->count++] = (uint32_t)(value >> 32);
}

#if defined(__x86_64__)
/* Which registers the system saves: without them the instructions that use them fault, whatever the
 * processor has. */
static uint64_t saved_registers(void) {
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return 0;
    __asm__ volatile("xgetbv" : "=a"(a), "=d"(d) : "c"(0));
    return (uint64_t)d << 32 | a;
}

static void add_all(words *w) {
    static const unsigned leaves[][2] = {{0, 0},           {1, 0},    {7, 0},          {7, 1},
                                         {0xd, 0},         {0xd, 1},  {0x14, 0},       {0x19, 0},
                                         {0x80000001u, 0}, {0x24, 0}, {0x80000008u, 0}};
    for (size_t i = 0; i < sizeof leaves / sizeof *leaves; i++) {
        unsigned a = 0, b = 0, c = 0, d = 0;
        if (!__get_cpuid_count(leaves[i][0], leaves[i][1], &a, &b, &c, &d)) a = b = c = d = 0;
        if (leaves[i][0] == 1) b = 0; /* which processor of the machine this is */
        if (leaves[i][0] == 0xd) b = c = 0;
        if (leaves[i][0] == 0x80000008u) c = 0;
        add(w, (uint64_t)b << 32 | a);
        add(w, (uint64_t)d << 32 | c);
    }
    add(w, saved_registers());
}
#else
static void add_all(words *w) {
    (void)w;
}
#endif

uint64_t bh__processor_kind(void) {
    words w = {.count = 0};
    uint64_t hash[2];
    add(&w, getauxval(AT_HWCAP));
    add(&w, getauxval(AT_HWCAP2));
    add_all(&w);
    bh__checksum(w.list, w.count * sizeof *w.list, hash);
    return hash[0];
}
