/* SPDX-License-Identifier: Apache-2.0 */
/* A target with a planted bug, so that a test can see the engine find it: see canary.sh. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char planted[] = "bug";
    size_t same = 0;
    while (same < size && same < 3 && data[same] == (uint8_t)planted[same]) same++;
    if (same == 3 && size > 3 && data[3] == '!') abort();
    return 0;
}
