/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest program that uses an installed Bulkhead: opens the CPU device and says so. */
#include <bulkhead.h>
#include <stdio.h>

int main(void) {
    bh_device_options options = BH_INIT(options);
    options.device = "cpu";
    bh_device device;
    if (bh_device_open(&options, &device) != BH_OK) {
        bh_error error;
        bh_last_error(&error);
        fprintf(stderr, "%s\nFix: %s\n", error.message, error.fix);
        return 1;
    }
    printf("bulkhead %s opened %s\n", bh_version(), options.device);
    return bh_device_close(device) == BH_OK ? 0 : 1;
}
