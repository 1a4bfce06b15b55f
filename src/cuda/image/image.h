/* SPDX-License-Identifier: Apache-2.0 */
/* Module images: which kind they are, and the names in them that the driver does not list. */
#ifndef BH_CUDA_IMAGE_IMAGE_H
#define BH_CUDA_IMAGE_IMAGE_H

#include <stdbool.h>

#include "error/error.h"
#include "wire/message.h"

typedef enum bh__module_image_kind {
    BH__MODULE_IMAGE_PTX,
    BH__MODULE_IMAGE_CUBIN,
    BH__MODULE_IMAGE_FATBIN
} bh__module_image_kind;

typedef struct bh__module_image_kernel {
    char *name;             /* Owned */
    uint32_t required[3];   /* threads of a block; zeros: any */
    bh__blob_param *params; /* Owned */
    uint32_t param_count, param_bytes;
} bh__module_image_kernel;

typedef struct bh__module_image_variable {
    char *name; /* Owned */
    uint64_t bytes;
    bool constant;
    bool written; /* a kernel of the module may write it */
} bh__module_image_variable;

typedef struct bh__module_image {
    bh__module_image_kind kind;
    const void *bytes; /* what the driver is given; PTX: `text` */
    char *text;        /* Owned. PTX, with a NUL at its end */
    size_t lines;      /* PTX */
    char target[16];   /* "sm_90"; empty: not known */
    char version[16];  /* PTX: "8.0" */
    bool prints;       /* its kernels may call printf */
    bool names_known;  /* all kernels and variables are listed; else the driver lists the kernels */
    bool failed;       /* out of memory */
    bh__module_image_kernel *kernels;     /* Owned */
    bh__module_image_variable *variables; /* Owned */
    size_t kernel_count, variable_count;
} bh__module_image;

/* Recognizes the image and reads what can be read. Refuses what is not an image, so that
 * the driver never sees it. `bytes` must outlive the image. */
bh_status bh__module_image_read(bh__module_image *image, const void *bytes, size_t size,
                                bh_error *error);
void bh__module_image_free(bh__module_image *image);

/* The number in "sm_90" or "compute_90a"; 0: none. */
int bh__module_image_target_number(const char *target);

/* ---- for the files that read one kind ---- */

bh__module_image_kernel *bh__module_image_add_kernel(bh__module_image *image, const char *name,
                                                     size_t length);
void bh__module_image_add_variable(bh__module_image *image, const char *name, size_t length,
                                   uint64_t bytes, bool constant);
void bh__module_image_add_param(bh__module_image *image, bh__module_image_kernel *kernel,
                                bh__blob_param param);

bh_status bh__module_image_read_ptx(bh__module_image *image, const char *text, size_t size,
                                    bh_error *error);
bh_status bh__module_image_read_cubin(bh__module_image *image, const uint8_t *bytes, size_t size,
                                      bh_error *error);

#endif
