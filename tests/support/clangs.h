/* SPDX-License-Identifier: Apache-2.0 */
/* The clangs that are installed: the device headers must work with each of them. */
#ifndef TESTS_SUPPORT_CLANGS_H
#define TESTS_SUPPORT_CLANGS_H

/* The path of each clang in PATH of version 16 or later, once for each version, the newest first;
 * NULL after the last. Skips the test where there is none. */
const char *clang_path(unsigned index);

#endif
