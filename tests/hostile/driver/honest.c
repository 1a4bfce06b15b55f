/* SPDX-License-Identifier: Apache-2.0 */
/* What must be right: another device's work, and this one's once its workers are honest. */
#include <string.h>
#include <time.h>

#include "../../support/kernels.h"
#include "driver.h"

enum { WORDS = 4096 };

/* A kernel's work on words that are written first, compared to the last byte. */
typedef struct round {
    bh_device device;
    bh_module module;
    bh_kernel churn;
    bh_buffer buffer;
    uint32_t words[WORDS];
} round;

static bh_status round_open(round *self, bh_device device) {
    memset(self, 0, sizeof *self);
    self->device = device;
    bh_status status =
        IN_THE_END(bh_module_load(device, ptx_basic, strlen(ptx_basic), &self->module));
    if (status == BH_OK) status = AT_ONCE(bh_kernel_get(self->module, "churn", &self->churn));
    if (status == BH_OK)
        status = IN_THE_END(bh_buffer_alloc(device, BH_U32, WORDS, NULL, &self->buffer));
    return status;
}

static void round_close(round *self) {
    if (self->buffer.id) IN_THE_END(bh_buffer_release(self->buffer));
    if (self->module.id) IN_THE_END(bh_module_release(self->module));
}

static bh_status round_run(round *self, uint32_t first) {
    bh_ticket ticket;
    for (uint32_t i = 0; i < WORDS; i++) self->words[i] = first + i;
    bh_status status =
        IN_THE_END(bh_buffer_write(self->buffer, 0, self->words, sizeof self->words));
    if (status == BH_OK)
        status = IN_THE_END(bh_launch(self->churn, BH_GRID(WORDS, 128),
                                      BH_ARGS(BH_INOUT(self->buffer), 5u, (uint32_t)WORDS), NULL,
                                      &ticket));
    if (status == BH_OK) status = IN_THE_END(bh_wait(ticket, AT_LENGTH));
    memset(self->words, 0, sizeof self->words);
    if (status == BH_OK)
        status = IN_THE_END(bh_buffer_read(self->buffer, 0, self->words, sizeof self->words));
    return status;
}

static void round_check(const round *self, uint32_t first, const char *whose) {
    for (uint32_t i = 0; i < WORDS; i++) {
        uint32_t right = churn_word(first + i, 5);
        if (self->words[i] == right) continue;
        problem("word %u of the %s device is 0x%x, 0x%x would be right", i, whose, self->words[i],
                right);
        return;
    }
}

void *honest_main(void *argument) {
    stage *where = argument;
    static round self;
    bh_status status = round_open(&self, where->honest);
    for (uint32_t i = 1; status == BH_OK && !atomic_load(&where->over); i++) {
        status = round_run(&self, i * WORDS);
        if (status == BH_OK) round_check(&self, i * WORDS, "honest");
        nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
    }
    if (status != BH_OK) problem("a call to the honest device returned %s", bh_status_name(status));
    round_close(&self);
    return NULL;
}

static bool has_stopped(bh_device device) {
    bh_health health = BH_INIT(health);
    return AT_ONCE(bh_device_get_health(device, &health)) != BH_OK ||
           health.state == BH_HEALTH_STOPPED;
}

bool serves_again(bh_device device) {
    static round self;
    uint64_t deadline = driver_now() + AT_LENGTH;
    bh_status status = BH_OK;
    for (uint32_t first = 1; driver_now() < deadline; first++) {
        status = round_open(&self, device);
        if (status == BH_OK) status = round_run(&self, first);
        if (status == BH_OK) round_check(&self, first, "recovered");
        round_close(&self);
        if (status == BH_OK) return true;
        if (has_stopped(device)) return false;
    }
    problem("the device does not serve again, its last answer was %s", bh_status_name(status));
    return false;
}
