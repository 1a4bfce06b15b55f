/* SPDX-License-Identifier: Apache-2.0 */
/* Dense solvers: the table of their operations. */
#ifndef BH_LIBRARY_SOLVER_H
#define BH_LIBRARY_SOLVER_H

#include "bulkhead/solver.h"
#include "library/operation.h"

enum { BH__SOLVER_OPERATIONS = 15 };
extern const bh__operation bh__solver_operations[BH__SOLVER_OPERATIONS];
/* As bh__library.refuse. */
const char *bh__solver_refuse(const bh__operation *operation, const void *request,
                              const bh_type *types, const char **fix);

#endif
