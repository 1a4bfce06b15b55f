/* SPDX-License-Identifier: Apache-2.0 */
/* Drives one worker without libbulkhead: plays the supervisor and the application's end of the
 * rings. */
#ifndef TESTS_WORKER_DRIVER_H
#define TESTS_WORKER_DRIVER_H

#include <sys/types.h>

#include "wire/control.h"
#include "wire/message.h"

/* Where chunks go. ThreadSanitizer leaves only low addresses free. */
#if defined(__SANITIZE_THREAD__)
#define DRIVER_BASE      0x001000000000ull
#define DRIVER_READ_ONLY 0x002000000000ull
#else
#define DRIVER_BASE      0x200000000000ull
#define DRIVER_READ_ONLY 0x400000000000ull
#endif

enum { DRIVER_CHUNK = 4 << 20, DRIVER_HOST = 1 << 20 };

typedef struct driver {
    int socket, dispatch_fd, front_fd, area_fd;
    bh__front *front;
    bool shares_front; /* with the driver of another worker, which unmaps it */
    bh__area *area;
    uint64_t area_bytes;
    uint32_t area_index;
    uint32_t serial;
    pid_t pid;    /* a process of its own, or */
    void *thread; /* a thread of this one */
    bh__ready ready;
    bh_error error; /* of the last REFUSED or ACK */
    int answer_fd;  /* that came with the last ACK; the driver closes it */
    uint8_t *host;  /* host region 1, once driver_prepare mapped it */
    int chunk_fd;   /* chunk 1 */
    char *printed;
    size_t printed_bytes;
    unsigned fault_messages, report_messages, print_messages;
    bool ended; /* the worker's end of the socket is closed */
    bh__message message;
    bool leave_reports; /* driver_wait does not take them */
} driver;

/* A control block and a worker that has been sent BOOT, not waited for. */
driver *driver_start(uint32_t queue_length);
/* The same with READY received, or the test ends. */
driver *driver_boot(uint32_t queue_length);
/* A second worker for the same control block, in the next area: a standby. */
driver *driver_standby(const driver *first);
/* Lane 0 open, chunk 1 at DRIVER_BASE, host region 1, GO: ready to run. */
driver *driver_ready(uint32_t queue_length);
void driver_prepare(driver *d);
void driver_kill(driver *d);
/* Closes the socket, as an application that ends does. */
void driver_hang_up(driver *d);
/* Waits for the worker to end. Returns its exit code; 128 + N for signal N. */
int driver_join(driver *d);
/* Kills, joins, frees. */
void driver_close(driver *d);

/* Sends BOOT as given, with the descriptors of this driver. */
void driver_send_boot(driver *d, const bh__boot *boot);
/* Receives one message within `ms` into d->message and notes prints, faults and reports. */
bool driver_receive(driver *d, int ms);
/* Handles what has come so far. */
void driver_pump(driver *d);
/* Sends a message and waits for its ACK. Returns its status; d->error has the rest. */
bh_status driver_call(driver *d, uint32_t type, const void *body, size_t body_bytes, int fd);
bh_status driver_lane(driver *d, uint32_t lane);
void driver_go(driver *d);
/* Loads PTX as module `id`, or ends the test. Kernels and variables are then found by name. */
void driver_module(driver *d, uint32_t id, const char *ptx);
bh_status driver_module_try(driver *d, uint32_t id, const void *image, size_t bytes);
uint32_t driver_kernel(driver *d, uint32_t id, const char *name);
uint32_t driver_variable(driver *d, uint32_t id, const char *name);

/* Puts a request into a ring. Returns its sequence number. */
typedef struct request_parts {
    uint64_t hold;
    const bh__dependency *dependencies;
    uint32_t dependency_count;
} request_parts;
uint64_t driver_submit(driver *d, uint32_t lane, uint16_t op, const void *body, size_t body_bytes,
                       const void *params, size_t param_bytes, const request_parts *parts);
bh__launch_body driver_body(driver *d, uint32_t module, const char *kernel, uint32_t grid,
                            uint32_t block);
uint64_t driver_launch(driver *d, uint32_t lane, uint32_t module, const char *kernel, uint32_t grid,
                       uint32_t block, const void *params);
uint64_t driver_launch_with(driver *d, uint32_t lane, const bh__launch_body *body,
                            const void *params, const request_parts *parts);
uint64_t driver_done(driver *d, uint32_t lane);
/* Waits until the lane is done up to `sequence`, handling messages meanwhile. */
/* Takes what lanes have reported, which lets them go on. */
void driver_take_reports(driver *d);
bool driver_wait(driver *d, uint32_t lane, uint64_t sequence, int ms);
/* Waits until a fault is reported; ends the test if none comes. */
const bh__report *driver_fault(driver *d);

#endif
