/* SPDX-License-Identifier: Apache-2.0 */
/* Reports crashes of this process, and forbidden system calls, to the application. */
#include "worker/crash.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "sandbox/sandbox.h"
#include "wire/message.h"
#include "worker/worker.h"

static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP};
static const char *const messages[] = {
    "the worker crashed (signal 11, SIGSEGV)", "the worker crashed (signal 7, SIGBUS)",
    "the worker crashed (signal 4, SIGILL)",   "the worker crashed (signal 8, SIGFPE)",
    "the worker crashed (signal 6, SIGABRT)",  "the worker crashed (signal 5, SIGTRAP)"};

/* A signal handler has no argument to find these by. */
static bh__area *crash_area;
static bh__message crash_message;

static void watch(int number, bh__area *area, void (*handler)(int, siginfo_t *, void *)) {
    crash_area = area;
    crash_message.type = BH__MSG_FAULT;
    struct sigaction action = {.sa_sigaction = handler,
                               .sa_flags = (int)SA_RESETHAND | SA_NODEFER | SA_SIGINFO};
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, NULL);
}

void bh__crash_unblock(void) {
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) sigaddset(&set, signals[i]);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

/* What follows runs in signal handlers: it uses existing memory and system calls, nothing else. */

static void report(const char *message, const char *fix) {
    uint32_t none = BH__FAULT_NONE;
    if (!atomic_compare_exchange_strong(&crash_area->fault_state, &none, BH__FAULT_WRITING)) return;
    bh__report *fault = &crash_area->fault;
    memset(fault, 0, sizeof *fault);
    fault->status = BH_E_FAULT;
    memcpy(fault->message, message, strlen(message) + 1);
    memcpy(fault->fix, fix, strlen(fix) + 1);
    atomic_store(&crash_area->fault_state, BH__FAULT_SET);
    bh__message_send(BH__WORKER_SOCKET, &crash_message, NULL, 0);
}

static void on_crash(int number, siginfo_t *info, void *context) {
    (void)info, (void)context;
    const char *message = "the worker crashed";
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        if (signals[i] == number) message = messages[i];
    report(message, "run the kernel alone and under checks");
    raise(number); /* SA_RESETHAND has restored the default action */
}

static char *put_text(char *at, const char *text) {
    size_t length = strlen(text);
    memcpy(at, text, length + 1);
    return at + length;
}

static char *put_number(char *at, unsigned number) {
    if (number >= 10) at = put_number(at, number / 10);
    *at++ = (char)('0' + number % 10);
    *at = 0;
    return at;
}

static void on_forbidden_call(int number, siginfo_t *info, void *context) {
    (void)context;
    char text[128];
    const char *name = bh__sandbox_call_name(info->si_syscall);
    char *at = put_text(text, "the worker made a forbidden system call (number ");
    at = put_number(at, (unsigned)info->si_syscall);
    if (name) at = put_text(put_text(at, ", "), name);
    put_text(at, ")");
    report(text, "find out what in the worker makes it; to debug it, set BULKHEAD_SANDBOX=off");
    raise(number);
}

void bh__crash_watch_calls(bh__area *area) {
    watch(SIGSYS, area, on_forbidden_call);
}

void bh__crash_watch(bh__area *area) {
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) watch(signals[i], area, on_crash);
}
