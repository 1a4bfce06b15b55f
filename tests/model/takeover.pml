/* SPDX-License-Identifier: Apache-2.0 */
/* The takeover protocol: claim, done, freeze, judgement, successor, waiters, cancel.
 * docs/protocol.md explains it; model.sh gives the sizes to search and the mutations that must fail. */

#ifndef LANES
#define LANES 1        /* 1 or 2 */
#endif
#ifndef REQUESTS
#define REQUESTS 2     /* 2 or 3 on each lane, with sequence numbers from 1 */
#endif
#ifndef SUBMITTED
#define SUBMITTED REQUESTS /* on each lane before all else begins; the rest while it goes on */
#endif
#ifndef LOSSES
#define LOSSES 1       /* at most; 1 or 2 */
#endif
#ifndef WAITERS
#define WAITERS 1      /* they sleep if SLEEP is defined, and spin otherwise */
#endif
#ifndef AREAS
#define AREAS WORKERS  /* fewer: an area is used again once its worker is gone */
#endif
#ifndef LINGER
#define LINGER 1       /* 0: a lost worker is gone before its successor starts, to have fewer states */
#endif
/* PROMPT: threads read a record in the same step as they claim it, to have fewer states. */
#ifndef IDEMPOTENT
#define IDEMPOTENT 0   /* a set: bit ID(lane, seq) */
#endif
#ifndef DEPENDENT
#define DEPENDENT 254  /* the request that waits for, and reads, what request SOURCE writes; 254: none */
#define SOURCE 0
#endif

#define WORKERS (LOSSES + 1)
#define IDS (LANES * REQUESTS)
#define ID(lane, seq) ((lane) * REQUESTS + (seq) - 1)
#define LANE_OF(id) ((id) / REQUESTS)
#define SEQ_OF(id) ((id) % REQUESTS + 1)
#define MAY_REPEAT(id) ((IDEMPOTENT >> (id)) & 1)
#define NEVER 255

#ifdef SHARED_AREA
#define AREA(w, lane) (lane)
#else
#define AREA(w, lane) ((w) % AREAS * LANES + (lane))
#endif

/* Verdicts. Success has none: it is read off the done word. */
#define NONE 0
#define FAULT 1
#define LOST 2
#define STALE 3
#define CANCELLED 4

/* Written by the application, read by workers. Of a record, its op and its hold matter here. */
byte tail[LANES];
byte notify[LANES];
bit skip_op[IDS];
byte hold[IDS];
byte reaped;

/* The areas. taken, frozen and paused are one word, the claim. */
byte taken[AREAS * LANES];
bit frozen[AREAS * LANES];
bit paused[AREAS * LANES];
byte done[AREAS * LANES];
bit asleep[AREAS * LANES];
/* wake is a number; whether it changed since a sleeper read it is all that counts. */
byte watched[WAITERS]; /* the area whose wake it read, until that changes */
bit woken[WAITERS];

/* Private to the application. */
bit lock;
byte current;
bit down;              /* the current worker is judged, its successor is not yet published */
byte epoch;            /* counts freezes and publications */
byte verdict[IDS];
byte last_failed[LANES];
byte floor[LANES];     /* how far the last lost worker was done */
byte begun[LANES];     /* how far lost workers had taken requests */
byte wanted[WAITERS];  /* what each sleeper sleeps for, or NEVER */
byte lane_of[WAITERS];

/* Private to a worker: for each of its lanes, by HERE, and its requests, by PLAN. */
#define HERE (w * LANES + lane)
#define PLAN(id) (w * IDS + (id))
bit held[WORKERS * LANES];    /* the record is read, what it waits for is not yet reaped */
byte sent[WORKERS * LANES];   /* given to the device up to here */
bit sent_skip[WORKERS * IDS];
byte at[WORKERS * LANES];     /* executed up to here */
bit busy[WORKERS * LANES];    /* executing the next one */
bit owing[WORKERS * LANES];   /* done is written, notify not yet looked at */
bit retiring[WORKERS * LANES]; /* asleep is set, tail not yet looked at again */
bit sleeping[WORKERS * LANES];
#ifdef READ_BEFORE_CLAIM
bit peeked[WORKERS * LANES];
bit peeked_skip[WORKERS * LANES];
#endif

bit lost[WORKERS];
bit gone[WORKERS];
bit booted;            /* the last worker, in an area used before */

/* What really happened, for the assertions alone. */
bit told_ok[IDS];
bit finished[IDS];
bit started[IDS];
byte running[IDS];     /* 1 + the worker that executes it */

hidden byte scan;

inline wake(area) {
#ifdef SLEEP
    for (scan : 0 .. WAITERS - 1) {
        if
        :: watched[scan] == area -> watched[scan] = NEVER; woken[scan] = 1
        :: else
        fi
    }
#else
    skip
#endif
}

/* The notify word is the least of what the lane's sleepers want. */
inline post(lane) {
    notify[lane] = NEVER;
    for (scan : 0 .. WAITERS - 1) {
        if
        :: lane_of[scan] == lane && wanted[scan] < notify[lane] -> notify[lane] = wanted[scan]
        :: else
        fi
    }
}

/* ---- the worker ------------------------------------------------------------------------------ */

inline check_start(seq, id) {
    assert(!told_ok[id]);
    assert(!started[id] || MAY_REPEAT(id));
    /* Never in two workers at once. */
    assert(running[id] == 0);
    /* After its verdict a request may start only in the lost worker that had taken it. */
    assert(verdict[id] == NONE || lost[w]);
    assert(verdict[id] != CANCELLED);
    assert(verdict[id] != STALE || MAY_REPEAT(id));
    /* In order, and after what it depends on. */
    assert(seq == 1 || finished[id - 1] || verdict[id - 1] != NONE);
    assert(id != DEPENDENT || finished[SOURCE] || verdict[id] != NONE)
}

inline give(id, is_skip) {
    sent_skip[PLAN(id)] = is_skip;
    sent[HERE]++;
    held[HERE] = 0
}

inline finish(id) {
    sent_skip[PLAN(id)] = 0;
    finished[id] = 1;
    running[id] = 0;
    busy[HERE] = 0;
    at[HERE]++
}

inline owe() {
#ifdef SLEEP
    owing[HERE] = 1
#else
    skip
#endif
}

#define ALIVE (w <= current && !gone[w])
#define CLAIM AREA(w, lane)
#define IDLE (ALIVE && taken[CLAIM] == sent[HERE] && !retiring[HERE] && !sleeping[HERE])
#ifdef BLIND_CLAIM
#define MAY_CLAIM true
#else
#define MAY_CLAIM (!frozen[CLAIM] && !paused[CLAIM])
#endif
#define CLAIMED ID(lane, sent[HERE] + 1)  /* what the thread holds */
#define NEXT ID(lane, at[HERE] + 1)       /* what the device has before it */
#define READY (ALIVE && at[HERE] < sent[HERE] && !busy[HERE] && !owing[HERE])
#ifdef NO_HOLD
#define HELD(id) false
#else
#define HELD(id) (reaped < hold[id])
#endif

inline read_record() {
    if
    :: skip_op[CLAIMED] -> give(CLAIMED, 1)
    :: !skip_op[CLAIMED] && !HELD(CLAIMED) -> give(CLAIMED, 0)
    :: else -> held[HERE] = 1
    fi
}

/* One lane of a worker: a thread that claims a request, reads its record and gives it to the device, and the device,
 * which executes in order and writes done. Each option is one access to memory that others see. */
proctype Lane(byte w; byte lane) {
end:
    do
    /* Claim: the compare-and-swap. While it would fail, nothing happens. */
#ifdef READ_BEFORE_CLAIM
    :: d_step {
           IDLE && !peeked[HERE] && taken[CLAIM] < tail[lane] ->
           peeked[HERE] = 1;
           peeked_skip[HERE] = skip_op[CLAIMED]
       }
    :: d_step {
           IDLE && peeked[HERE] && MAY_CLAIM ->
           taken[CLAIM]++;
           give(CLAIMED, peeked_skip[HERE]);
           peeked[HERE] = 0
       }
#else
    :: d_step {
           IDLE && taken[CLAIM] < tail[lane] && MAY_CLAIM ->
           taken[CLAIM]++;
#ifdef PROMPT
           read_record();
#endif
       }
#endif

    /* Read the record, give it to the device. */
    :: d_step { ALIVE && sent[HERE] < taken[CLAIM] && !held[HERE] -> read_record() }
    :: d_step { ALIVE && held[HERE] && !HELD(CLAIMED) -> give(CLAIMED, 0) }

    /* Execute, and write done. A word may speak for several requests, but is not put off by one that has to wait. */
    :: d_step {
           READY && !sent_skip[PLAN(NEXT)] &&
           (NEXT != DEPENDENT || done[AREA(w, LANE_OF(SOURCE))] >= SEQ_OF(SOURCE)) ->
           check_start(at[HERE] + 1, NEXT);
           started[NEXT] = 1;
           running[NEXT] = w + 1;
           busy[HERE] = 1
       }
    :: d_step { ALIVE && busy[HERE] && at[HERE] + 1 < sent[HERE] && NEXT + 1 != DEPENDENT -> finish(NEXT) }
    :: d_step { ALIVE && busy[HERE] -> finish(NEXT); done[CLAIM] = at[HERE]; owe() }
    :: d_step { READY && sent_skip[PLAN(NEXT)] -> sent_skip[PLAN(NEXT)] = 0; at[HERE]++; done[CLAIM] = at[HERE]; owe() }

#ifdef SLEEP
    /* Wake those who asked. A lost worker's threads may be dead and its device still writing. */
    :: d_step {
           ALIVE && owing[HERE] ->
           owing[HERE] = 0;
           if
           :: notify[lane] <= at[HERE] -> wake(CLAIM)
           :: else
           fi
       }
    :: d_step { ALIVE && owing[HERE] && lost[w] -> owing[HERE] = 0 }
#endif

#if SUBMITTED < REQUESTS
    /* Nothing to claim: sleep. */
    :: d_step { IDLE && taken[CLAIM] == tail[lane] && tail[lane] < REQUESTS -> asleep[CLAIM] = 1; retiring[HERE] = 1 }
    :: d_step {
           ALIVE && retiring[HERE] ->
           retiring[HERE] = 0;
           if
           :: taken[CLAIM] == tail[lane] -> sleeping[HERE] = 1
           :: else -> asleep[CLAIM] = 0
           fi
       }
    :: d_step { ALIVE && sleeping[HERE] && !asleep[CLAIM] -> sleeping[HERE] = 0 }
#endif
    od
}

/* Workers are reaped in order. */
inline count_reaped() {
    do
    :: reaped < LOSSES && gone[reaped] -> reaped++
    :: else -> break
    od
}

/* What only the dead worker could see is cleared, to have fewer states. */
inline bury(w) {
    for (lane : 0 .. LANES - 1) {
        held[w * LANES + lane] = 0;
        sent[w * LANES + lane] = 0;
        at[w * LANES + lane] = 0;
        busy[w * LANES + lane] = 0;
        owing[w * LANES + lane] = 0;
        retiring[w * LANES + lane] = 0;
        sleeping[w * LANES + lane] = 0
    }
    for (id : 0 .. IDS - 1) {
        sent_skip[w * IDS + id] = 0;
        if
        :: running[id] == w + 1 -> running[id] = 0
        :: else
        fi;
        if
        :: hold[id] <= reaped -> hold[id] = 0
        :: else
        fi
    }
    lane = 0;
    id = 0
}

/* A lost worker goes on for as long as it likes, then all of it is gone at once. */
proctype Reaper() {
    byte lane, id;
end:
    do
    :: d_step { lost[0] && !gone[0] -> gone[0] = 1; count_reaped(); bury(0) }
#if LOSSES > 1
    :: d_step { lost[1] && !gone[1] -> gone[1] = 1; count_reaped(); bury(1) }
#endif
#if AREAS < WORKERS
    /* A worker boots in the area of one that is gone, and is not the current one. With one area there is no other. */
    :: d_step {
           !booted && gone[LOSSES - AREAS] && (AREAS == 1 -> down : current > 0) ->
           for (lane : 0 .. LANES - 1) {
               taken[AREA(LOSSES, lane)] = 0;
               frozen[AREA(LOSSES, lane)] = 0;
               done[AREA(LOSSES, lane)] = 0
           }
           lane = 0;
           booted = 1
       }
#endif
    od
}

/* ---- the application ------------------------------------------------------------------------- */

#if SUBMITTED < REQUESTS
proctype Submitter() {
    byte lane, seq, w;
    for (seq : SUBMITTED + 1 .. REQUESTS) {
        for (lane : 0 .. LANES - 1) {
#ifdef AREA_BEFORE_TAIL
            w = current;
            tail[lane] = seq;
#else
            tail[lane] = seq;
            w = current;
#endif
            asleep[AREA(w, lane)] = 0
        }
    }
    atomic { lane = 0; seq = 0; w = 0 }
}
#endif

/* With the lock: how far the lane is done. */
#define REACHED(lane) (down -> floor[lane] : done[AREA(current, lane)])

/* Every success goes through here, and every failure through the next. */
inline tell_ok(seq, id) {
    assert(verdict[id] == NONE);
    assert(finished[id]);
    assert(running[id] == 0);
    assert(seq == 1 || finished[id - 1] || verdict[id - 1] != NONE);
    assert(id != DEPENDENT || verdict[SOURCE] == NONE);
    told_ok[id] = 1
}

inline record(what, id) {
    assert(!told_ok[id]);
    assert(verdict[id] == NONE);
#ifdef FORBIDDEN
    assert(what != FORBIDDEN);
#endif
    verdict[id] = what;
    if
    :: last_failed[LANE_OF(id)] < SEQ_OF(id) -> last_failed[LANE_OF(id)] = SEQ_OF(id)
    :: else
    fi
}

/* Waits on one ticket: asks, sleeps or spins, asks again. */
proctype Waiter(byte me; byte lane; byte seq) {
    byte at_area, w;
    bit ok;
#if AREAS < WORKERS
    byte e;
#endif
    tail[lane] >= seq;

again:
#ifdef SLEEP
    at_area = current;
    d_step { watched[me] = AREA(at_area, lane); woken[me] = 0 }
#ifndef NO_DONE_RECHECK
    d_step { wanted[me] = seq; post(lane) }
#endif
#endif

ask:
#if AREAS < WORKERS
    e = epoch;
#endif
    w = current;
#ifdef LOOKUP_FIRST
    if
    :: last_failed[lane] >= seq -> goto locked
    :: else
    fi;
#endif
#ifdef FROZEN_BEFORE_DONE
    ok = !frozen[AREA(w, lane)];
#endif
    if
    :: done[AREA(w, lane)] >= seq
#ifdef FROZEN_BEFORE_DONE
    :: else -> ok = 0; goto failed
#else
    :: else -> goto failed
#endif
    fi;
#ifdef NO_FROZEN_CHECK
    ok = 1;
#endif
#if !defined(NO_FROZEN_CHECK) && !defined(FROZEN_BEFORE_DONE)
    ok = !frozen[AREA(w, lane)];
#endif
failed:
#ifdef LOOKUP_FIRST
    if
    :: d_step { ok -> tell_ok(seq, ID(lane, seq)) }; goto out
    :: else -> goto not_yet
    fi;
#elif AREAS < WORKERS
    if
    :: last_failed[lane] >= seq -> goto locked
    :: else
    fi;
#ifndef NO_EPOCH
    if
    :: epoch != e -> ok = 0; goto ask
    :: else
    fi;
#endif
    if
    :: d_step { ok -> tell_ok(seq, ID(lane, seq)) }; goto out
    :: else -> goto not_yet
    fi;
#else
    if
    :: last_failed[lane] >= seq
    :: d_step { last_failed[lane] < seq && ok -> tell_ok(seq, ID(lane, seq)) }; goto out
    :: last_failed[lane] < seq && !ok -> goto not_yet
    fi;
#endif

locked:
    /* It failed, or one after it did. The lock knows. */
    atomic {
        !lock ->
        if
        :: verdict[ID(lane, seq)] != NONE -> goto out
        :: verdict[ID(lane, seq)] == NONE && REACHED(lane) >= seq ->
            d_step { tell_ok(seq, ID(lane, seq)) }
            goto out
        :: else -> ok = 0
        fi
    }

not_yet:
#ifdef SLEEP
#ifndef NO_AREA_RECHECK
    if
    :: at_area != current -> goto again
    :: else
    fi;
#endif
#ifdef NO_DONE_RECHECK
    atomic { wanted[me] = seq; post(lane) }
#endif
    woken[me];
    goto again;
#else
    (done[AREA(w, lane)] >= seq && !frozen[AREA(w, lane)]) || w != current || verdict[ID(lane, seq)] != NONE;
    goto again;
#endif

out:
    atomic {
#ifdef SLEEP
        d_step { watched[me] = NEVER; woken[me] = 0; wanted[me] = NEVER; post(lane) }
#endif
        lane = 0; seq = 0; w = 0; at_area = 0; ok = 0; lane_of[me] = 0
    }
}

#ifdef CANCEL
/* Takes back one request, if no worker has begun it. */
proctype Canceller(byte id) {
    byte t;
    d_step {
        !lock && tail[LANE_OF(id)] >= SEQ_OF(id) ->
        lock = 1;
#ifndef NO_PAUSE
        paused[AREA(current, LANE_OF(id))] = !down
#endif
    }
    t = (down -> floor[LANE_OF(id)] : taken[AREA(current, LANE_OF(id))]);
    if
#ifdef CANCEL_BEGUN
    :: t < SEQ_OF(id) && verdict[id] == NONE ->
#else
    :: t < SEQ_OF(id) && begun[LANE_OF(id)] < SEQ_OF(id) && verdict[id] == NONE ->
#endif
        skip_op[id] = 1;
        d_step { assert(!started[id]); record(CANCELLED, id) }
    :: else
    fi;
    atomic { paused[AREA(current, LANE_OF(id))] = 0; lock = 0; id = 0; t = 0 }
}
#endif

/* All lanes as of one moment: read over until a whole pass finds nothing new. */
inline read_lane(lane) {
    if
    :: floor[lane] != done[AREA(w, lane)] -> floor[lane] = done[AREA(w, lane)]; moved = 1
    :: else
    fi
}

inline read_done() {
#if LANES == 1
    d_step { read_lane(0); moved = 0 }
#else
    do
    :: d_step { moved = 0; read_lane(0) }
       d_step { read_lane(1) }
       if
#ifdef ONE_PASS
       :: break
#else
       :: moved
       :: !moved -> break
#endif
       fi
    od;
#endif
}

inline judge(lane, seq, id) {
    if
    :: seq > tail[lane] || seq <= floor[lane] || verdict[id] != NONE
    :: else ->
        if
        :: seq <= taken[AREA(w, lane)] -> /* in flight */
            if
            :: blame && !blamed -> blamed = 1; skip_op[id] = 1; record(FAULT, id)
            :: else ->
                if
                :: MAY_REPEAT(id) && (id != DEPENDENT || verdict[SOURCE] == NONE) -> hold[id] = w + 1
                :: else -> skip_op[id] = 1; record(LOST, id)
                fi
            fi
        :: else ->
            if
            :: id == DEPENDENT && verdict[SOURCE] != NONE -> skip_op[id] = 1; record(STALE, id)
            :: else
            fi
        fi
    fi
}

inline judge_all() {
    for (lane : 0 .. LANES - 1) {
        blamed = 0;
        if
        :: begun[lane] < taken[AREA(w, lane)] -> begun[lane] = taken[AREA(w, lane)]
        :: else
        fi;
        for (seq : 1 .. REQUESTS) {
            judge(lane, seq, ID(lane, seq))
        }
        wake(AREA(w, lane))
    }
    lane = 0; seq = 0; blame = 0; blamed = 0; moved = 0
}

inline publish() {
    for (lane : 0 .. LANES - 1) {
        taken[AREA(w, lane)] = floor[lane];
        done[AREA(w, lane)] = floor[lane];
        frozen[AREA(w, lane)] = 0;
        sent[w * LANES + lane] = floor[lane];
        at[w * LANES + lane] = floor[lane];
        floor[lane] = 0;
#ifndef NO_OLD_WAKE
        wake(AREA(w - 1, lane))
#endif
    }
    current = w;
    lane = 0
}

/* Takes over from up to LOSSES workers, each at any moment, or from none. */
proctype Supervisor() {
    byte w, lane, seq;
    bit moved, blame, blamed;
    do
    :: d_step {
           w < LOSSES && !lock ->
           lock = 1;
           lost[w] = 1;
           epoch++;
#ifndef SWAP_FREEZE
           frozen[AREA(w, 0)] = 1
#endif
       }
#if LANES > 1 && !defined(SWAP_FREEZE)
       frozen[AREA(w, 1)] = 1;
#endif
       read_done();
#ifdef SWAP_FREEZE
       for (lane : 0 .. LANES - 1) {
           frozen[AREA(w, lane)] = 1
       }
#endif
       atomic {
           if
           :: blame = 1 /* the device reported a fault */
           :: blame = 0 /* the process died */
           fi;
           d_step { judge_all(); down = 1; lock = 0 }
       }
       d_step {
           !lock && (LINGER || gone[w]) && (w + 1 < AREAS || booted) ->
           w++;
           publish();
           down = 0;
           epoch++
       }
    :: break
    od;
    w = 0
}

init {
    byte i, lane, id;
    atomic {
        for (lane : 0 .. LANES - 1) {
            tail[lane] = SUBMITTED;
            notify[lane] = NEVER
        }
        run Supervisor();
        run Reaper();
        for (i : 0 .. WORKERS - 1) {
            for (lane : 0 .. LANES - 1) {
                run Lane(i, lane)
            }
        }
#if SUBMITTED < REQUESTS
        run Submitter();
#endif
        /* Which tickets are waited on, and which is cancelled, is left open: the search tries all. */
#ifdef CANCEL
        do
        :: id < IDS - 1 -> id++
        :: break
        od;
        run Canceller(id);
        id = 0;
#endif
        for (i : 0 .. WAITERS - 1) {
            do
            :: id < IDS - 1 -> id++
            :: break
            od;
            wanted[i] = NEVER;
            watched[i] = NEVER;
            lane_of[i] = LANE_OF(id);
            run Waiter(i, LANE_OF(id), SEQ_OF(id))
        }
        i = 0; lane = 0; id = 0
    }
}
