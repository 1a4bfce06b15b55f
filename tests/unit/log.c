/* SPDX-License-Identifier: Apache-2.0 */
/* src/base/log: levels, and replacing the callback while others use it. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "bulkhead.h"
#include "test.h"

struct record {
    int calls;
    int32_t level;
    char text[2000];
};

static void keep(void *context, int32_t level, const char *text) {
    struct record *record = context;
    record->calls++;
    record->level = level;
    snprintf(record->text, sizeof record->text, "%s", text);
}

TEST(messages_up_to_the_level_reach_the_callback) {
    struct record record = {0};
    bh__log_error("nobody listens");
    CHECK(!bh__log_wants(BH_LOG_ERROR));
    CHECK_EQ(bh__log_set(keep, &record, BH_LOG_WARNING), 0);
    bh__log_warning("lane %d is %s", 3, "slow");
    CHECK_EQ(record.calls, 1);
    CHECK_EQ(record.level, BH_LOG_WARNING);
    CHECK_STR_EQ(record.text, "lane 3 is slow");
    bh__log_info("not wanted");
    CHECK(bh__log_wants(BH_LOG_ERROR) && !bh__log_wants(BH_LOG_INFO));
    CHECK_EQ(record.calls, 1);
    CHECK_EQ(bh__log_set(NULL, NULL, 0), 0);
    bh__log_error("nobody listens any more");
    CHECK_EQ(record.calls, 1);
}

TEST(long_messages_are_cut) {
    struct record record = {0};
    char text[4000];
    memset(text, 'y', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    CHECK_EQ(bh__log_set(keep, &record, BH_LOG_DEBUG), 0);
    bh__log_debug("%s", text);
    CHECK_EQ(record.calls, 1);
    CHECK_GT(strlen(record.text), 500);
    CHECK_LT(strlen(record.text), sizeof text - 1);
}

TEST(an_unknown_level_is_refused) {
    bh_error error;
    struct record record = {0};
    CHECK_EQ(bh_log_set(keep, &record, 0), BH_E_INVALID);
    bh_last_error(&error);
    CHECK_STR_CONTAINS(error.message, "max_level is 0");
    CHECK(error.fix[0] != '\0');
    CHECK_EQ(bh_log_set(keep, &record, 5), BH_E_INVALID);
    bh_last_error(&error);
    CHECK_STR_CONTAINS(error.message, "max_level is 5");
    bh__log_error("still nobody");
    CHECK_EQ(record.calls, 0);
}

static void replace_self(void *context, int32_t level, const char *text) {
    (void)level;
    (void)text;
    int *left = context;
    if (--*left > 0) {
        CHECK_EQ(bh__log_set(replace_self, context, BH_LOG_INFO), 0);
        bh__log_info("nested");
    } else {
        CHECK_EQ(bh__log_set(NULL, NULL, 0), 0);
    }
}

TEST(a_callback_may_log_and_replace_itself) {
    int left = 10;
    CHECK_EQ(bh__log_set(replace_self, &left, BH_LOG_INFO), 0);
    bh__log_info("first");
    CHECK_EQ(left, 0);
}

static _Atomic(bool) stop;

static void *talk(void *context) {
    (void)context;
    while (!stop) {
        bh__log_info("talking");
    }
    return NULL;
}

static void count_alive(void *context, int32_t level, const char *text) {
    (void)level;
    (void)text;
    _Atomic(uint64_t) *alive = context;
    CHECK_EQ(*alive, 1);
}

TEST(a_replaced_callback_never_runs_again) {
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        REQUIRE_EQ(pthread_create(&threads[i], NULL, talk, NULL), 0);
    }
    for (int i = 0; i < 300; i++) {
        _Atomic(uint64_t) alive = 1;
        REQUIRE_EQ(bh__log_set(count_alive, &alive, BH_LOG_DEBUG), 0);
        usleep(100);
        REQUIRE_EQ(bh__log_set(NULL, NULL, 0), 0);
        alive = 0;
    }
    stop = true;
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }
}
