/* SPDX-License-Identifier: Apache-2.0 */
/* Telling the application when this process crashes. The driver takes long to let a process go,
 * and only then could its end be seen from outside. */
#include <signal.h>
#include <string.h>

#include "cuda/state.h"
#include "worker/worker.h"

static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP};
static const char *const messages[] = {
    "the worker crashed (signal 11, SIGSEGV)", "the worker crashed (signal 7, SIGBUS)",
    "the worker crashed (signal 4, SIGILL)",   "the worker crashed (signal 8, SIGFPE)",
    "the worker crashed (signal 6, SIGABRT)",  "the worker crashed (signal 5, SIGTRAP)"};

/* A signal handler has no argument to find these by. */
static bh__area *crash_area;
static bh__message crash_message;

static const char *message_for(int number) {
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        if (signals[i] == number) return messages[i];
    return "the worker crashed";
}

/* Uses memory that is there already and system calls, nothing else. */
static void on_crash(int number) {
    static const char fix[] = "run the kernel alone and under checks";
    uint32_t none = BH__FAULT_NONE;
    if (atomic_compare_exchange_strong(&crash_area->fault_state, &none, BH__FAULT_WRITING)) {
        bh__report *report = &crash_area->fault;
        const char *message = message_for(number);
        memset(report, 0, sizeof *report);
        report->status = BH_E_FAULT;
        memcpy(report->message, message, strlen(message) + 1);
        memcpy(report->fix, fix, sizeof fix);
        atomic_store(&crash_area->fault_state, BH__FAULT_SET);
        bh__message_send(BH__WORKER_SOCKET, &crash_message, NULL, 0);
    }
    raise(number); /* the default action is back in place */
}

void bh__cuda_crash_watch(bh__area *area) {
    crash_area = area;
    crash_message.type = BH__MSG_FAULT;
    struct sigaction action = {.sa_handler = on_crash, .sa_flags = (int)SA_RESETHAND | SA_NODEFER};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        sigaction(signals[i], &action, NULL);
}

void bh__cuda_crash_unblock(void) {
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) sigaddset(&set, signals[i]);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}
