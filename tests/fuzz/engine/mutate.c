/* SPDX-License-Identifier: Apache-2.0 */
/* Mutation of a corpus. A child runs the inputs, each from memory that is shared with its parent:
 * when the child dies or hangs, the parent has the input that did it, and starts another child. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "engine.h"

enum { HANG_SECONDS = 20, FAILURES_MAX = 20 };

typedef struct shared {
    _Atomic(uint64_t) executions;
    _Atomic(uint64_t) kept;
    size_t size;
    uint8_t bytes[INPUT_MAX];
} shared;

/* splitmix64: small, and the same everywhere. */
static uint64_t draw(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static size_t below(uint64_t *state, size_t limit) {
    return limit ? draw(state) % limit : 0;
}

static void overwrite(shared *s, size_t at, const void *bytes, size_t count) {
    if (count > s->size - at) count = s->size - at;
    memcpy(s->bytes + at, bytes, count);
}

static void insert(shared *s, size_t at, const uint8_t *bytes, size_t count) {
    if (count > INPUT_MAX - s->size) count = INPUT_MAX - s->size;
    memmove(s->bytes + at + count, s->bytes + at, s->size - at);
    memcpy(s->bytes + at, bytes, count);
    s->size += count;
}

static void erase(shared *s, size_t at, size_t count) {
    if (count > s->size - at) count = s->size - at;
    memmove(s->bytes + at, s->bytes + at + count, s->size - at - count);
    s->size -= count;
}

/* A piece of an input of the corpus, another one than the input in hand most of the time. */
static input piece(const corpus *all, uint64_t *random) {
    const input *from = &all->list[below(random, all->count)];
    size_t at = below(random, from->size), count = 1 + below(random, 64);
    return (input){from->bytes + at, from->size - at < count ? from->size - at : count};
}

static void change(shared *s, const corpus *all, uint64_t *random) {
    static const uint64_t edges[] = {0,      1,          0x7f,       0xff,      0x7fff,
                                     0xffff, 0x7fffffff, 0xffffffff, INT64_MAX, UINT64_MAX};
    size_t at = below(random, s->size);
    uint64_t number = draw(random);
    input other = piece(all, random);
    switch (below(random, 7)) {
    case 0: /* a bit */
        if (s->size) s->bytes[at] ^= (uint8_t)(1 << number % 8);
        break;
    case 1:
        overwrite(s, at, &number, 1);
        break;
    case 2: /* a number of 1, 2, 4 or 8 bytes at its limits, or one beside */
        number = edges[number % (sizeof edges / sizeof *edges)] + below(random, 3) - 1;
        overwrite(s, at, &number, (size_t)1 << below(random, 4));
        break;
    case 3:
        overwrite(s, at, other.bytes, other.size);
        break;
    case 4:
        insert(s, at, other.bytes, other.size);
        break;
    case 5:
        erase(s, at, 1 + below(random, 32));
        break;
    default: /* a byte, so many times */
        insert(s, at, (const uint8_t *)&number, 1 + number % 8);
        break;
    }
}

static void make(shared *s, const corpus *all, uint64_t *random) {
    const input *from = &all->list[below(random, all->count)];
    s->size = from->size < INPUT_MAX ? from->size : INPUT_MAX;
    memcpy(s->bytes, from->bytes, s->size);
    for (size_t rounds = 1 + below(random, 6); rounds; rounds--) change(s, all, random);
}

/* The target gets a copy of exactly the input's size, so that a sanitizer sees a read behind it. */
static void run_input(const uint8_t *bytes, size_t size) {
    uint8_t *copy = malloc(size ? size : 1);
    FUZZ_CHECK(copy != NULL);
    memcpy(copy, bytes, size);
    coverage_begin();
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static void save(const char *folder, const char *name, uint64_t number, const shared *s) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s-%016llx", folder, name, (unsigned long long)number);
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
    if (fd < 0 || write(fd, s->bytes, s->size) != (ssize_t)s->size) perror(path);
    if (fd >= 0) close(fd);
    printf("%s\n", path);
}

static _Noreturn void run_child(const mutation *how, corpus *all, shared *s, uint64_t random) {
    for (size_t i = 0, count = all->count; i < count; i++) {
        s->size = all->list[i].size < INPUT_MAX ? all->list[i].size : INPUT_MAX;
        memcpy(s->bytes, all->list[i].bytes, s->size);
        run_input(s->bytes, s->size);
        s->executions++;
    }
    coverage_grew();
    for (;;) {
        make(s, all, &random);
        run_input(s->bytes, s->size);
        s->executions++;
        if (!coverage_grew()) continue;
        corpus_add(all, s->bytes, s->size);
        save(how->found, how->name, draw(&random), s);
        s->kept++;
    }
}

/* Until the child ends, hangs or the time is up. Whether it failed. */
static bool watch(pid_t child, const shared *s, time_t end) {
    uint64_t before = 0;
    time_t since = time(NULL);
    int status;
    for (;;) {
        if (waitpid(child, &status, WNOHANG) == child) return true;
        bool hangs = time(NULL) - since >= HANG_SECONDS, over = time(NULL) >= end;
        if (hangs || over) {
            kill(child, SIGKILL);
            waitpid(child, &status, 0);
            return hangs;
        }
        uint64_t now = s->executions;
        if (now != before) since = time(NULL);
        before = now;
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
}

int mutate(const mutation *how, corpus *all) {
    int failures = 0;
    uint64_t random = how->seed;
    time_t end = time(NULL) + how->seconds;
    shared *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    FUZZ_CHECK(s != MAP_FAILED);
    if (all->count == 0) corpus_add(all, (const uint8_t *)"", 0);
    while (time(NULL) < end && failures < FAILURES_MAX) {
        uint64_t seed = draw(&random);
        fflush(stdout);
        pid_t child = fork();
        FUZZ_CHECK(child >= 0);
        if (child == 0) run_child(how, all, s, seed);
        if (!watch(child, s, end)) break;
        failures++;
        printf("an input fails: ");
        save(how->crashes, how->name, seed, s);
    }
    printf("%s: %llu executions, %llu inputs kept, %d failures\n", how->name,
           (unsigned long long)s->executions, (unsigned long long)s->kept, failures);
    munmap(s, sizeof *s);
    return failures;
}
