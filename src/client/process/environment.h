/* SPDX-License-Identifier: Apache-2.0 */
/* The environment of the programs that the library starts. */
#ifndef BH_CLIENT_PROCESS_ENVIRONMENT_H
#define BH_CLIENT_PROCESS_ENVIRONMENT_H

/*
 * Returns an environment with the variables that `wanted` names. `wanted` ends with NULL; a name
 * that ends with '*' is a prefix. `wanted` NULL: all variables. A privileged program (set-user-ID,
 * for example) passes on only the variables that select devices and a fixed PATH: the program it
 * starts has its rights, but cannot tell that the environment is not to be trusted.
 *
 * The caller frees the array, not the strings. NULL: no host memory.
 */
char **bh__environment_for(const char *const *wanted);

/* The variables for bulkhead-compiler: all that affect which compiler it finds. */
extern const char *const bh__compiler_variables[];

#endif
