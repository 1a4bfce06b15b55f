/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA C++ compiled at run time: a template, made for the type and the factor that are wanted.
 * usage: compile [DEVICE], where DEVICE is auto, cpu, cuda or cuda:N */
#include <bulkhead.h>
#include <stdio.h>
#include <stdlib.h>

static const char source[] = "template <typename T, int FACTOR>\n"
                             "__global__ void scale(T *x, unsigned n) {\n"
                             "    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                             "    if (i < n) x[i] *= FACTOR;\n"
                             "}\n";

/* Ends the program when a call failed, saying why and what to do. */
static void must(bh_status status, const char *what) {
    if (status == BH_OK) return;
    bh_error why;
    bh_last_error(&why);
    fprintf(stderr, "error: %s: %s: %s\nFix: %s\n", what, bh_status_name(status), why.message,
            why.fix);
    exit(1);
}

/* What was wrong with a source is in the compiler's own log, whole. */
static void show_log(void) {
    char log[4096];
    if (bh_compile_log(NULL, log, sizeof log, NULL) == BH_OK) fputs(log, stderr);
}

enum { N = 1000 };

int main(int argc, char **argv) {
    static float values[N];
    const uint32_t n = N;
    for (int i = 0; i < N; i++) values[i] = (float)i;

    bh_device_options options = BH_INIT(options);
    options.device = argc > 1 ? argv[1] : "auto";
    bh_device gpu;
    must(bh_device_open(&options, &gpu), "open");

    /* Kernels that are templates are named as C++ names them. */
    const char *const names[] = {"scale<float, 3>"};
    bh_compile_options how = BH_INIT(how);
    how.name = "scale.cu";
    how.expressions = names;
    how.expression_count = 1;
    bh_module mod;
    bh_status status = bh_module_compile(gpu, source, &how, &mod);
    if (status == BH_E_UNSUPPORTED) {
        bh_error why;
        bh_last_error(&why);
        printf("compile: skipped: %s\n", why.message);
        must(bh_device_close(gpu), "close");
        return 0;
    }
    if (status == BH_E_COMPILE) show_log();
    must(status, "compile");

    bh_binary binary;
    bh_binary_info info = BH_INIT(info);
    must(bh_module_get_binary(mod, &binary), "ask what was compiled");
    must(bh_binary_get_info(binary, &info), "ask how it was compiled");
    printf("compile: %s by %s%s\n", info.output == BH_OUTPUT_PTX ? "PTX" : "machine code",
           info.compiler, info.cache == BH_CACHE_DISK ? ", kept from an earlier run" : "");
    must(bh_binary_release(binary), "release");

    bh_kernel scale;
    bh_buffer x;
    bh_ticket done;
    must(bh_kernel_get(mod, "scale<float, 3>", &scale), "get the kernel");
    must(bh_buffer_alloc(gpu, BH_F32, n, NULL, &x), "allocate");
    must(bh_buffer_write(x, 0, values, sizeof values), "write");
    must(bh_launch(scale, BH_GRID(n, 256), BH_ARGS(BH_INOUT(x), n), NULL, &done), "launch");
    must(bh_wait(done, BH_FOREVER), "run");
    must(bh_buffer_read(x, 0, values, sizeof values), "read");
    must(bh_device_close(gpu), "close");

    int wrong = 0;
    for (int i = 0; i < N; i++) wrong += values[i] != 3.0f * (float)i;
    printf("compile: x[%d] = %g, %d of %d elements wrong\n", N - 1, (double)values[N - 1], wrong,
           N);
    return wrong != 0;
}
