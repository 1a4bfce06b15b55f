/* SPDX-License-Identifier: Apache-2.0 */
/* Sleeping and waking, with store buffers: a store that is not sequentially consistent may reach memory after
 * later loads. docs/protocol.md explains the two handshakes; model.sh gives the mutations that must fail. */

#define NEVER 255
#define REQUESTS 2

/* Memory. */
byte tail;
bit asleep;
#ifdef SLEEP_ON_TAIL
bit in_futex;
#endif
byte notify = NEVER;
byte done;
byte wake;

/* Whether request 2 cannot be done before the thread that waits for request 1 has gone on. */
bit gated;
bit released;

/* Private to the application, under a lock: what each sleeping thread wants. */
byte wanted[2] = NEVER;

/* Store buffers. */
#define EMPTY 254
byte late_tail = EMPTY;
byte late_notify = EMPTY;
byte late_done = EMPTY;

proctype Buffers() {
end:
    do
    :: d_step { late_tail != EMPTY -> tail = late_tail; late_tail = EMPTY }
    :: d_step { late_notify != EMPTY -> notify = late_notify; late_notify = EMPTY }
    :: d_step { late_done != EMPTY -> done = late_done; late_done = EMPTY }
    od
}

#ifdef RELAXED_TAIL
#define STORED_TAIL late_tail
#else
#define STORED_TAIL tail
#endif
#ifdef RELAXED_NOTIFY
#define STORED_NOTIFY late_notify
#else
#define STORED_NOTIFY notify
#endif
#ifdef RELAXED_DONE
#define STORED_DONE late_done
#else
#define STORED_DONE done
#endif

inline rouse() {
#ifdef SLEEP_ON_TAIL
    in_futex = 0
#else
    skip
#endif
}

/* Submits two requests, one after the other. */
proctype Submitter() {
    byte i;
    for (i : 1 .. REQUESTS) {
        d_step { late_tail == EMPTY -> STORED_TAIL = i };
        if
        :: d_step { asleep -> asleep = 0; rouse() } /* exchange, futex wake */
        :: !asleep
        fi
    }
}

/* The lowest that anyone wants; a thread that has not yet left still counts, though it may have what it wanted. */
#ifdef SKIP_PASSED
#define WANTED(i) (wanted[i] > done -> wanted[i] : NEVER)
#else
#define WANTED(i) wanted[i]
#endif
#ifdef OVERWRITE
#define LOWEST wanted[me]
#else
#define LOWEST (WANTED(0) < WANTED(1) -> WANTED(0) : WANTED(1))
#endif

/* A thread that waits for one request. */
proctype Sleeper(byte me; byte seq) {
    byte seen;
again:
#ifndef READ_WAKE_LATE
    seen = wake;
#endif
#ifdef NO_RECHECK
    if
    :: done >= seq -> goto out
    :: else
    fi;
#endif
    atomic { late_notify == EMPTY -> wanted[me] = seq; STORED_NOTIFY = LOWEST }
#ifndef NO_RECHECK
    if
    :: done >= seq -> goto out
    :: else
    fi;
#endif
#ifdef READ_WAKE_LATE
    seen = wake;
#endif
    /* The system call drains this thread's store buffer, then compares, then sleeps. */
    late_notify == EMPTY;
    wake != seen;
    goto again;
out:
    atomic { late_notify == EMPTY -> wanted[me] = NEVER; STORED_NOTIFY = LOWEST; seen = 0 }
    released = released || me == 0
}

/* One lane of the worker. */
proctype Worker() {
    byte p, told;
    do
    :: p == REQUESTS -> break
    :: p < tail ->
        p == 0 || !gated || released;
        p++;
        d_step { late_done == EMPTY -> STORED_DONE = p };
        /* Only then look for wishes. */
        d_step {
#ifdef WAKE_ONCE
            if
            :: notify <= p && notify > told -> told = p; wake++
            :: else
            fi
#else
            if
            :: notify <= p -> wake++
            :: else
            fi
#endif
        }
    :: p == tail && p < REQUESTS ->
        asleep = 1;
        if
        :: tail != p -> asleep = 0
        :: else ->
#ifdef SLEEP_ON_TAIL
            if
            :: d_step { tail == p -> in_futex = 1 }; !in_futex
            :: tail != p
            fi;
            asleep = 0
#else
            !asleep /* the futex compares asleep with 1 once more, in the kernel */
#endif
        fi
    od
}

init {
    atomic {
        if
        :: gated = 1
        :: gated = 0
        fi;
        run Buffers();
        run Submitter();
        run Sleeper(0, 1);
        run Sleeper(1, 2);
        run Worker()
    }
}
