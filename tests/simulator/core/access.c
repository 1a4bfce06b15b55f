/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the compiler calls at each access (gcc -fsanitize=thread, without its library): a check
 * whose memory it is, a scheduling point at atomics, store buffers as x86 has them.
 */
#include <string.h>

#include "sim.h"

#define HERE __builtin_return_address(0)

unsigned sim_store_weight;

typedef struct store {
    void *at;
    unsigned bytes;
    uint64_t value;
} store;

enum { BUFFER = 8 };
static struct {
    store stores[BUFFER];
    int count;
} buffers[MAX_FIBERS];
static int pending; /* stores in all buffers */

static void commit_oldest(int id) {
    store *first = &buffers[id].stores[0];
    memcpy(first->at, &first->value, first->bytes);
    buffers[id].count--;
    pending--;
    memmove(first, first + 1, (size_t)buffers[id].count * sizeof *first);
}

void sim_stores_flush(void) {
    if (!pending || !sim_current) return;
    while (buffers[sim_current->id].count) commit_oldest(sim_current->id);
}

/* The memory system's own choices. */
static void commit_some(void) {
    if (!pending) return;
    for (int i = 0; i < sim_fiber_count; i++) {
        if (!buffers[i].count) continue;
        if (sim_fibers[i]->dead)
            while (buffers[i].count) commit_oldest(i);
        else if (sim_random() % sim_store_weight == 0)
            commit_oldest(i);
    }
}

static void put(volatile void *at, unsigned bytes, uint64_t value, int order) {
    void *to = (void *)(uintptr_t)at;
    if (!sim_current || !sim_exploring || !sim_store_weight || order == __ATOMIC_SEQ_CST) {
        sim_stores_flush();
        memcpy(to, &value, bytes);
        return;
    }
    int id = sim_current->id;
    if (buffers[id].count == BUFFER) commit_oldest(id);
    buffers[id].stores[buffers[id].count++] = (store){to, bytes, value};
    pending++;
}

static bool overlaps(const store *one, const volatile void *at, size_t bytes) {
    uintptr_t a = (uintptr_t)one->at, b = (uintptr_t)at;
    return a < b + bytes && b < a + one->bytes;
}

/* A thread sees its own stores. */
static uint64_t get(const volatile void *at, unsigned bytes) {
    uint64_t value = 0;
    for (int i = pending ? buffers[sim_current->id].count : 0; i-- > 0;) {
        const store *one = &buffers[sim_current->id].stores[i];
        if (one->at == (void *)(uintptr_t)at && one->bytes == bytes) return one->value;
        if (!overlaps(one, at, bytes)) continue;
        sim_stores_flush();
        break;
    }
    memcpy(&value, (const void *)(uintptr_t)at, bytes);
    return value;
}

static void look(const volatile void *at, size_t bytes, bool write, const void *where) {
    if (sim_current) sim_access_check(at, bytes, write, where);
}

static void before_change(volatile void *at, size_t bytes, const void *where) {
    look(at, bytes, true, where);
    sim_stores_flush();
    sim_point(where);
    commit_some();
}

#define CHANGE(bits, type, name, result)                                                           \
    type __tsan_atomic##bits##_##name(volatile type *at, type value, int order);                   \
    type __tsan_atomic##bits##_##name(volatile type *at, type value, int order) {                  \
        (void)order;                                                                               \
        before_change(at, sizeof *at, HERE);                                                       \
        type old = *at;                                                                            \
        *at = (type)(result);                                                                      \
        return old;                                                                                \
    }
#define EXCHANGE(bits, type, name)                                                                 \
    int __tsan_atomic##bits##_##name(volatile type *at, type *expected, type value, int order,     \
                                     int failed);                                                  \
    int __tsan_atomic##bits##_##name(volatile type *at, type *expected, type value, int order,     \
                                     int failed) {                                                 \
        (void)order, (void)failed;                                                                 \
        before_change(at, sizeof *at, HERE);                                                       \
        bool same = *at == *expected;                                                              \
        if (same)                                                                                  \
            *at = value;                                                                           \
        else                                                                                       \
            *expected = *at;                                                                       \
        return same;                                                                               \
    }
#define ATOMICS(bits, type)                                                                        \
    type __tsan_atomic##bits##_load(const volatile type *at, int order);                           \
    type __tsan_atomic##bits##_load(const volatile type *at, int order) {                          \
        (void)order;                                                                               \
        look(at, sizeof *at, false, HERE);                                                         \
        sim_point(HERE);                                                                           \
        commit_some();                                                                             \
        return (type)get(at, sizeof *at);                                                          \
    }                                                                                              \
    void __tsan_atomic##bits##_store(volatile type *at, type value, int order);                    \
    void __tsan_atomic##bits##_store(volatile type *at, type value, int order) {                   \
        look(at, sizeof *at, true, HERE);                                                          \
        sim_point(HERE);                                                                           \
        commit_some();                                                                             \
        put(at, sizeof *at, value, order);                                                         \
    }                                                                                              \
    type __tsan_atomic##bits##_compare_exchange_val(volatile type *at, type expected, type value,  \
                                                    int order, int failed);                        \
    type __tsan_atomic##bits##_compare_exchange_val(volatile type *at, type expected, type value,  \
                                                    int order, int failed) {                       \
        (void)order, (void)failed;                                                                 \
        before_change(at, sizeof *at, HERE);                                                       \
        type old = *at;                                                                            \
        if (old == expected) *at = value;                                                          \
        return old;                                                                                \
    }                                                                                              \
    CHANGE(bits, type, exchange, value)                                                            \
    CHANGE(bits, type, fetch_add, old + value)                                                     \
    CHANGE(bits, type, fetch_sub, old - value)                                                     \
    CHANGE(bits, type, fetch_and, old &value)                                                      \
    CHANGE(bits, type, fetch_or, old | value)                                                      \
    CHANGE(bits, type, fetch_xor, old ^ value)                                                     \
    EXCHANGE(bits, type, compare_exchange_strong)                                                  \
    EXCHANGE(bits, type, compare_exchange_weak)

ATOMICS(8, uint8_t)
ATOMICS(16, uint16_t)
ATOMICS(32, uint32_t)
ATOMICS(64, uint64_t)

void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_thread_fence(int order) {
    if (order == __ATOMIC_SEQ_CST) sim_stores_flush();
    sim_point(HERE);
}
void __tsan_atomic_signal_fence(int order);
void __tsan_atomic_signal_fence(int order) {
    (void)order;
}

/* Plain accesses: checked, and no scheduling points. A plain store commits those before it. */
static void plain(const void *at, size_t bytes, bool write, const void *where) {
    look(at, bytes, write, where);
    if (!pending || !sim_current) return;
    if (write) {
        sim_stores_flush();
        return;
    }
    for (int i = 0; i < buffers[sim_current->id].count; i++) {
        if (!overlaps(&buffers[sim_current->id].stores[i], at, bytes)) continue;
        sim_stores_flush();
        return;
    }
}

#define PLAIN(name, bytes, write)                                                                  \
    void name(void *at);                                                                           \
    void name(void *at) {                                                                          \
        plain(at, bytes, write, HERE);                                                             \
    }
#define PLAINS(bytes)                                                                              \
    PLAIN(__tsan_read##bytes, bytes, false)                                                        \
    PLAIN(__tsan_write##bytes, bytes, true)                                                        \
    PLAIN(__tsan_unaligned_read##bytes, bytes, false)                                              \
    PLAIN(__tsan_unaligned_write##bytes, bytes, true)
PLAINS(1)
PLAINS(2)
PLAINS(4)
PLAINS(8)
PLAINS(16)

static void range(const void *at, size_t bytes, bool write, const void *where) {
    if (!bytes) return;
    plain(at, 1, write, where);
    plain((const char *)at + bytes - 1, 1, write, where);
}
void __tsan_read_range(void *at, unsigned long bytes);
void __tsan_read_range(void *at, unsigned long bytes) {
    range(at, bytes, false, HERE);
}
void __tsan_write_range(void *at, unsigned long bytes);
void __tsan_write_range(void *at, unsigned long bytes) {
    range(at, bytes, true, HERE);
}
void __tsan_init(void);
void __tsan_init(void) {
}
void __tsan_func_entry(void *from);
void __tsan_func_entry(void *from) {
    (void)from;
}
void __tsan_func_exit(void);
void __tsan_func_exit(void) {
}

void *sim_os_memcpy(void *to, const void *from, size_t bytes);
void *sim_os_memcpy(void *to, const void *from, size_t bytes) {
    range(to, bytes, true, HERE);
    range(from, bytes, false, HERE);
    return memcpy(to, from, bytes);
}
void *sim_os_memmove(void *to, const void *from, size_t bytes);
void *sim_os_memmove(void *to, const void *from, size_t bytes) {
    range(to, bytes, true, HERE);
    range(from, bytes, false, HERE);
    return memmove(to, from, bytes);
}
void *sim_os_memset(void *to, int value, size_t bytes);
void *sim_os_memset(void *to, int value, size_t bytes) {
    range(to, bytes, true, HERE);
    return memset(to, value, bytes);
}

/* ---- what stands for time ---- */

void bh__simulated_relax(void);
void bh__simulated_relax(void) {
    if (sim_current) sim_give_way(100, HERE);
}
unsigned long long bh__simulated_ticks(void);
unsigned long long bh__simulated_ticks(void) {
    sim_time_pass(10);
    return sim_now_ns();
}
