/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the CPU device and says what came of it, and whether the system takes this program for one
 * whose environment is not to be trusted. With an argument it first becomes its owner for good, so
 * that the system no longer knows that of what it starts. */
#include <stdio.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "bulkhead.h"

int main(int argc, char **argv) {
    (void)argv;
    if (argc > 1 && (setregid(getegid(), getegid()) != 0 || setreuid(geteuid(), geteuid()) != 0))
        return 2;
    bh_device_options options = BH_INIT(options);
    options.device = "cpu";
    options.flags = BH_DEVICE_NO_STANDBY;
    bh_device device;
    bh_error error = {.message = ""};
    bh_status status = bh_device_open(&options, &device);
    if (status != BH_OK) bh_last_error(&error);
    printf("%s %s %s\n", getauxval(AT_SECURE) ? "secure" : "plain", bh_status_name(status),
           error.message);
    fflush(stdout);
    return status == BH_OK && bh_device_close(device) == BH_OK ? 0 : 1;
}
