/* SPDX-License-Identifier: Apache-2.0 */
/* The one list of NVRTC's entry points that are used. Include it with BH__NEEDED and BH__OPTIONAL
 * defined, each as (name here, symbol, parameters). Optional ones came after 11.8. */

BH__NEEDED(version, "nvrtcVersion", (int *major, int *minor))
BH__NEEDED(arch_count, "nvrtcGetNumSupportedArchs", (int *out))
BH__NEEDED(archs, "nvrtcGetSupportedArchs", (int *out))
BH__NEEDED(create, "nvrtcCreateProgram",
           (void **out, const char *source, const char *name, int headers,
            const char *const *bodies, const char *const *names))
BH__NEEDED(destroy, "nvrtcDestroyProgram", (void **program))
BH__NEEDED(add_name, "nvrtcAddNameExpression", (void *program, const char *expression))
BH__NEEDED(compile, "nvrtcCompileProgram", (void *program, int count, const char *const *options))
BH__NEEDED(lowered_name, "nvrtcGetLoweredName",
           (void *program, const char *expression, const char **out))
BH__NEEDED(log_size, "nvrtcGetProgramLogSize", (void *program, size_t *out))
BH__NEEDED(log, "nvrtcGetProgramLog", (void *program, char *out))
BH__NEEDED(ptx_size, "nvrtcGetPTXSize", (void *program, size_t *out))
BH__NEEDED(ptx, "nvrtcGetPTX", (void *program, char *out))
BH__NEEDED(cubin_size, "nvrtcGetCUBINSize", (void *program, size_t *out))
BH__NEEDED(cubin, "nvrtcGetCUBIN", (void *program, char *out))
BH__OPTIONAL(ltoir_size, "nvrtcGetLTOIRSize", (void *program, size_t *out))
BH__OPTIONAL(ltoir, "nvrtcGetLTOIR", (void *program, char *out))

#undef BH__NEEDED
#undef BH__OPTIONAL
