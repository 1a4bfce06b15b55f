/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bulkhead/compile.h: CUDA C++ to modules and binaries; the cache of results. Stable.
 *
 * Sources are compiled with NVRTC where it is installed and with clang otherwise, in a process of
 * its own with limits on time and memory. A compiler that crashes or hangs gives BH_E_COMPILE.
 * Results are kept in memory and on disk. If many threads ask for the same compile at once, it runs
 * once.
 *
 * A source may come from somebody who is not trusted. The compiler is confined: it reads files in
 * include_paths, in the folder of `name` if that is an absolute path, and of the toolchain; it
 * writes no file and has no network (as far as the kernel has Landlock: see "bulkhead doctor").
 * Extra flags must be ones known to be harmless: docs/architecture/compiler.md lists them.
 * BH_COMPILE_UNCONFINED lifts both restrictions, for plugins and headers anywhere; privileged
 * (set-user-ID) programs cannot set it.
 *
 *     bh_status build(bh_device gpu, const char *source, bh_module *module, bh_kernel *kernel) {
 *         const char *names[] = {"scale<float, 4>"};
 *         bh_compile_options options = BH_INIT(options);
 *         options.expressions = names;
 *         options.expression_count = 1;
 *         bh_status status = bh_module_compile(gpu, source, &options, module);
 *         char log[4096];
 *         if (status == BH_E_COMPILE && !bh_compile_log(NULL, log, sizeof log, NULL))
 *             fputs(log, stderr);
 *         return status ? status : bh_kernel_get(*module, "scale<float, 4>", kernel);
 *     }
 */
#ifndef BULKHEAD_COMPILE_H
#define BULKHEAD_COMPILE_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- options ---- */

enum { BH_COMPILER_AUTO = 0, BH_COMPILER_NVRTC = 1, BH_COMPILER_CLANG = 2 };
/* AUTO: what the device loads fastest; PTX if there is no device. BH_OUTPUT_PTX | BH_OUTPUT_CUBIN
 * gives both from one compile, with NVRTC: such a binary loads on every device. */
enum { BH_OUTPUT_AUTO = 0, BH_OUTPUT_PTX = 1, BH_OUTPUT_CUBIN = 2, BH_OUTPUT_LTOIR = 4 };

enum {
    BH_COMPILE_FAST_MATH = 1u << 0,
    BH_COMPILE_FLUSH_DENORMALS = 1u << 1,
    BH_COMPILE_LINE_INFO = 1u << 2,
    BH_COMPILE_DEBUG = 1u << 3,       /* with the variables of the source; not optimised */
    BH_COMPILE_RELOCATABLE = 1u << 4, /* for bh_link */
    BH_COMPILE_NO_CACHE = 1u << 5,    /* neither look in the cache nor keep the result */
    BH_COMPILE_UNCONFINED = 1u << 6   /* the compiler reads any file and accepts any extra flag */
};

/* A header in memory, found by #include "name" and #include <name>. */
typedef struct bh_header {
    const char *name;
    const char *text;
} bh_header;

/* Unknown and contradictory options are refused; the message names them. */
typedef struct bh_compile_options {
    uint32_t size;
    uint32_t flags;    /* BH_COMPILE_... */
    uint32_t compiler; /* BH_COMPILER_... */
    uint32_t output;   /* BH_OUTPUT_... */
    /* "sm_90"; "compute_90" is that with PTX as output. Default the device's own, without a device
     * sm_80. */
    const char *arch;
    const char *name;           /* of the source in messages; default "source.cu" */
    uint32_t standard;          /* 14, 17 or 20; default 17 */
    uint32_t max_registers;     /* of a thread, 16 to 255; default no limit */
    const char *const *defines; /* "NAME" or "NAME=VALUE" */
    size_t define_count;
    const char *const *include_paths; /* relative to the working folder of the call */
    size_t include_path_count;
    const bh_header *headers;
    size_t header_count;
    const char *const *expressions; /* "my_kernel<float, 256>": names for bh_kernel_get */
    size_t expression_count;
    const char *const *extra; /* flags for the compiler, of those known to be harmless */
    size_t extra_count;
    uint64_t timeout_ns;      /* at least 1 ms; default 60 s */
    uint64_t memory_limit;    /* bytes of address space that the compiler may use, at least 64 MiB;
                                 default 8 GiB */
    const char *cache_dir;    /* default BULKHEAD_CACHE_DIR, else the user's cache folder */
    uint64_t cache_limit;     /* bytes on disk; default BULKHEAD_CACHE_LIMIT, else 1 GiB */
    const char *compiler_dir; /* the folder of bulkhead-compiler; default: found as workers are */
} bh_compile_options;

/* ---- modules ---- */

/* Compiles, unless the cache has the result, and loads; returns when the module can be used. A
 * kernel is found by the name that the compiler gave it: that is its own name with extern "C", else
 * a mangled one, which an entry of `expressions` stands for. BH_E_COMPILE: the source has errors;
 * the message has the first ones, bh_compile_log all. BH_E_UNSUPPORTED: there is no compiler. */
BH_API bh_status bh_module_compile(bh_device device, const char *source,
                                   const bh_compile_options *options, bh_module *out);

/* As bh_module_compile, without waiting. The module can be used once the ticket is done. All
 * arguments are copied. bh_cancel works until the result is loaded, and ends the compiler unless
 * others wait for the same compile. Tickets of compiles and loads complete in any order. */
BH_API bh_status bh_submit_compile(bh_device device, const char *source,
                                   const bh_compile_options *options, bh_module *out,
                                   bh_ticket *ticket);
/* As bh_module_load, without waiting. The module can be used once the ticket is done. `image` is
 * copied. */
BH_API bh_status bh_submit_load(bh_device device, const void *image, size_t bytes, bh_module *out,
                                bh_ticket *ticket);

/* All that the compiler printed. ticket NULL: of this thread's last failed compile or link, empty
 * if that failed before a compiler ran. Otherwise of the ticket's compile, with the warnings of a
 * successful one; the logs of the most recent 64 tickets with one are kept (BH_E_NOT_FOUND). Writes
 * up to `capacity` bytes with the NUL; `length`, which may be NULL, gets the whole length without
 * it. */
BH_API bh_status bh_compile_log(const bh_ticket *ticket, char *text, size_t capacity,
                                size_t *length);

/* ---- binaries ---- */

/* The result of a compile or link. It belongs to no device. */
typedef struct bh_binary {
    uint64_t id;
} bh_binary;

BH_API bh_status bh_compile(const char *source, const bh_compile_options *options, bh_binary *out);
/* Links 1 to 4096 parts: PTX of BH_COMPILE_RELOCATABLE, or of `nvcc -dc`, to PTX, on every machine
 * and for every device; else cubins, LTO-IR and PTX to a cubin, and LTO-IR to PTX, with nvJitLink.
 * A name that is missing or defined twice gives BH_E_COMPILE; the message has the name and the
 * parts, and with PTX the lines; the log has all such names.
 *
 * The name expressions of all parts work with the result, and mean the kernels of their parts. One
 * that means several kernels, of several parts, gives BH_E_INVALID when it is asked for. Static
 * kernels of the same name in several parts are kept apart in PTX that is linked to PTX; with
 * nvJitLink they are BH_E_COMPILE where the result does not tell them apart.
 *
 * Of the options it uses arch (default: that of the first part; PTX linked to PTX is for the
 * highest among the parts, and arch must not be lower), output (default PTX if every part holds
 * PTX, else cubin), name, flags, max_registers, extra, the limits and the cache. Messages call a
 * part by the name that it was compiled with, "part 2" if it has none, or as a line
 * #line 1 "name" in the PTX says. */
BH_API bh_status bh_link(const bh_binary *parts, size_t count, const bh_compile_options *options,
                         bh_binary *out);
/* A binary from bytes of another origin. They are copied. */
BH_API bh_status bh_binary_from(const void *bytes, size_t count, bh_binary *out);
BH_API bh_status bh_binary_release(bh_binary binary);
/* Loads a binary as a module; its name expressions work in bh_kernel_get. Of a binary with PTX and
 * a cubin the device gets the cubin if it can run it, else the PTX. */
BH_API bh_status bh_module_load_binary(bh_device device, bh_binary binary, bh_module *out);
/* The binary that a module was compiled to or made from, to be released. BH_E_NOT_FOUND: the module
 * was loaded from an image. */
BH_API bh_status bh_module_get_binary(bh_module module, bh_binary *out);

/* Where a result came from. */
enum { BH_CACHE_MISS = 0, BH_CACHE_MEMORY = 1, BH_CACHE_DISK = 2, BH_CACHE_OFF = 3 };

typedef struct bh_binary_info {
    uint32_t size;
    uint32_t output;   /* BH_OUTPUT_PTX ...: what it holds */
    const void *bytes; /* the cubin if it holds both; valid as long as the binary */
    uint64_t count;
    const char *log;     /* what the compiler printed, "" if nothing; valid as long */
    char compiler[64];   /* "nvrtc 13.0", "clang 19.1.7" */
    char arch[16];       /* "sm_90"; "": unknown */
    char why[192];       /* why this compiler: "NVRTC was not found in ..." */
    uint32_t cache;      /* BH_CACHE_... */
    uint32_t name_count; /* of name expressions */
    uint64_t compile_ns; /* how long the compiler ran */
} bh_binary_info;

BH_API bh_status bh_binary_get_info(bh_binary binary, bh_binary_info *out);
/* The bytes of one output that the binary holds, valid as long as the binary; PTX has a NUL behind
 * its end. BH_E_NOT_FOUND: it does not hold that. */
BH_API bh_status bh_binary_get_image(bh_binary binary, uint32_t output, const void **bytes,
                                     size_t *count);
/* The mangled name that the compiler gave a name expression, valid as long as the binary. White
 * space is ignored. */
BH_API bh_status bh_binary_lowered(bh_binary binary, const char *expression, const char **out);

/* ---- the cache and the compilers ---- */

typedef struct bh_cache_info {
    uint32_t size;
    uint32_t usable; /* 0: there is none on disk, for the reason in `why` */
    char dir[512];
    char why[256];    /* also set if the last result could not be kept */
    uint64_t entries; /* on disk */
    uint64_t bytes;
    uint64_t limit;    /* the default */
    uint64_t compiles; /* runs of a compiler; of this process, as all counts down to `evicted` */
    uint64_t memory_hits;
    uint64_t disk_hits;
    uint64_t misses;
    uint64_t joined;  /* waited for the same compile of another thread */
    uint64_t dropped; /* damaged entries found */
    uint64_t evicted;
    uint64_t all_hits; /* of all processes that use the folder, since it was cleared */
    uint64_t all_misses;
} bh_cache_info;

/* `dir` NULL: the default folder. */
BH_API bh_status bh_cache_get_info(const char *dir, bh_cache_info *out);
/* Also clears what this process has in memory. */
BH_API bh_status bh_cache_clear(const char *dir);

typedef struct bh_cache_entry {
    uint32_t size;
    uint32_t output;
    uint64_t bytes;   /* on disk */
    uint64_t used_ns; /* last use, since 1970 */
    char name[64];    /* of the source; "(damaged)" */
    char arch[16];
    char compiler[64];
    char key[40];
} bh_cache_entry;
/* The entries on disk, most recently used first. As bh_memory_list. */
BH_API bh_status bh_cache_list(const char *dir, bh_cache_entry *entries, size_t entry_size,
                               size_t capacity, size_t *count);

typedef struct bh_compiler_entry {
    uint32_t size;
    uint32_t usable;
    uint32_t compiler; /* BH_COMPILER_NVRTC ...; 0 for nvJitLink, the linker */
    uint32_t reserved;
    char version[64];
    char path[512];
    char why[256]; /* why it cannot be used */
} bh_compiler_entry;

/* Searches for the compilers anew. As bh_memory_list. */
BH_API bh_status bh_compiler_list(bh_compiler_entry *entries, size_t entry_size, size_t capacity,
                                  size_t *count);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
