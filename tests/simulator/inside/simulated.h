/* SPDX-License-Identifier: Apache-2.0 */
/* Included first by every simulated source (-include): the sources take extra steps under the real
 * ThreadSanitizer, which this is not. */
#undef __SANITIZE_THREAD__
#define BH__SIMULATED 1
