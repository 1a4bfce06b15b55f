/* SPDX-License-Identifier: Apache-2.0 */
/* Deadlines and stuck workers: what the supervisor measures, when it looks, whom it blames.
 * docs/protocol.md explains it; model.sh gives the mutations that must fail.
 *
 * Lane 0 has requests 1 and 2, lane 1 has one; request 1 of lane 0 waits for that one. A worker may be stopped, and may
 * go on later; a request may hang or be refused. The application may be held up between any two steps, for as long as
 * it likes. Time is counted in ticks: a worker that is not stopped, with a request that does not hang, needs less than
 * LIMIT of them; a request or an answer that is late by LIMIT is a stuck worker. PING: only the answers to pings are
 * looked at, otherwise only the requests. */

#define LANES 2
#define LENGTH(lane) (2 - (lane))
#define LIMIT 2
#define LOSSES 2        /* the worker after these is sound */
#define NONE 0
#define REFUSED 1
#define LATE 2          /* BH_E_DEADLINE */
#define LOST 3
#define NUMBER(lane, seq) ((lane) * 2 + (seq) - 1)

byte tail[LANES];
byte taken[LANES];
byte done[LANES];
bit report[LANES];
bit ping, pong;
bit wants_tick;
bit poked;

/* The supervisor's. */
bit armed;
bit ticked;             /* time has passed since it last looked */
byte head[LANES];       /* the request whose time it counts, 0 for none */
byte age[LANES];        /* since it first saw that this could run */
byte ping_age;
bit pinged;             /* and no answer seen */
byte losses;
byte verdict[4];

/* What really happened. */
bit stopped;
bit for_good;
bit hung[LANES];
byte true_age[LANES];   /* since the head could run */
bit late[LANES];        /* that reached LIMIT */
byte true_ping_age;
bit excuse;             /* the present worker has been late */

#define SEQ(lane) (done[lane] + 1)
#define QUEUED(lane) (done[lane] < tail[lane])
#define CAN_RUN(lane) (QUEUED(lane) && ((lane) == 1 || done[0] > 0 || done[1] > 0))
/* It is the worker's turn. */
#define DUE(lane) (CAN_RUN(lane) && !report[lane])
#define PONG_DUE (ping != pong)
/* A sound worker has done its part before time goes on. */
#define PUNCTUAL(lane) (stopped || hung[lane] || !DUE(lane) || true_age[lane] + 1 < LIMIT)
#define PONG_PUNCTUAL (stopped || !PONG_DUE || true_ping_age + 1 < LIMIT)
#define COUNTS(lane) (DUE(lane) && true_age[lane] < LIMIT)
#define OUTSTANDING (QUEUED(0) || QUEUED(1))
#ifdef PING
#define PINGS (pinged -> ping_age < LIMIT : OUTSTANDING && !ticked)
#else
#define PINGS false
#endif
#define MEASURES(lane) (head[lane] != 0 && age[lane] < LIMIT)

inline pass(lane) {
    if
    :: COUNTS(lane) -> true_age[lane]++; late[lane] = true_age[lane] >= LIMIT; excuse = excuse || late[lane]
    :: else
    fi;
    if
    :: MEASURES(lane) -> age[lane]++
    :: else
    fi
}

proctype Time() {
end:
    do
    :: d_step {
           armed && PUNCTUAL(0) && PUNCTUAL(1) && PONG_PUNCTUAL &&
           (COUNTS(0) || COUNTS(1) || MEASURES(0) || MEASURES(1) || PINGS) ->
           pass(0);
           pass(1);
           if
           :: PONG_DUE && true_ping_age < LIMIT -> true_ping_age++; excuse = excuse || true_ping_age >= LIMIT
           :: else
           fi;
           if
           :: pinged && ping_age < LIMIT -> ping_age++
           :: else
           fi;
           ticked = 1
       }
    od
}

/* The head has changed. */
inline renew(lane) {
    true_age[lane] = 0;
    late[lane] = 0;
    hung[lane] = 0
}

proctype Worker(byte lane) {
end:
    do
    :: d_step { !stopped && taken[lane] < tail[lane] && taken[lane] == done[lane] -> taken[lane]++ }
    :: d_step {
           !stopped && taken[lane] > done[lane] && CAN_RUN(lane) && !hung[lane] && !report[lane] ->
           done[lane]++;
           renew(lane);
           /* What waits for it can run from now on. */
           if
           :: lane == 1 -> renew(0)
           :: else
           fi
       }
#ifndef PING
    :: d_step {
           !stopped && taken[lane] > done[lane] && CAN_RUN(lane) && !hung[lane] && !report[lane] &&
           verdict[NUMBER(lane, SEQ(lane))] == NONE && lane == 1 ->
           report[lane] = 1;
           poked = 1
       }
    :: d_step {
           !stopped && taken[lane] > done[lane] && CAN_RUN(lane) && !hung[lane] && !report[lane] && losses < LOSSES &&
           verdict[NUMBER(lane, SEQ(lane))] == NONE ->
           hung[lane] = 1
       }
#endif
    od
}

/* A thread of its own: answers, unless all of the worker is stopped. */
proctype Answerer() {
end:
    do
    :: d_step { !stopped && PONG_DUE -> pong = ping; true_ping_age = 0 }
    :: d_step { !stopped && losses < LOSSES -> stopped = 1 }
    :: d_step { !stopped && losses < LOSSES -> stopped = 1; for_good = 1 }
    :: d_step { stopped && !for_good -> stopped = 0 }
    od
}

proctype Submitter() {
    byte lane, i;
    for (i : 1 .. 3) {
        lane = i == 1;
        d_step {
            if
            :: !QUEUED(lane) -> renew(lane)
            :: else
            fi;
            tail[lane]++
        }
        d_step {
            if
            :: !wants_tick -> wants_tick = 1; poked = 1
            :: else
            fi
        }
    }
    lane = 0;
    i = 0
}

inline record(lane, seq, what) {
    assert(verdict[NUMBER(lane, seq)] == NONE);
#ifdef FORBIDDEN
    assert(what != FORBIDDEN);
#endif
    verdict[NUMBER(lane, seq)] = what
}

inline collect(lane) {
    if
    :: report[lane] ->
        record(lane, SEQ(lane), REFUSED);
        report[lane] = 0;
        true_age[lane] = 0;
        late[lane] = 0;
#ifndef KEEP_AGE_OF_REFUSED
        age[lane] = 0
#endif
    :: else
    fi
}

/* The worker is lost. One request may be to blame; it is, if it is still not done. */
inline judge(lane) {
    collect(lane);
    if
    :: taken[lane] > done[lane] && verdict[NUMBER(lane, SEQ(lane))] == NONE ->
        if
#ifdef BLAME_ANY
        :: blame_lane == lane && blamed != 0 ->
#else
        :: blame_lane == lane && blamed == SEQ(lane) ->
#endif
            assert(late[lane]);
            record(lane, SEQ(lane), LATE)
        :: else ->
            if
            :: lane == 0 -> record(lane, SEQ(lane), LOST) /* the one of lane 1 may be sent again */
            :: else
            fi
        fi
    :: else
    fi;
    /* The successor takes from there. */
    taken[lane] = done[lane];
    renew(lane);
#ifndef KEEP_AGE
    head[lane] = 0;
    age[lane] = 0;
#endif
}

inline lose() {
    assert(excuse);
    excuse = 0;
    losses++;
    judge(0);
    judge(1);
    pong = ping;
    pinged = 0;
    ping_age = 0;
    true_ping_age = 0;
    stopped = 0;
    for_good = 0;
    blamed = 0;
    blame_lane = 0
}

/* Looks at one lane. The clock comes first: what is looked at afterwards may be younger, never older. */
inline look(lane) {
#ifdef COLLECT_BEFORE_CLOCK
    d_step { collect(lane) }
    expired = age[lane] >= LIMIT;
#else
    expired = age[lane] >= LIMIT;
    d_step {
#ifndef KEEP_AGE_OF_REFUSED
        expired = expired && !report[lane];
#endif
        collect(lane)
    }
#endif
#ifdef DONE_BEFORE_CLOCK
    seen = SEQ(lane);
    expired = age[lane] >= LIMIT;
    d_step {
#else
    d_step {
        seen = SEQ(lane);
#endif
        if
#ifdef CLAIMED_ONLY
        :: taken[lane] == done[lane] || !CAN_RUN(lane) -> head[lane] = 0; age[lane] = 0
        :: taken[lane] != done[lane] && CAN_RUN(lane) && head[lane] != seen ->
#elif defined(FROM_CLAIM)
        :: taken[lane] == done[lane] && !CAN_RUN(lane) -> head[lane] = 0; age[lane] = 0
        :: (taken[lane] != done[lane] || CAN_RUN(lane)) && head[lane] != seen ->
#else
        :: !CAN_RUN(lane) -> head[lane] = 0; age[lane] = 0
        :: CAN_RUN(lane) && head[lane] != seen ->
#endif
            head[lane] = seen;
            age[lane] = 0
        :: else ->
            if
            :: expired -> blamed = seen; blame_lane = lane
            :: else
            fi
        fi;
        expired = 0;
        seen = 0
    }
    if
    :: blamed != 0 ->
        /* Whoever is stopped may go on, and be done, before it is frozen. */
        d_step {
            lose()
        }
    :: else
    fi
}

/* A ping's time is counted from when the worker can have seen it. */
inline send_ping() {
#ifdef STAMP_FIRST
    d_step { ping_age = 0; pinged = 1 }
    d_step { ping = !ping; true_ping_age = 0 }
#else
    d_step { ping = !ping; true_ping_age = 0 }
    d_step { ping_age = 0; pinged = 1 }
#endif
}

inline look_for_pong() {
#ifdef PONG_FIRST
    no_answer = PONG_DUE;
    expired = ping_age >= LIMIT;
#else
    expired = ping_age >= LIMIT;
    no_answer = PONG_DUE;
#endif
    if
    :: !no_answer -> pinged = 0
    :: no_answer && expired -> d_step { lose() }
    :: else
    fi;
    d_step { expired = 0; no_answer = 0 }
}

/* Looks now and then while anything is outstanding, and sleeps otherwise. */
proctype Supervisor() {
    byte blamed, blame_lane, seen;
    bit expired, no_answer;
end:
    do
    :: d_step { !armed && poked -> poked = 0; armed = 1; ticked = 1 }
    :: d_step { armed && (ticked || poked) -> ticked = 0; poked = 0 }
#ifndef PING
       look(0);
       look(1);
#endif
#ifdef PING
       if
       :: pinged -> look_for_pong()
       :: !pinged && OUTSTANDING -> send_ping()
       :: else
       fi;
#endif
       if
       :: OUTSTANDING
       :: else ->
#ifdef LOOK_BEFORE_CLEAR
           wants_tick = 0;
           armed = 0
#else
           wants_tick = 0;
           if
           :: OUTSTANDING -> d_step { wants_tick = 1; ticked = 1 }
           :: else -> armed = 0
           fi
#endif
       fi
    od
}

/* Everything comes to an end. */
proctype Checker() {
    done[0] == LENGTH(0) && done[1] == LENGTH(1)
}

init {
    atomic {
        run Time();
        run Worker(0);
        run Worker(1);
        run Answerer();
        run Submitter();
        run Supervisor();
        run Checker()
    }
}
