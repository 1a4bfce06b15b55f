/* SPDX-License-Identifier: Apache-2.0 */
/* The plain driver's verdict on launches: plain_driver ORDINAL FILE.ptx loads the PTX, then answers
 * each line "kernel gx gy gz bx by bz cx cy cz shared cooperative" with "CODE NAME". It opts in to
 * what the CUDA worker opts in to, and uses nothing else of Bulkhead. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/driver/driver.h"

typedef struct plain {
    bh__driver cu;
    int device;
    bh__cu_stream stream;
    bh__cu_module module;
} plain;

static void need(const plain *self, int result, const char *what) {
    if (result == BH__CU_OK) return;
    printf("skipped: %s: %s\n", what, bh__driver_error_name(&self->cu, result));
    exit(1);
}

static char *read_all(const char *path) {
    FILE *file = fopen(path, "re");
    char *text = calloc(1, 1 << 20);
    if (!file || !text || fread(text, 1, (1 << 20) - 1, file) == 0) exit(2);
    fclose(file);
    return text;
}

static void start(plain *self, int ordinal, const char *path) {
    bh_error error;
    bh__cu_context context;
    if (bh__driver_open(&self->cu, &error) != BH_OK) {
        printf("skipped: %s\n", error.message);
        exit(1);
    }
    need(self, self->cu.device_get(&self->device, ordinal), "cuDeviceGet");
    need(self, self->cu.context_retain(&context, self->device), "cuDevicePrimaryCtxRetain");
    need(self, self->cu.context_enter(context), "cuCtxSetCurrent");
    need(self, self->cu.stream_create(&self->stream, BH__CU_STREAM_NON_BLOCKING, 0), "a stream");
    char *text = read_all(path);
    need(self, self->cu.module_load(&self->module, text, 0, NULL, NULL), "cuModuleLoadDataEx");
    free(text);
}

static void opt_in(const plain *self, bh__cu_function function) {
    int most = 0, own = 0;
    self->cu.device_attribute(&most, BH__CU_SHARED_PER_BLOCK_OPTIN, self->device);
    self->cu.function_attribute(&own, BH__CU_FUNCTION_SHARED, function);
    self->cu.function_set_attribute(function, BH__CU_FUNCTION_MAX_DYNAMIC_SHARED, most - own);
    self->cu.function_set_attribute(function, BH__CU_FUNCTION_LARGE_CLUSTERS, 1);
}

static int launch(const plain *self, bh__cu_function function, const unsigned n[11]) {
    bh__cu_launch_attribute attributes[2] = {0};
    bh__cu_launch with = {.grid = {n[0], n[1], n[2]},
                          .block = {n[3], n[4], n[5]},
                          .shared_bytes = n[9],
                          .stream = self->stream,
                          .attributes = attributes};
    if (n[6] | n[7] | n[8]) {
        bh__cu_launch_attribute *cluster = &attributes[with.attribute_count++];
        cluster->id = BH__CU_LAUNCH_CLUSTER;
        cluster->value.cluster.x = n[6];
        cluster->value.cluster.y = n[7];
        cluster->value.cluster.z = n[8];
    }
    if (n[10]) {
        bh__cu_launch_attribute *cooperative = &attributes[with.attribute_count++];
        cooperative->id = BH__CU_LAUNCH_COOPERATIVE;
        cooperative->value.cooperative = 1;
    }
    int result = self->cu.launch_with(&with, function, NULL, NULL);
    int after = self->cu.stream_synchronize(self->stream);
    return result != BH__CU_OK ? result : after;
}

int main(int argc, char **argv) {
    static plain self;
    if (argc != 3) return 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    start(&self, atoi(argv[1]), argv[2]);
    printf("ready\n");
    char line[256], name[64];
    while (fgets(line, sizeof line, stdin)) {
        unsigned n[11];
        if (sscanf(line, "%63s %u %u %u %u %u %u %u %u %u %u %u", name, &n[0], &n[1], &n[2], &n[3],
                   &n[4], &n[5], &n[6], &n[7], &n[8], &n[9], &n[10]) != 12)
            return 2;
        bh__cu_function function;
        need(&self, self.cu.module_function(&function, self.module, name), name);
        opt_in(&self, function);
        int result = launch(&self, function, n);
        printf("%d %s\n", result, bh__driver_error_name(&self.cu, result));
        if (bh__driver_is_fatal(result)) return 1;
    }
    return 0;
}
