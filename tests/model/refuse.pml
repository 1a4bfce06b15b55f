/* SPDX-License-Identifier: Apache-2.0 */
/* Refused requests: the worker's report, who takes it and when, what depends on the request, and a loss meanwhile.
 * docs/protocol.md explains it; model.sh gives the mutations that must fail.
 *
 * Lane 0 has requests 0 and 1, lane 1 has request 2. Request 0 overwrites bytes that are in doubt; 1 and 2 read them.
 * Request 2 waits for request 0. The worker may refuse any of them, or die, or both. */

#define IDS 3
#define LANES 2
#define WORKERS 2
#define LANE_OF(id) ((id) / 2)
#define SEQ_OF(id) ((id) % 2 + 1)
#define ID(lane, seq) ((lane) * 2 + (seq) - 1)
#define LENGTH(lane) (2 - (lane))
#define MAY_REPEAT(id) ((id) == 0)
#define NOTHING 255

#define NONE 0
#define REFUSED 1
#define LOST 2
#define STALE 3

/* MAD: the worker may also report what it has not refused. IMPATIENT: it moves done although nobody has taken its
 * report. Of such a worker only one thing is asked: that it cannot make two answers of one. */
#if defined(MAD) || defined(IMPATIENT)
#define HONEST false
#else
#define HONEST true
#endif

/* Written by the application. */
bit skip_op[IDS];
/* The areas. */
byte taken[WORKERS * LANES];
bit frozen[WORKERS * LANES];
byte done[WORKERS * LANES];
byte made[WORKERS];
byte reports_taken[WORKERS];
byte about[WORKERS * 4] = NOTHING; /* the reports */
#define AREA(w, lane) ((w) * LANES + (lane))

/* Private to the application. */
bit lock;
byte current;
bit down;
byte verdict[IDS];
byte last_failed[LANES];
byte floor[LANES];

/* What really happened. */
bit lost[WORKERS];
bit gone[WORKERS];
bit suspect = 1;        /* the bytes */
bit read_suspect[IDS];  /* a run of this request read them so */
bit finished[IDS];
bit told_ok[IDS];
bit refused_in_time[IDS]; /* its report was made before the freeze */

/* ---- the worker ---- */

#define SELF AREA(w, lane)
#define MINE ID(lane, taken[SELF])

inline execute() {
    assert(!told_ok[MINE]);
    assert(verdict[MINE] != REFUSED || !HONEST);
    /* A request with a verdict starts only in the lost worker that had taken it. */
    assert(verdict[MINE] == NONE || lost[w] || !HONEST);
    if
    :: MINE == 0 -> suspect = 0
    :: else -> read_suspect[MINE] = suspect
    fi;
    finished[MINE] = 1
}

inline report() {
    about[w * 4 + made[w]] = MINE;
    made[w]++;
    number = made[w]
}

/* A thread of the first worker that claims, reads, waits, executes or refuses, one request after the other. */
proctype Lane(byte w; byte lane) {
    byte number;
    bit is_skip;
    {
end:
        do
        :: d_step {
               taken[SELF] < LENGTH(lane) && !frozen[SELF] ->
               taken[SELF]++;
               is_skip = skip_op[MINE]
           }
           lane == 0 || done[AREA(w, 0)] >= 1;
#ifndef NO_OP_AGAIN
           /* Its own verdict may have come while it waited. */
           is_skip = skip_op[MINE];
#endif
           if
           :: is_skip
           :: d_step { !is_skip -> execute() }
#ifdef MAD
           :: false /* the lie is its only report */
#elif defined(COUNT_BEFORE_FILL)
           :: d_step { !is_skip -> made[w]++; number = made[w] }
              about[w * 4 + number - 1] = MINE;
#else
           :: d_step { !is_skip -> report(); refused_in_time[MINE] = !frozen[AREA(w, 1)] }
#endif
#if !defined(EARLY_DONE) && !defined(IMPATIENT) && !defined(MAD)
              reports_taken[w] >= number
#endif
           fi;
           d_step { done[SELF] = taken[SELF]; number = 0; is_skip = 0 }
        od
    } unless { gone[w] }
}

/* The same of its successor, in larger steps. */
proctype Successor(byte w; byte lane) {
    byte number;
end:
    do
    :: atomic {
           current == w && taken[SELF] < LENGTH(lane) && (lane == 0 || done[AREA(w, 0)] >= 1) ->
           taken[SELF]++;
           if
           :: skip_op[MINE]
           :: d_step { !skip_op[MINE] -> execute() }
#ifndef MAD
           :: d_step { !skip_op[MINE] -> report() }
              reports_taken[w] >= number
#endif
           fi;
           done[SELF] = taken[SELF];
           number = 0
       }
    od
}

#ifdef MAD
/* Reports any request, once. */
proctype Liar(byte id) {
    d_step { about[made[0]] = id; made[0]++ }
}
#endif

/* ---- the application ---- */

inline tell_ok(id) {
    assert(verdict[id] == NONE);
    assert(finished[id] || !HONEST);
    assert(!read_suspect[id] || !HONEST);
    told_ok[id] = 1
}

inline record(id, what) {
    assert(!told_ok[id]);
    assert(verdict[id] == NONE);
#ifdef FORBIDDEN
    assert(what != FORBIDDEN);
#endif
    assert(!(what == LOST && refused_in_time[id]));
    verdict[id] = what;
    skip_op[id] = 1;
    if
    :: last_failed[LANE_OF(id)] < SEQ_OF(id) -> last_failed[LANE_OF(id)] = SEQ_OF(id)
    :: else
    fi
}

#define REACHED(lane) (down -> floor[lane] : done[AREA(current, lane)])

inline go_stale(id) {
    if
    :: verdict[0] != NONE && verdict[id] == NONE && REACHED(LANE_OF(id)) < SEQ_OF(id) -> record(id, STALE)
    :: else
    fi
}

/* With the lock held: takes one report. A report of a request that is done, or was not taken, is a lie. last_failed is
 * raised before done is looked at: whoever saw done pass the request looks at last_failed next, and then comes for the
 * lock. */
inline take_report() {
    d_step { id = about[w * 4 + reports_taken[w]]; seen = reports_taken[w] + 1 }
#ifdef TAKEN_FIRST
    reports_taken[w] = seen;
#endif
    if
    :: id == NOTHING
    :: else ->
#ifndef DONE_BEFORE_FAILED
        d_step {
            if
            :: last_failed[LANE_OF(id)] < SEQ_OF(id) -> last_failed[LANE_OF(id)] = SEQ_OF(id)
            :: else
            fi
        }
#endif
#ifndef BELIEVE_ALL
        ok = done[AREA(w, LANE_OF(id))] < SEQ_OF(id) && taken[AREA(w, LANE_OF(id))] >= SEQ_OF(id);
#else
        ok = 1;
#endif
        if
        :: d_step { ok && verdict[id] == NONE -> record(id, REFUSED) }
        :: else
        fi;
#ifdef TAKEN_BEFORE_WALK
        reports_taken[w] = seen;
#endif
        d_step { go_stale(1) }
        d_step { go_stale(2) }
    fi;
#if !defined(TAKEN_FIRST) && !defined(TAKEN_BEFORE_WALK)
    reports_taken[w] = seen;
#endif
    d_step { id = 0; seen = 0; ok = 0 }
}

/* Told by the worker that there are reports. */
proctype Collector() {
    byte w, id, seen;
    bit ok;
end:
    do
#ifdef LATE_REPORTS
    :: atomic {
           !lock && (reports_taken[0] < made[0] || reports_taken[1] < made[1]) ->
           lock = 1;
           w = reports_taken[0] == made[0]
       }
#else
    :: atomic { !lock && !down && reports_taken[current] < made[current] -> lock = 1; w = current }
#endif
       take_report();
       atomic { lock = 0; w = 0 }
    od
}

inline judge(id) {
    if
    :: SEQ_OF(id) <= floor[LANE_OF(id)] || verdict[id] != NONE
    :: else ->
        if
        :: SEQ_OF(id) <= taken[AREA(0, LANE_OF(id))] && !(MAY_REPEAT(id)) -> record(id, LOST)
        :: SEQ_OF(id) <= taken[AREA(0, LANE_OF(id))] && MAY_REPEAT(id)
        :: else -> go_stale(id)
        fi
    fi
}

proctype Supervisor() {
    byte w, id, seen, lane;
    bit ok, moved;
    if
    :: atomic { !lock -> lock = 1; lost[0] = 1 }
#ifdef COLLECT_BEFORE_FREEZE
       do
       :: reports_taken[0] < made[0] -> take_report()
       :: else -> break
       od;
#endif
       frozen[AREA(0, 0)] = 1;
       frozen[AREA(0, 1)] = 1;
#if !defined(COLLECT_BEFORE_FREEZE) && !defined(NO_COLLECT)
       do
       :: reports_taken[0] < made[0] -> take_report()
       :: else -> break
       od;
#endif
       do
       :: d_step { moved = floor[0] != done[AREA(0, 0)]; floor[0] = done[AREA(0, 0)] }
          d_step { moved = moved || floor[1] != done[AREA(0, 1)]; floor[1] = done[AREA(0, 1)] }
          if
          :: moved
          :: !moved -> break
          fi
       od;
       moved = 0;
       d_step {
           down = 1;
           judge(0);
           judge(1);
           judge(2);
           lock = 0
       }
       /* The successor. What it waits for the lost worker to leave alone is the subject of takeover.pml. */
       d_step { !lock -> gone[0] = 1 }
       d_step {
           !lock ->
           for (lane : 0 .. LANES - 1) {
               taken[AREA(1, lane)] = floor[lane];
               done[AREA(1, lane)] = floor[lane]
           }
           lane = 0;
           floor[0] = 0;
           floor[1] = 0;
           current = 1;
           down = 0
       }
    :: skip
    fi
}

/* Waits for one ticket. The order of its loads is the one of takeover.pml. */
proctype Waiter(byte id) {
    byte w;
    bit ok;
again:
    w = current;
    if
    :: done[AREA(w, LANE_OF(id))] >= SEQ_OF(id)
    :: else -> goto failed
    fi;
    ok = !frozen[AREA(w, LANE_OF(id))];
failed:
    if
    :: last_failed[LANE_OF(id)] >= SEQ_OF(id)
    :: d_step { last_failed[LANE_OF(id)] < SEQ_OF(id) && ok -> tell_ok(id) }; goto out
    :: last_failed[LANE_OF(id)] < SEQ_OF(id) && !ok -> goto not_yet
    fi;
    atomic {
        !lock ->
        if
        :: verdict[id] != NONE -> goto out
        :: verdict[id] == NONE && REACHED(LANE_OF(id)) >= SEQ_OF(id) -> d_step { tell_ok(id) }; goto out
        :: else
        fi
    }
not_yet:
    ok = 0;
    (done[AREA(w, LANE_OF(id))] >= SEQ_OF(id) && !frozen[AREA(w, LANE_OF(id))]) || w != current || verdict[id] != NONE;
    goto again;
out:
    atomic { w = 0; ok = 0 }
}

init {
    byte id;
    atomic {
        run Supervisor();
        run Collector();
        run Lane(0, 0);
        run Lane(0, 1);
        run Successor(1, 0);
        run Successor(1, 1);
#ifdef MAD
        do
        :: id < IDS - 1 -> id++
        :: break
        od;
        run Liar(id);
        id = 0;
#endif
        do
        :: id < IDS - 1 -> id++
        :: break
        od;
        run Waiter(id)
    }
}
