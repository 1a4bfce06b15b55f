/* SPDX-License-Identifier: Apache-2.0 */
/* Dense solvers on the CPU device: finding LAPACK, batches, and what is said of members that
 * failed. */
#include "cpu/library/solver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum { TYPES = 4 };

/* Names for s, d, c and z. */
static const char *const names[BH__SOLVER_FUNCTIONS][TYPES] = {
    [BH__GETRF] = {"sgetrf_", "dgetrf_", "cgetrf_", "zgetrf_"},
    [BH__GETRS] = {"sgetrs_", "dgetrs_", "cgetrs_", "zgetrs_"},
    [BH__GETRI] = {"sgetri_", "dgetri_", "cgetri_", "zgetri_"},
    [BH__POTRF] = {"spotrf_", "dpotrf_", "cpotrf_", "zpotrf_"},
    [BH__POTRS] = {"spotrs_", "dpotrs_", "cpotrs_", "zpotrs_"},
    [BH__POTRI] = {"spotri_", "dpotri_", "cpotri_", "zpotri_"},
    [BH__GEQRF] = {"sgeqrf_", "dgeqrf_", "cgeqrf_", "zgeqrf_"},
    [BH__UNGQR] = {"sorgqr_", "dorgqr_", "cungqr_", "zungqr_"},
    [BH__UNMQR] = {"sormqr_", "dormqr_", "cunmqr_", "zunmqr_"},
    [BH__GELS] = {"sgels_", "dgels_", "cgels_", "zgels_"},
    [BH__SYEVD] = {"ssyevd_", "dsyevd_", "cheevd_", "zheevd_"},
    [BH__GEEV] = {"sgeev_", "dgeev_", "cgeev_", "zgeev_"},
    [BH__GESDD] = {"sgesdd_", "dgesdd_", "cgesdd_", "zgesdd_"},
};

static struct {
    void *handle;
    char lack[256];
    void *functions[BH__SOLVER_FUNCTIONS][TYPES];
} lapack;

void bh__cpu_solver_find(void) {
    static const char *const files[] = {"libopenblas.so.0", "libopenblas.so", "libmkl_rt.so.2",
                                        "liblapack.so.3", NULL};
    lapack.handle = bh__cpu_openblas_open(files, lapack.lack);
    for (int i = 0; lapack.handle && i < BH__SOLVER_FUNCTIONS; i++) {
        for (int t = 0; t < TYPES; t++) {
            lapack.functions[i][t] = dlsym(lapack.handle, names[i][t]);
            if (!lapack.functions[i][t] && !lapack.lack[0])
                snprintf(lapack.lack, sizeof lapack.lack, "it has no function %s", names[i][t]);
        }
    }
}

const char *bh__cpu_solver_lack(const char **fix) {
    *fix = "install OpenBLAS, which has LAPACK: apt install libopenblas0, or dnf install openblas";
    return !lapack.handle || lapack.lack[0] ? lapack.lack : NULL;
}

void bh__cpu_solver_begin(void) {
    bh__cpu_openblas_begin(lapack.handle);
}

void *bh__solver_function(const bh__solver_job *job, uint32_t which) {
    return lapack.functions[which][job->number];
}

/* ---- members that failed ---- */

static const char *reason(const bh__solver_job *job, char *out, size_t size) {
    const char *text = "it did not converge (%d)";
    switch (job->operation->kind) {
    case BH_SOLVER_GETRF:
    case BH_SOLVER_GESV:
    case BH_SOLVER_GETRI:
        text = "the matrix is singular: element %d of U's diagonal is zero";
        break;
    case BH_SOLVER_POTRF:
    case BH_SOLVER_POSV:
        text = "the leading minor of order %d is not positive definite";
        break;
    case BH_SOLVER_POTRI:
        text = "the matrix is singular: element %d of the factor's diagonal is zero";
        break;
    case BH_SOLVER_GELS:
        text = "A has not full rank: element %d of its triangular factor's diagonal is zero";
        break;
    default:
        break;
    }
    if (job->info < 0)
        snprintf(out, size, "the input has a NaN or an infinity");
    else
        snprintf(out, size, text, job->info);
    return out;
}

/* The first one that failed, for the message. */
typedef struct failures {
    uint64_t count, first;
    char reason[128];
} failures;

static void count_failure(const bh__solver_job *job, failures *all) {
    if (job->info == 0 || all->count++) return;
    all->first = job->member;
    reason(job, all->reason, sizeof all->reason);
}

static bh_status tell(const bh__solver_job *job, const failures *all) {
    char others[64] = "";
    if (!(job->request->flags & BH_SOLVER_STRICT) || all->count == 0) return BH_OK;
    if (all->count > 1)
        snprintf(others, sizeof others, "; %llu others failed too",
                 (unsigned long long)all->count - 1);
    return bh__fail(job->error, BH_E_INVALID,
                    "pass a matrix that has a solution, or leave BH_SOLVER_STRICT out and read "
                    "info",
                    "%s: %s (member %llu%s)", job->operation->name, all->reason,
                    (unsigned long long)all->first, others);
}

/* ---- calls ---- */

/* In the order of bh__solver_operations. */
static void (*const operations[BH__SOLVER_OPERATIONS])(bh__solver_job *) = {
    bh__solver_getrf, bh__solver_getrs, bh__solver_gesv,  bh__solver_getri, bh__solver_potrf,
    bh__solver_potrs, bh__solver_posv,  bh__solver_potri, bh__solver_geqrf, bh__solver_ungqr,
    bh__solver_unmqr, bh__solver_gels,  bh__solver_syevd, bh__solver_geev,  bh__solver_gesvd};

static uint32_t number_of(bh_type type) {
    return type == BH_F32 ? 0 : type == BH_F64 ? 1 : type == BH_C64 ? 2 : 3;
}

bh_status bh__cpu_solver_run(const bh__library_call *call, bh_error *error) {
    bh_solver request;
    memcpy(&request, call->request.bytes, sizeof request);
    bh_type type = call->types[0];
    bh__solver_job job = {.operation = call->operation,
                          .request = &request,
                          .type = type,
                          .real = bh__real_type(type),
                          .complex = bh__complex_type(type),
                          .number = number_of(type),
                          .error = error};
    failures failed = {0};
    uint64_t batch = request.batch ? request.batch : 1;
    for (job.member = 0; job.member < batch && job.status == BH_OK; job.member++) {
        job.info = 0;
        job.not_finite = false;
        job.scratch_used = 0;
        operations[call->operation - bh__solver_operations](&job);
        if (job.status == BH_OK && job.info < 0 && !job.not_finite)
            job.status = bh__fail(error, BH_E_INTERNAL, "report this as a defect of libbulkhead",
                                  "%s: LAPACK refuses its parameter %d (member %llu)",
                                  call->operation->name, -job.info, (unsigned long long)job.member);
        int32_t info = job.info;
        if (job.status == BH_OK && request.info.buffer.id)
            bh__solver_vector_write(&job, &request.info, BH_I32, &info);
        if (job.status == BH_OK) count_failure(&job, &failed);
    }
    bh__solver_scratch_free(&job);
    return job.status == BH_OK ? tell(&job, &failed) : job.status;
}
