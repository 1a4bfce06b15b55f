/* SPDX-License-Identifier: Apache-2.0 */
/* The help texts. */
#include "cli.h"

#include <string.h>

static const char overview[] =
    "Usage: bulkhead COMMAND [options]\n"
    "\n"
    "Runs GPU kernels in a worker process. When one of them crashes or hangs, the\n"
    "data stays and the program goes on. Without a GPU the same PTX runs on the CPU.\n"
    "\n"
    "  devices   what there is, with limits; why a device is missing\n"
    "  run       load a kernel, launch it on arguments, print what it wrote\n"
    "  demo      the main job start to finish, with a crash survived\n"
    "  doctor    what is installed, what is missing, what to do\n"
    "  help      help COMMAND: more about one of them\n"
    "\n"
    "  --help    this text          --version   the version\n"
    "\n"
    "Examples:\n"
    "  bulkhead demo\n"
    "  bulkhead run saxpy.ptx -g 4 -b 256 f32:2 in:f32:0..1000 inout:f32:1*1000 u32:1000\n"
    "\n"
    "Exit status: 0 done, 1 refused or failed, 2 wrong usage, 3 the kernel faulted\n"
    "or overran its deadline.\n"
    "\n"
    "There is no compiler in this version: kernels come as PTX, and the commands\n"
    "compile and cache are refused.\n";

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
    "Loads FILE (PTX; a .cubin or .fatbin where the device can run it), launches a\n"
    "kernel of it and prints the buffers it wrote.\n"
    "\n"
    "  -k, --kernel NAME        default: the only kernel in the file\n"
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
    "  bulkhead run saxpy.ptx -b 8 f32:2 in:x.npy inout:y.npy u32:8 --repeat 100\n"
    "\n"
    "Refused in this version: .cu files with their options -D, -I, --std and --arch.\n";

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
    "bulkhead compile is not in this version: there is no compiler behind it.\n"
    "\n"
    "Make PTX with one of these, and run that:\n"
    "  nvcc --ptx FILE.cu\n"
    "  clang++ -S --cuda-device-only --cuda-gpu-arch=sm_75 FILE.cu\n";

static const char cache[] =
    "bulkhead cache is not in this version: nothing is compiled, nothing is cached.\n";

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
