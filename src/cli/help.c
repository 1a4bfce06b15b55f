/* SPDX-License-Identifier: Apache-2.0 */
/* The help texts. */
#include "cli.h"

#include <string.h>

static const char overview[] =
    "Usage: bulkhead COMMAND [options]\n"
    "\n"
    "Runs GPU kernels in a worker process. When one of them crashes or hangs, the\n"
    "data stays and the program goes on. Without a GPU the same kernels run on the CPU.\n"
    "\n"
    "  devices   what there is, with limits; why a device is missing\n"
    "  run       load a kernel, launch it on arguments, print what it wrote\n"
    "  compile   CUDA C++ to PTX, cubin or LTO-IR, through the cache\n"
    "  cache     compiled kernels that are kept: stats, list, clear\n"
    "  demo      the main job start to finish, with a crash survived\n"
    "  doctor    what is installed, what is missing, what to do\n"
    "  help      help COMMAND: more about one of them\n"
    "\n"
    "  --help    this text          --version   the version\n"
    "\n"
    "Examples:\n"
    "  bulkhead demo\n"
    "  bulkhead run saxpy.ptx -g 4 -b 256 f32:2 in:f32:0..1000 inout:f32:1*1000 u32:1000\n"
    "  bulkhead run kernel.cu -k 'scale<float>' -b 4 inout:f32:1,2,3,4\n"
    "\n"
    "Exit status: 0 done, 1 refused or failed, 2 wrong usage, 3 the kernel faulted\n"
    "or overran its deadline.\n";

static const char devices[] =
    "Usage: bulkhead devices [--json]\n"
    "\n"
    "Lists every device there could be, with its hardware, limits and modes (ECC,\n"
    "compute mode, MIG, MPS), or with the reason why it cannot be used. Exit status\n"
    "1 if none can.\n"
    "\n"
    "      --json   as a JSON object\n";

static const char run[] =
    "Usage: bulkhead run FILE [options] [--] ARG...\n"
    "\n"
    "Loads FILE (PTX; CUDA C++, which is compiled first; a .cubin or .fatbin where the\n"
    "device can run it), launches a kernel of it and prints the buffers it wrote.\n"
    "\n"
    "  -k, --kernel NAME        default: the only kernel in the file; of CUDA C++ also\n"
    "                           an expression like 'my_kernel<float, 256>'\n"
    "  -g, --grid X[,Y[,Z]]     blocks, default 1\n"
    "  -b, --block X[,Y[,Z]]    threads in a block, default 1\n"
    "  -s, --shared BYTES       dynamic shared memory\n"
    "      --cluster X[,Y[,Z]]  blocks in a cluster\n"
    "      --cooperative        all blocks at once, or none\n"
    "  -d, --device NAME        auto (default), cpu, cuda or cuda:N\n"
    "      --check              find accesses out of bounds, reads of what was never\n"
    "                           written, and races; CPU device (the default then)\n"
    "      --repeat N           launch N times on the same buffers, report the time\n"
    "      --timeout SECONDS    for all launches together, default 60\n"
    "      --json               one JSON object on standard output\n"
    "      --hex                elements as raw bit patterns\n"
    "      --all                print long buffers whole\n"
    "      --counters           what was counted, on standard error\n"
    "      --trace FILE         a trace for Perfetto (ui.perfetto.dev)\n"
    "For CUDA C++ (.cu):\n"
    "  -D NAME[=VALUE]  -I DIR  --std=c++NN  --arch=sm_NN  and the other options of\n"
    "  \"bulkhead compile\" that say how\n"
    "\n"
    "ARG, in the order of the kernel's parameters:\n"
    "  TYPE:VALUE               a scalar: f32:2.5  i32:-7  u64:0x10\n"
    "  in:TYPE:V,V,...          a read-only buffer with these values; among them\n"
    "                           V*N for N times V, A..B for A, A+1, ... B-1\n"
    "  in:FILE.npy              ... from a NumPy file\n"
    "  in:TYPE:@FILE            ... from raw bytes\n"
    "  out:TYPE:COUNT           a zeroed buffer, printed when the kernel is done\n"
    "  out:TYPE:COUNT:@FILE     ... saved there instead (.npy, or raw bytes)\n"
    "  inout:...                as in:, writable, and printed\n"
    "  bytes:HEX                a struct by value, lowest address first\n"
    "  null                     a null pointer\n"
    "TYPE: i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32 f64\n"
    "\n"
    "A printed buffer is one line, ARG<index> TYPE[COUNT] v v v ..., index from 0.\n"
    "\n"
    "Examples:\n"
    "  bulkhead run saxpy.ptx -g 4 -b 256 f32:2 in:f32:0..1000 inout:f32:1*1000 u32:1000\n"
    "  bulkhead run saxpy.ptx -b 3 f32:0.5 in:f32:1,2,3 inout:f32:0*3 u32:3 --json\n"
    "  bulkhead run saxpy.ptx -b 8 f32:2 in:x.npy inout:y.npy u32:8 --repeat 100\n";

static const char demo[] =
    "Usage: bulkhead demo [-d auto|cpu|cuda]\n"
    "\n"
    "Runs a kernel, crashes one, shows that the data is intact and the next kernel\n"
    "runs, kills one that never ends, and checks every step. Exit status 0 only if\n"
    "everything was as it should be.\n"
    "\n"
    "  -d, --device NAME   auto (default), cpu, cuda or cuda:N\n";

static const char doctor[] =
    "Usage: bulkhead doctor [--json]\n"
    "\n"
    "Looks at what Bulkhead needs and what it can use: worker programs, the system,\n"
    "an NVIDIA driver and its GPUs, compilers. Lines begin with ok, info, warn or\n"
    "FAIL; a Fix: line says what to do. Exit status 1 if something is broken.\n"
    "\n"
    "      --json   as a JSON object\n";

static const char compile[] =
    "Usage: bulkhead compile FILE [options]\n"
    "\n"
    "Compiles CUDA C++ with NVRTC where it is installed and with clang otherwise, in a\n"
    "process of its own. The same compile is done once and kept (see bulkhead cache).\n"
    "FILE - is standard input. PTX goes to standard output unless -o names a file.\n"
    "\n"
    "  -o, --output FILE       write the result there; .cubin and .ltoir say what it is\n"
    "      --ptx               (default)\n"
    "      --cubin             machine code; NVRTC only\n"
    "      --ltoir             for link-time optimisation; NVRTC only\n"
    "  -D NAME[=VALUE]         define a macro\n"
    "  -I DIR                  where to look for headers, after the file's own folder\n"
    "      --std=c++NN         14, 17 (default) or 20\n"
    "      --arch=sm_NN        default sm_80\n"
    "      --name EXPRESSION   a kernel like 'my_kernel<float, 256>'; -v tells its name\n"
    "      --compiler NAME     auto (default), nvrtc or clang\n"
    "      --fast-math         --ftz (denormals are flushed to zero)\n"
    "      --debug             --line-info\n"
    "      --max-registers N   of a thread, 16 to 255\n"
    "      --relocatable       to be linked\n"
    "      --extra FLAG        passed to the compiler as it is\n"
    "      --no-cache          neither look there nor keep the result\n"
    "      --timeout SECONDS   default 60\n"
    "  -v, --verbose           say which compiler it was, why, and whether it was cached\n"
    "      --json              that as JSON on standard output; the result goes to -o\n"
    "\n"
    "What the compiler says goes to standard error, with the source lines marked.\n"
    "\n"
    "Examples:\n"
    "  bulkhead compile kernel.cu -o kernel.ptx\n"
    "  bulkhead compile kernel.cu --cubin --arch=sm_90 -o kernel.cubin -v\n";

static const char cache[] =
    "Usage: bulkhead cache [stats|list|clear] [--json]\n"
    "\n"
    "Compiled kernels are kept in BULKHEAD_CACHE_DIR, else XDG_CACHE_HOME/bulkhead,\n"
    "else ~/.cache/bulkhead, in files of the user's own. BULKHEAD_CACHE_LIMIT (512M, 2G)\n"
    "bounds them, 1 GiB unless told; the least recently used go first.\n"
    "\n"
    "  stats    the folder, what is in it, hits and misses of all programs since it was\n"
    "           cleared, and why it is not used if it is not (default)\n"
    "  list     each entry, the most recently used first: key, last use, size, what it\n"
    "           is, compiler, source\n"
    "  clear    remove them all\n"
    "\n"
    "      --json   as a JSON object\n";

static const struct {
    const char *topic;
    const char *text;
} texts[] = {
    {"devices", devices}, {"run", run},         {"demo", demo},
    {"doctor", doctor},   {"compile", compile}, {"cache", cache},
};

bool bh__help_print(FILE *to, const char *topic) {
    if (topic == NULL || strcmp(topic, "help") == 0) {
        fputs(overview, to);
        return true;
    }
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (strcmp(topic, texts[i].topic) == 0) {
            fputs(texts[i].text, to);
            return true;
        }
    return false;
}
