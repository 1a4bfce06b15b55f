/* SPDX-License-Identifier: Apache-2.0 */
/* Doubt, what depends on a request that does not complete, and calls of several requests: cancels, refusals, a loss.
 * docs/protocol.md explains it; model.sh gives the mutations that must fail.
 *
 * Requests are numbered in the order of their stamps. Bytes x0 and s are in doubt at the beginning.
 *
 *   0  lane 0  overwrites x0            piece 1 of a call
 *   1  lane 1  reads x0, overwrites y   waits for 0
 *   2  lane 1  overwrites s
 *   3  lane 0  reads s, overwrites x1   waits for 2; piece 2 of that call, with its ticket
 *   4  lane 1  reads x0, overwrites z   waits for 3: for all of the call, though it needs none of piece 2
 *   5  lane 0  overwrites x0            waits for 4
 *
 * Waiters ask all the time: a request is answered in the very step in which done passes it. How they ask is the subject
 * of the other models. */

#define IDS 6
#define LANES 2
#define LENGTH 3
#define CELLS 5
#define X0 0
#define X1 1
#define Y 2
#define Z 3
#define S 4
#define LANE_OF(id) ((id) == 1 || (id) == 2 || (id) == 4)
#define SEQ_OF(id) ((id) / 2 + 1)
#define ID(lane, seq) \
    ((lane) == 0 -> ((seq) == 1 -> 0 : ((seq) == 2 -> 3 : 5)) : ((seq) == 1 -> 1 : ((seq) == 2 -> 2 : 4)))
#define STAMP(id) ((id) + 2) /* 1 is the stamp of the doubt at the beginning */
#define READS(id, cell) ((((id) == 1 || (id) == 4) && (cell) == X0) || ((id) == 3 && (cell) == S))
#define TARGET(id) ((id) == 1 -> Y : ((id) == 2 -> S : ((id) == 3 -> X1 : ((id) == 4 -> Z : X0))))
#define WRITES(id, cell) ((cell) == TARGET(id))
#ifdef ORDER_BY_PIECE
#define WHOLE_CALL 1
#else
#define WHOLE_CALL 2
#endif
/* In the worker `w`: what the request waits for on the other lane. */
#define MAY_START(id) \
    ((id) == 0 || (id) == 2 || ((id) == 1 && done[AREA(w, 0)] >= 1) || ((id) == 3 && done[AREA(w, 1)] >= 2) || \
     ((id) == 4 && done[AREA(w, 0)] >= WHOLE_CALL) || ((id) == 5 && done[AREA(w, 1)] >= 3))
#ifdef NO_CALL
#define IN_CALL(id) false
#else
#define IN_CALL(id) ((id) == 0 || (id) == 3)
#endif
#define SAME_CALL(a, b) ((a) == (b) || (IN_CALL(a) && IN_CALL(b)))
#define HAS_TICKET(id) (!IN_CALL(id) || (id) == 3)
#define FIRST_PIECE(id) (IN_CALL(id) -> 0 : (id))
#ifndef REPEAT
#define REPEAT 1        /* a set of requests that may be sent again */
#endif
#define MAY_REPEAT(id) ((REPEAT >> (id)) & 1)
#ifndef SUBMITTED
#define SUBMITTED IDS
#endif

#define NONE 0
#define REFUSED 1
#define LOST 2
#define STALE 3
#define CANCELLED 4

#define AREA(w, lane) ((w) * LANES + (lane))
byte taken[4];
bit frozen[2];
bit paused[LANES];      /* of the current worker's lanes */
byte done[4];
bit skip_op[IDS];
byte report[LANES];     /* 1 + the request that a lane of the current worker has refused */

/* Private to the application. */
bit lock;
byte submitted = SUBMITTED;
byte current;
bit down;
byte floor[LANES];
byte begun[LANES];      /* how far the lost worker had taken requests */
byte verdict[IDS];
byte retired[LANES];
byte doubt[CELLS];      /* a set: the stamps of the requests that caused it */
#define AT(id) (1 << STAMP(id))
#define BELOW(id) (AT(id) - 1)

/* What really happened. */
bit lost;
bit gone;
bit suspect[CELLS];
bit tainted[IDS];       /* its run read suspect bytes */
bit started[IDS];
bit finished[IDS];
bit told_ok[IDS];

hidden byte cell, other, hit, beyond;

/* ---- the worker ---- */

#define SELF AREA(w, lane)
#define MINE ID(lane, taken[SELF])

inline start() {
    assert(!told_ok[MINE]);
    assert(!started[MINE] || MAY_REPEAT(MINE));
    assert(verdict[MINE] == NONE || lost || !HAS_TICKET(MINE));
    started[MINE] = 1;
    tainted[MINE] = 0;
    for (cell : 0 .. CELLS - 1) {
        if
        :: READS(MINE, cell) && suspect[cell] -> tainted[MINE] = 1
        :: else
        fi
    }
    for (cell : 0 .. CELLS - 1) {
        if
        :: WRITES(MINE, cell) -> suspect[cell] = 1
        :: else
        fi
    }
    cell = 0
}

inline finish() {
    for (cell : 0 .. CELLS - 1) {
        if
        :: WRITES(MINE, cell) -> suspect[cell] = tainted[MINE]
        :: else
        fi
    }
    cell = 0;
    finished[MINE] = 1
}

inline complete() {
    done[SELF] = taken[SELF];
    if
    :: !frozen[w] && verdict[MINE] == NONE && HAS_TICKET(MINE) ->
        assert(finished[MINE]);
        assert(!tainted[MINE]);
#ifndef NO_CALL
        /* Of a call: every piece is done, and nobody after it reads what a failed call has half written. */
        assert(MINE != 3 || (finished[0] && verdict[0] == NONE));
        assert(MINE != 4 || verdict[3] == NONE || (!started[0] && !started[3]));
#endif
        told_ok[MINE] = 1
    :: else
    fi
}

proctype Lane(byte w; byte lane) {
    bit is_skip;
    {
end:
        do
        :: d_step {
               taken[SELF] < LENGTH && ID(lane, taken[SELF] + 1) < submitted && !frozen[w] && !paused[lane] ->
               taken[SELF]++;
               is_skip = skip_op[MINE]
           }
           MAY_START(MINE);
#ifndef NO_OP_AGAIN
           is_skip = skip_op[MINE];
#endif
           if
           :: is_skip
           :: d_step { !is_skip -> start() }
              d_step { finish() }
#ifndef NO_REFUSAL
           :: d_step { !is_skip && !frozen[w] -> report[lane] = MINE + 1 }
              /* After a freeze nobody takes it. */
              report[lane] == 0 || frozen[w];
              !frozen[w]
#endif
           fi;
           d_step { complete(); is_skip = 0 }
        od
    } unless { gone }
}

#ifdef LOSS
/* The same in larger steps. */
proctype Successor(byte w; byte lane) {
end:
    do
    :: atomic {
           current == w && taken[SELF] < LENGTH && ID(lane, taken[SELF] + 1) < submitted &&
           MAY_START(ID(lane, taken[SELF] + 1)) && !paused[lane] ->
           taken[SELF]++;
           if
           :: skip_op[MINE]
           :: d_step { !skip_op[MINE] -> start(); finish() }
#ifndef NO_REFUSAL
           :: d_step { !skip_op[MINE] -> report[lane] = MINE + 1 }
              report[lane] == 0
#endif
           fi;
           d_step { complete() }
       }
    od
}
#endif

/* ---- the application, with the lock held ---- */

#define REACHED(lane) (down -> floor[lane] : done[AREA(current, lane)])
#define UNFINISHED(id) (id < submitted && verdict[id] == NONE && REACHED(LANE_OF(id)) < SEQ_OF(id))

#ifdef ANY_STAMP
#define CLEARED(id) 255
#else
#define CLEARED(id) BELOW(id)
#endif

/* What was done clears doubt that is older than it. */
inline retire_lane(lane) {
    do
    :: retired[lane] < REACHED(lane) ->
        retired[lane]++;
        for (cell : 0 .. CELLS - 1) {
            if
            :: verdict[ID(lane, retired[lane])] == NONE && WRITES(ID(lane, retired[lane]), cell) ->
                doubt[cell] = doubt[cell] & ~CLEARED(ID(lane, retired[lane]))
            :: else
            fi
        }
    :: else -> break
    od
}

inline retire() {
    retire_lane(0);
    retire_lane(1);
    cell = 0
}

/* hit: the request reads what would be in doubt even if all before it completed. */
inline project(id) {
    hit = 0;
    for (cell : 0 .. CELLS - 1) {
        beyond = (READS(id, cell) -> doubt[cell] & BELOW(id) : 0);
        for (other : 0 .. IDS - 1) {
            if
            :: other < id && other < submitted && verdict[other] == NONE && WRITES(other, cell) ->
                beyond = beyond & ~BELOW(other)
            :: else
            fi
        }
        hit = hit || beyond != 0
    }
    cell = 0; other = 0; beyond = 0
}

#ifdef FORGET_BEGUN
#define BEGUN(id) false
#else
#define BEGUN(id) (begun[LANE_OF(id)] >= SEQ_OF(id))
#endif
#ifdef PIECES_ALONE
#define FAILS_WITH(a, b) ((a) == (b))
#else
#define FAILS_WITH(a, b) SAME_CALL(a, b)
#endif
#ifdef DOUBT_ALONE
#define DOUBTED_WITH(a, b) ((a) == (b))
#else
#define DOUBTED_WITH(a, b) SAME_CALL(a, b)
#endif
/* A piece before the one that fails, and already taken by a worker that lives, will be done: it and what reads it may
 * be done at any moment. */
#ifdef TAKE_FROM_WORKER
#define RUNS(other, id) false
#else
#define RUNS(other, id) (!down && other < id && taken[AREA(current, LANE_OF(other))] >= SEQ_OF(other))
#endif

/* The one way in which a request ends without having run to its end. What it was to write is in doubt if a lost worker
 * may have begun it, if it was to be computed from what is in doubt, or if it is part of a call. The doubt has the
 * piece's own stamp if that piece fails, and the stamp of the one that failed if it is done or will be. */
inline fail(id, what) {
    for (other : 0 .. IDS - 1) {
        if
        :: FAILS_WITH(other, id) && UNFINISHED(other) && !RUNS(other, id) ->
            assert(!told_ok[other]);
#ifdef FORBIDDEN
            assert(what != FORBIDDEN);
#endif
            if
            :: IN_CALL(other) || what == LOST || what == STALE || BEGUN(other) ->
                doubt[TARGET(other)] = doubt[TARGET(other)] | AT(other)
            :: else
            fi;
            verdict[other] = what;
            skip_op[other] = 1
        :: else ->
            if
            :: DOUBTED_WITH(other, id) && other < submitted -> doubt[TARGET(other)] = doubt[TARGET(other)] | AT(id)
            :: else
            fi
        fi
    }
    other = 0
}

/* Everything unfinished, in order, and from the beginning whenever one more has failed: a piece of a call takes pieces
 * with it that stand before what was already looked at. */
inline walk() {
    at = 0;
    do
    :: at < submitted ->
        d_step {
            project(at);
            if
            :: hit && UNFINISHED(at) ->
                fail(at, STALE);
#ifdef WALK_FORWARD
                at++
#else
                at = 0
#endif
            :: else -> at++
            fi;
            hit = 0
        }
    :: else -> break
    od;
    at = 0
}

/* Nothing is claimed while it is decided: what is taken, and so will be done, is known. */
inline pause_lanes(lane) {
#ifdef PAUSE_ONE
    paused[lane] = 1
#else
    paused[0] = 1;
    paused[1] = 1
#endif
}

#ifndef NO_REFUSAL
proctype Collector() {
    byte at, id;
end:
    do
    :: d_step {
           !lock && !down && (report[0] != 0 || report[1] != 0) ->
           lock = 1;
           pause_lanes(report[0] == 0)
       }
       d_step {
           retire();
           id = (report[0] != 0 -> report[0] : report[1]) - 1;
           fail(id, REFUSED)
       }
#ifndef NO_WALK
       walk();
#endif
       d_step { report[LANE_OF(id)] = 0; id = 0; paused[0] = 0; paused[1] = 0; lock = 0 }
    od
}
#endif

#ifdef CANCEL
/* Takes back a request, or all of a call, if no worker has begun it. */
proctype Canceller(byte id) {
    byte at;
    d_step {
        !lock && id < submitted ->
        lock = 1;
#ifndef NO_PAUSE
        if
        :: !down -> pause_lanes(LANE_OF(id))
        :: else
        fi
#endif
    }
    if
#ifdef CANCEL_REST
#define FIRST(id) (id)
#else
#define FIRST(id) FIRST_PIECE(id)
#endif
    :: d_step {
           (down -> floor[LANE_OF(id)] : taken[AREA(current, LANE_OF(id))]) < SEQ_OF(FIRST(id)) &&
           begun[LANE_OF(id)] < SEQ_OF(FIRST(id)) && verdict[id] == NONE ->
           retire();
           fail(id, CANCELLED)
       }
#ifdef WALK_LATE
       d_step { paused[0] = 0; paused[1] = 0 }
#endif
#ifndef NO_WALK
       walk()
#endif
    :: else
    fi;
    d_step { paused[0] = 0; paused[1] = 0; lock = 0 }
}
#endif

#if SUBMITTED < IDS
/* A submission is admitted if it reads nothing in doubt, provided that all before it complete. Of a call that has
 * failed, no more pieces are accepted. What is refused here takes up its position as a request to skip. */
#ifdef LATE_PIECE
#define CALL_FAILED false
#else
#define CALL_FAILED (submitted == 4 && IN_CALL(3) && verdict[0] != NONE)
#endif
proctype Submitter() {
    byte at;
    do
    :: submitted < IDS ->
        d_step {
            !lock ->
            lock = 1;
            retire();
#ifdef CLEAR_AT_SUBMIT
            doubt[TARGET(submitted)] = 0;
#endif
            if
            :: IN_CALL(submitted) && !down -> pause_lanes(0)
            :: else
            fi
        }
        d_step {
            project(submitted);
            submitted++;
            if
            :: CALL_FAILED -> at = 1; fail(3, verdict[0])
            :: hit && IN_CALL(submitted - 1) && !CALL_FAILED -> at = 1; fail(submitted - 1, STALE)
            :: hit && !IN_CALL(submitted - 1) -> verdict[submitted - 1] = STALE; skip_op[submitted - 1] = 1
            :: else
            fi;
            hit = 0
        }
#ifndef NO_WALK_AT_SUBMIT
        if
        :: at == 1 -> walk()
        :: else
        fi;
#endif
        d_step { at = 0; paused[0] = 0; paused[1] = 0; lock = 0 }
    :: else -> break
    od
}
#endif

#ifdef LOSS
/* Its input may be overwritten already, by a later request that the lost worker had taken: it cannot be sent again. */
#ifdef RESEND_SWEPT
#define SWEPT(id) false
#else
#define SWEPT(id) (READS(id, X0) && begun[LANE_OF(5)] >= SEQ_OF(5))
#endif

proctype Supervisor() {
    byte at, lane;
    bit moved;
    if
    :: d_step { !lock -> lock = 1; lost = 1; frozen[0] = 1 }
       do
       :: d_step { moved = floor[0] != done[0]; floor[0] = done[0] }
          d_step { moved = moved || floor[1] != done[1]; floor[1] = done[1] }
          if
          :: moved
          :: !moved -> break
          fi
       od;
       moved = 0;
       /* Reports are taken before anything else is decided. */
       d_step {
           down = 1;
           begun[0] = taken[0];
           begun[1] = taken[1];
           retire();
           if
           :: report[0] != 0 -> at = report[0] - 1; fail(at, REFUSED); report[0] = 0
           :: else
           fi;
           if
           :: report[1] != 0 -> at = report[1] - 1; fail(at, REFUSED); report[1] = 0
           :: else
           fi;
           at = 0
       }
       do
       :: at < submitted ->
           d_step {
               project(at);
               if
               :: UNFINISHED(at) && SEQ_OF(at) <= begun[LANE_OF(at)] && (!(MAY_REPEAT(at)) || hit || SWEPT(at)) ->
                   fail(at, LOST);
#ifdef WALK_FORWARD
                   at++
#else
                   at = 0
#endif
               :: UNFINISHED(at) && SEQ_OF(at) > begun[LANE_OF(at)] && hit ->
                   fail(at, STALE);
#ifdef WALK_FORWARD
                   at++
#else
                   at = 0
#endif
               :: else -> at++
               fi;
               hit = 0
           }
       :: else -> break
       od;
       at = 0;
       lock = 0;
       d_step {
           !lock ->
           gone = 1;
           for (lane : 0 .. LANES - 1) {
               taken[AREA(1, lane)] = floor[lane];
               done[AREA(1, lane)] = floor[lane];
               floor[lane] = 0
           }
           lane = 0;
           current = 1;
           down = 0
       }
    :: skip
    fi
}
#endif

/* When everything has passed: what is suspect is in doubt, and what was overwritten since is not. */
proctype Checker() {
    d_step {
        !lock && !down && submitted == IDS && REACHED(0) == LENGTH && REACHED(1) == LENGTH ->
        retire();
        for (cell : 0 .. CELLS - 1) {
            assert(!suspect[cell] || doubt[cell] != 0)
        }
        cell = 0;
#ifndef NO_CALL
        /* Half of the call was written, and nothing over it. */
        if
        :: verdict[3] != NONE && (started[0] || started[3]) ->
            assert(doubt[X1] != 0);
            assert(doubt[X0] != 0 || verdict[5] == NONE);
            /* All of it was cancelled, or none. */
            assert(verdict[3] != CANCELLED)
        :: else
        fi;
#endif
        assert(verdict[5] != NONE || doubt[X0] == 0);
        assert(verdict[4] != NONE || doubt[Z] == 0);
        assert(verdict[2] != NONE || doubt[S] == 0);
        assert(verdict[1] != NONE || doubt[Y] == 0)
    }
}

init {
    byte id;
    atomic {
        suspect[X0] = 1;
        suspect[S] = 1;
        doubt[X0] = 1 << 1;
        doubt[S] = 1 << 1;
        run Lane(0, 0);
        run Lane(0, 1);
        run Checker();
#ifdef LOSS
        run Supervisor();
        run Successor(1, 0);
        run Successor(1, 1);
#endif
#ifndef NO_REFUSAL
        run Collector();
#endif
#if SUBMITTED < IDS
        run Submitter();
#endif
#ifdef CANCEL
        if
        :: id = 0
        :: id = 1
        :: id = 2
        :: id = 3
        :: id = 4
        :: id = 5
        fi;
        run Canceller((HAS_TICKET(id) -> id : 3));
        id = 0
#endif
    }
}
