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
    "  devices   list devices with limits, or why one is missing\n"
    "  run       load a kernel, launch it on arguments, print what it wrote\n"
    "  compile   CUDA C++ to PTX, cubin or LTO-IR, through the cache\n"
    "  link      several files (PTX, CUDA C++, cubins, LTO-IR) to one, PTX or a cubin\n"
    "  cache     the cache of compiled kernels: stats, list, clear\n"
    "  demo      run kernels, crash one, and check that the data survives\n"
    "  top       the devices that are open now, live\n"
    "  serve     the same as a web page, with metrics for Prometheus\n"
    "  bench     measure launches, copies and losses on this machine\n"
    "  doctor    check what is installed and what is missing\n"
    "  help      help COMMAND: more about one of them\n"
    "\n"
    "  --help    this text          --version   the version\n"
    "\n"
    "Examples:\n"
    "  bulkhead demo\n"
    "  bulkhead run saxpy.ptx -g 4 -b 256 f32:2 in:f32:0..1000 inout:f32:1*1000 u32:1000\n"
    "  bulkhead run kernel.cu -k 'scale<float>' -b 4 inout:f32:1,2,3,4\n"
    "\n"
    "Exit status: 0 success, 1 refused or failed, 2 wrong usage, 3 the kernel faulted\n"
    "or exceeded its deadline.\n";

static const char devices[] =
    "Usage: bulkhead devices [--json]\n"
    "\n"
    "Lists the GPUs from cuda:0 on, up to the first that cannot be opened, and the CPU\n"
    "device, with hardware, limits and modes (ECC, compute mode, MIG, MPS). A device that\n"
    "cannot be opened is listed, with the reason, only if it is cuda:0 or the CPU device.\n"
    "Opens each device in turn, which takes as long as starting its worker. Exit status 1\n"
    "if none can be used.\n"
    "\n"
    "      --json   as a JSON object\n";

static const char run[] =
    "Usage: bulkhead run FILE... [options] [--] ARG...\n"
    "\n"
    "Loads FILE (PTX; CUDA C++, which is compiled first; a .cubin or .fatbin where the\n"
    "device can run it), launches a kernel of it and prints the buffers it wrote. Several\n"
    "files are linked first, as \"bulkhead link\" does.\n"
    "\n"
    "  -k, --kernel NAME        default: the only kernel in the file; of CUDA C++ also\n"
    "                           an expression like 'my_kernel<float, 256>'\n"
    "  -g, --grid X[,Y[,Z]]     blocks, default 1\n"
    "  -b, --block X[,Y[,Z]]    threads in a block, default 1\n"
    "  -s, --shared BYTES       dynamic shared memory\n"
    "      --cluster X[,Y[,Z]]  blocks in a cluster\n"
    "      --cooperative        all blocks at once, or none\n"
    "  -d, --device NAME        auto (default), cpu, cuda, cuda:N, or a list: cuda,cpu\n"
    "      --check              find accesses out of bounds, reads of memory that was never\n"
    "                           written, races, and more; on the CPU device (then the default)\n"
    "      --executor NAME      of the CPU device: interp (default); jit: native code, made\n"
    "                           with LLVM before the launch; auto: native when it is there\n"
    "  -v, --verbose            say who runs the kernel, and why, on standard error\n"
    "      --sarif              --check, and what it found as SARIF 2.1.0 on standard output\n"
    "      --repeat N           launch N times on the same buffers, report the time; on a\n"
    "                           terminal also how the device times are distributed\n"
    "      --timeout SECONDS    for all launches together, default 60\n"
    "      --json               one JSON object on standard output\n"
    "      --hex                elements as raw bit patterns\n"
    "      --all                print long buffers completely\n"
    "      --counters           print counters on standard error\n"
    "      --trace FILE         a trace for Perfetto (ui.perfetto.dev)\n"
    "      --report FOLDER      if a worker is lost, all that is known of it, as a file there\n"
    "For debugging, on the CPU device (then the default):\n"
    "      --trace-threads LIST print every instruction of these threads, 0,5 or 0..4\n"
    "      --threads LIST       the threads of --print and --stop, default 0\n"
    "      --trace-block X[,Y[,Z]]  their block, default 0\n"
    "      --print NAME@LINE    print a register, or a variable of the source, when a thread\n"
    "                           has passed the line, of the PTX or FILE.cu:NUMBER\n"
    "      --stop LINE          end the launch there, and print the threads' registers\n"
    "For CUDA C++ (.cu):\n"
    "  -D NAME[=VALUE]  -I DIR  --std=c++NN  --arch=sm_NN  and the other options of\n"
    "  \"bulkhead compile\" for the compiler\n"
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
    "every check passed.\n"
    "\n"
    "  -d, --device NAME   auto (default), cpu, cuda, cuda:N, or a list: cuda,cpu\n";

static const char doctor[] =
    "Usage: bulkhead doctor [--json]\n"
    "\n"
    "Checks what Bulkhead needs and what it can use: worker programs, the system,\n"
    "an NVIDIA driver and its GPUs, compilers. Lines begin with ok, info, warn or\n"
    "FAIL; a Fix: line says what to do. The last line says whether all is well. Exit status 1 if\n"
    "something is broken.\n"
    "\n"
    "      --json   as a JSON object\n";

static const char compile[] =
    "Usage: bulkhead compile FILE [options]\n"
    "\n"
    "Compiles CUDA C++ with NVRTC if it is installed, otherwise with clang, in a separate\n"
    "process. The result is cached (see bulkhead cache).\n"
    "FILE - is standard input. PTX goes to standard output unless -o names a file.\n"
    "\n"
    "  -o, --output FILE       write the result there; .cubin and .ltoir set the format\n"
    "      --ptx               (default)\n"
    "      --cubin             machine code; NVRTC only\n"
    "      --ltoir             for link-time optimisation; NVRTC only\n"
    "  -D NAME[=VALUE]         define a macro\n"
    "  -I DIR                  where to look for headers, after the folder of FILE\n"
    "      --std=c++NN         14, 17 (default) or 20\n"
    "      --arch=sm_NN        default sm_80; compute_NN is that with PTX as output\n"
    "      --name EXPRESSION   a kernel like 'my_kernel<float, 256>'; -v prints its name\n"
    "      --compiler NAME     auto (default), nvrtc or clang\n"
    "      --fast-math         --ftz (denormals are flushed to zero)\n"
    "      --debug             --line-info\n"
    "      --max-registers N   of a thread, 16 to 255\n"
    "      --relocatable       for \"bulkhead link\", as nvcc -dc\n"
    "      --extra FLAG        passed to the compiler, if it is known to be safe\n"
    "      --unconfined        any flag, and any file may be included: for sources you trust\n"
    "      --no-cache          do not use the cache\n"
    "      --timeout SECONDS   default 60\n"
    "  -v, --verbose           print the compiler, why it was chosen, and cache hits\n"
    "      --json              the same as JSON on standard output; the result goes to -o\n"
    "\n"
    "Compiler messages go to standard error, with the source lines marked. The compiler can\n"
    "read the folders of -I, the folder of FILE and the toolchain, and cannot write files.\n"
    "\n"
    "Examples:\n"
    "  bulkhead compile kernel.cu -o kernel.ptx\n"
    "  bulkhead compile kernel.cu --cubin --arch=sm_90 -o kernel.cubin -v\n";

static const char link[] =
    "Usage: bulkhead link FILE... [options]\n"
    "\n"
    "Links PTX, and CUDA C++ (.cu), which is compiled to relocatable PTX first, to one PTX\n"
    "text. That needs no software of NVIDIA's, and every device runs the result.\n"
    "With --cubin it links PTX, cubins and LTO-IR to machine code, and LTO-IR also to PTX,\n"
    "with nvJitLink (the CUDA toolkit).\n"
    "PTX goes to standard output unless -o names a file.\n"
    "\n"
    "  -o, --output FILE       write the result there; .cubin sets the format\n"
    "      --ptx               (default)\n"
    "      --cubin             machine code for --arch=sm_NN, default that of the first file\n"
    "      --max-registers N   of a thread, 16 to 255\n"
    "      --no-cache          do not use the cache\n"
    "      --timeout SECONDS   of each compile and of the link, default 60\n"
    "  -v, --verbose           print the linker and cache hits\n"
    "      --json              the same as JSON on standard output; the result goes to -o\n"
    "For CUDA C++ (.cu):\n"
    "  -D NAME[=VALUE]  -I DIR  --std=c++NN  --arch=sm_NN  and the other options of\n"
    "  \"bulkhead compile\" for the compiler\n"
    "\n"
    "Names that are missing or defined twice, and declarations that do not agree, are\n"
    "listed with their files and lines. Names without .visible, .weak, .common or .extern\n"
    "(static in C++) belong to their file.\n"
    "\n"
    "Examples:\n"
    "  bulkhead link main.cu math.cu -o program.ptx\n"
    "  bulkhead link main.ptx math.ptx --cubin --arch=sm_90 -o program.cubin -v\n";

static const char cache[] =
    "Usage: bulkhead cache [stats|list|clear] [--json]\n"
    "\n"
    "Compiled kernels are cached in BULKHEAD_CACHE_DIR, else XDG_CACHE_HOME/bulkhead,\n"
    "else ~/.cache/bulkhead, in private files. BULKHEAD_CACHE_LIMIT (512M, 2G) is\n"
    "the maximum size, 1 GiB by default; the least recently used entries are removed first.\n"
    "\n"
    "  stats    the folder, what is in it, hits and misses of all programs since it was\n"
    "           cleared, and the reason if it cannot be used (default)\n"
    "  list     each entry, the most recently used first: key, last use, size, what it\n"
    "           is, compiler, source\n"
    "  clear    remove them all\n"
    "\n"
    "      --json   as a JSON object\n";

static const char top[] =
    "Usage: bulkhead top [--once|--json] [options]\n"
    "\n"
    "Shows the devices that programs of this user have open on this machine: process,\n"
    "worker, losses, queue, launches a second, device time, memory, health, and for GPUs what\n"
    "NVML reports. Live on a terminal; otherwise as --once.\n"
    "\n"
    "  -1, --once              print a list and end\n"
    "      --json              print all that is known as a JSON object and end\n"
    "  -i, --interval SECONDS  between looks, 0.1 to 3600, default 1; --once and --json look\n"
    "                          twice, this far apart, for the rates\n"
    "  -s, --sort COLUMN       launches (default), busy, memory, queue, losses or pid\n"
    "\n"
    "Keys: up and down choose, enter opens one (lanes, kernels, memory by tag, last losses),\n"
    "escape goes back, s sorts by the next column, space pauses, h helps, q quits.\n"
    "\n"
    "A program hides its devices with BH_DEVICE_PRIVATE or BULKHEAD_PUBLISH=off. NO_COLOR\n"
    "turns colours off.\n";

static const char serve[] =
    "Usage: bulkhead serve [options]\n"
    "\n"
    "A web page with the devices that programs of this user have open on this machine, traces\n"
    "and fault reports. /metrics has all of them for Prometheus, /json what the page shows.\n"
    "It only shows: nothing can be changed or started through it.\n"
    "\n"
    "  -l, --listen [ADDRESS:]PORT  default 127.0.0.1:8077; port 0: any that is free\n"
    "      --host NAME              a name under which browsers reach it, besides localhost and\n"
    "                               the address; may be repeated\n"
    "      --token-file FILE        the token, in a file that nobody else can read; default: a\n"
    "                               new one, which is printed\n"
    "      --traces FOLDER          show the traces (*.json) in it\n"
    "      --reports FOLDER         show the fault reports (bulkhead-loss-*.txt) in it\n"
    "  -i, --interval SECONDS       look at the devices at most this often, default 1\n"
    "  -q, --quiet                  print the address only\n"
    "\n"
    "Processes of this user on this machine need no token. All others do, in the address\n"
    "(?token=TOKEN) or as \"Authorization: Bearer TOKEN\". There is no TLS: through other\n"
    "networks use ssh -L 8077:localhost:8077.\n"
    "\n"
    "Examples:\n"
    "  bulkhead serve\n"
    "  bulkhead serve -l 9100 --token-file ~/.config/bulkhead-token --reports /var/tmp/reports\n";

static const char bench[] =
    "Usage: bulkhead bench [-d NAME] [options]\n"
    "\n"
    "Measures what matters to a program: opening a device, submitting a launch, a launch and\n"
    "the wait for it, copies both ways, and the time from a fault until kernels run again. On\n"
    "a GPU beside the same with the driver alone. Takes some seconds; let nothing else run.\n"
    "\n"
    "  -d, --device NAME   auto (default), cpu, cuda, cuda:N\n"
    "      --json          as a JSON object\n"
    "      --html FILE     also write a page with charts, which needs no other file\n"
    "      --quick         fewer samples\n";

static const struct {
    const char *topic;
    const char *text;
} texts[] = {
    {"devices", devices}, {"run", run},     {"demo", demo},   {"doctor", doctor},
    {"compile", compile}, {"link", link},   {"cache", cache}, {"top", top},
    {"serve", serve},     {"bench", bench},
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
