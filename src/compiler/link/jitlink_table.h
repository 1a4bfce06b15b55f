/* SPDX-License-Identifier: Apache-2.0 */
/* The one list of nvJitLink's entry points that are used, as (name here, symbol without its
 * version, parameters). Include it with BH__NEEDED defined. */

BH__NEEDED(create, "nvJitLinkCreate", (void **out, uint32_t count, const char **options))
BH__NEEDED(destroy, "nvJitLinkDestroy", (void **linker))
BH__NEEDED(add, "nvJitLinkAddData",
           (void *linker, int kind, const void *data, size_t bytes, const char *name))
BH__NEEDED(complete, "nvJitLinkComplete", (void *linker))
BH__NEEDED(cubin_size, "nvJitLinkGetLinkedCubinSize", (void *linker, size_t *out))
BH__NEEDED(cubin, "nvJitLinkGetLinkedCubin", (void *linker, void *out))
BH__NEEDED(ptx_size, "nvJitLinkGetLinkedPtxSize", (void *linker, size_t *out))
BH__NEEDED(ptx, "nvJitLinkGetLinkedPtx", (void *linker, char *out))
BH__NEEDED(error_size, "nvJitLinkGetErrorLogSize", (void *linker, size_t *out))
BH__NEEDED(error, "nvJitLinkGetErrorLog", (void *linker, char *out))
BH__NEEDED(info_size, "nvJitLinkGetInfoLogSize", (void *linker, size_t *out))
BH__NEEDED(info, "nvJitLinkGetInfoLog", (void *linker, char *out))

#undef BH__NEEDED
