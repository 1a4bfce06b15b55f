/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Landlock, through its three system calls. The numbers and structs are defined here because the
 * headers of older systems lack all or part of them.
 */
#include "sandbox/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The same numbers on every architecture that has the calls. */
enum { CREATE_RULESET = 444, ADD_RULE = 445, RESTRICT_SELF = 446 };
enum { ASK_VERSION = 1, RULE_PATH_BENEATH = 1 };

/* Rights over files. Those in ON_FILES apply to files, the others to folders only. */
enum {
    EXECUTE = 1 << 0,
    WRITE_FILE = 1 << 1,
    READ_FILE = 1 << 2,
    READ_DIR = 1 << 3,
    REMOVE_DIR = 1 << 4,
    REMOVE_FILE = 1 << 5,
    MAKE_CHAR = 1 << 6,
    MAKE_DIR = 1 << 7,
    MAKE_REG = 1 << 8,
    MAKE_SOCK = 1 << 9,
    MAKE_FIFO = 1 << 10,
    MAKE_BLOCK = 1 << 11,
    MAKE_SYM = 1 << 12,
    REFER = 1 << 13,     /* ABI 2; before it, files cannot be moved between folders at all */
    TRUNCATE = 1 << 14,  /* ABI 3 */
    IOCTL_DEV = 1 << 15, /* ABI 5 */

    FIRST_RIGHTS = REFER - 1,
    ON_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV,
    TO_READ = READ_FILE | READ_DIR | EXECUTE,
    TO_WRITE = READ_FILE | READ_DIR | WRITE_FILE | REMOVE_DIR | REMOVE_FILE | MAKE_DIR | MAKE_REG |
               MAKE_SOCK | MAKE_FIFO | MAKE_SYM | REFER | TRUNCATE | IOCTL_DEV
};
enum { BIND_TCP = 1 << 0, CONNECT_TCP = 1 << 1 };                 /* ABI 4 */
enum { SCOPE_ABSTRACT_SOCKETS = 1 << 0, SCOPE_SIGNALS = 1 << 1 }; /* ABI 6 */

/* What a set of rules controls: refused unless a rule allows it. */
typedef struct ruleset {
    uint64_t files;
    uint64_t network; /* ABI 4 */
    uint64_t scoped;  /* ABI 6 */
} ruleset;

typedef struct path_rule {
    uint64_t allowed;
    int32_t fd;
} __attribute__((packed)) path_rule;

int bh__sandbox_files_abi(void) {
    long abi = syscall(CREATE_RULESET, NULL, (size_t)0, ASK_VERSION);
    return abi < 0 ? -errno : (int)abi;
}

static ruleset rules_of(int abi) {
    ruleset rules = {.files = FIRST_RIGHTS};
    if (abi >= 2) rules.files |= REFER;
    if (abi >= 3) rules.files |= TRUNCATE;
    if (abi >= 4) rules.network = BIND_TCP | CONNECT_TCP;
    if (abi >= 5) rules.files |= IOCTL_DEV;
    if (abi >= 6) rules.scoped = SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNALS;
    return rules;
}

/* A kernel accepts a larger struct than it knows if the fields that it does not know are zero. */
static int make_ruleset(const ruleset *rules) {
    long fd = syscall(CREATE_RULESET, rules, sizeof *rules, 0);
    return fd < 0 ? -errno : (int)fd;
}

static bool is_out_of_reach(int number) {
    return number == ENOENT || number == ENOTDIR || number == EACCES || number == ELOOP ||
           number == ENAMETOOLONG;
}

static int allow(int set, const ruleset *rules, const bh__sandbox_path *path) {
    int fd = open(path->path, O_PATH | O_CLOEXEC);
    if (fd < 0) return is_out_of_reach(errno) ? 0 : -errno;
    struct stat info;
    path_rule rule = {(path->writable ? TO_WRITE : TO_READ) & rules->files, fd};
    int result = fstat(fd, &info) == 0 ? 0 : -errno;
    if (result == 0 && !S_ISDIR(info.st_mode)) rule.allowed &= ON_FILES;
    if (result == 0 && syscall(ADD_RULE, set, RULE_PATH_BENEATH, &rule, 0) != 0) result = -errno;
    close(fd);
    return result;
}

int bh__sandbox_files(const bh__sandbox_path *paths, size_t count) {
    int abi = bh__sandbox_files_abi();
    if (abi < 0) return abi;
    ruleset rules = rules_of(abi);
    int set = make_ruleset(&rules), result = set < 0 ? set : 0;
    for (size_t i = 0; i < count && result == 0; i++) result = allow(set, &rules, &paths[i]);
    if (result == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) result = -errno;
    if (result == 0 && syscall(RESTRICT_SELF, set, 0) != 0) result = -errno;
    if (set >= 0) close(set);
    return result;
}
