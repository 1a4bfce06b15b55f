/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a device: its gate, close, stop, orders and callbacks, each at any moment of the others.
 * docs/protocol.md explains it; model.sh gives the mutations that must fail.
 *
 * The queue has room for one request. One thread submits two and so may have to wait inside the call; others ask about
 * a ticket, ask for a callback, give the worker an order, close the device. The worker may refuse a request, or stop
 * for good. */

#define RUNNING 1
#define STOPPED 2
#define CLOSING 3
#define CLOSED 4

#define NONE 0
#define REFUSED 1
#define ENDED 2         /* by a stop or a close */

#define REQUESTS 2

byte state = RUNNING;
bit id = 1;             /* what a handle is compared with; 0 once nobody may come in */
bit lock;
byte users;

/* Parts of the device: gone once it is taken apart. */
bit whole = 1;
byte tail;
byte done;
bit frozen;
byte floor;
byte report;            /* the request that the worker has refused */
byte order;             /* 1: given, 2: answered */
bit supervised = 1;     /* the supervisor has not ended */

/* Lives on. */
byte verdict[REQUESTS + 1];

/* The dispatcher. */
bit end_dispatcher;
bit dispatcher_ended;
bit callback;           /* one to be run */

/* What really happened. */
bit finished[REQUESTS + 1];
bit told_ok[REQUESTS + 1];
bit accepted;           /* the callback */
byte ran;
bit stuck;              /* the worker, for good */

#define REACHED (frozen -> floor : done)
#define OVER(seq) (verdict[seq] != NONE || REACHED >= (seq))

inline touch() {
    assert(whole)
}

inline tell_ok(seq) {
    assert(verdict[seq] == NONE);
    assert(finished[seq]);
    told_ok[seq] = 1
}

inline record(seq, what) {
    assert(!told_ok[seq]);
    assert(verdict[seq] == NONE);
    verdict[seq] = what
}

#ifdef SUBMIT_AFTER_STOP
#define ACCEPTS (state != CLOSING && state != CLOSED)
#else
#define ACCEPTS (state == RUNNING)
#endif

/* A call that works with the lock held, and waits inside. */
proctype Submitter() {
    byte seq;
    for (seq : 1 .. REQUESTS) {
        d_step { !lock -> lock = 1 }
        if
        :: id == 0 -> lock = 0; goto out
        :: else
        fi;
        if
        :: !(ACCEPTS) -> lock = 0; goto out
        :: else
        fi;
        if
        :: !OVER(tail) ->
            /* No room: waits without the lock. */
            d_step { users++; lock = 0 }
#ifdef LEAVE_BEFORE_LOCK
            d_step { OVER(tail) -> users-- }
            d_step { !lock -> lock = 1 }
#else
            OVER(tail);
            d_step { !lock -> lock = 1 }
            users--;
#endif
            touch();
#ifndef NO_RECHECK
            if
            :: !(ACCEPTS) -> lock = 0; goto out
            :: else
            fi
#endif
        :: else
        fi;
        d_step { touch(); tail++; lock = 0 }
    }
out:
    seq = 0
}

/* A call about a ticket: counted first, looked second. */
proctype Asker(byte seq) {
end:
    tail >= seq;
#ifdef LOOK_THEN_COUNT
    if
    :: id == 0 -> goto store
    :: else -> users++
    fi;
#else
    users++;
    if
    :: id == 0 -> users--; goto store
    :: else
    fi;
#endif
    /* Asks, and sleeps if need be. */
    d_step { OVER(seq) -> touch() }
    d_step {
        touch();
        if
        :: !frozen && done >= seq && verdict[seq] == NONE -> tell_ok(seq)
        :: else
        fi
    }
    users--;
    goto out;
store:
    atomic {
        if
        :: d_step { verdict[seq] == NONE -> tell_ok(seq) }
        :: else
        fi
    }
out:
    seq = 0
}

/* Asks for a callback once request 1 is over. */
proctype Registrar() {
end:
    tail >= 1;
    users++;
    if
    :: id == 0 -> users--
    :: else ->
        d_step {
            touch();
            if
#ifndef RESTART_DISPATCHER
            :: dispatcher_ended
#endif
            :: else -> accepted = 1; callback = 1
            fi
        }
        users--
    fi
}

proctype Dispatcher() {
end:
    do
    :: d_step { callback && OVER(1) -> touch(); callback = 0; ran++ }
#ifdef END_WITH_CALLBACKS
    :: d_step { end_dispatcher -> dispatcher_ended = 1 }; break
#else
    :: d_step { end_dispatcher && !callback -> dispatcher_ended = 1 }; break
#endif
    od
}

/* Has the worker do something and waits for its answer, as a thread that opens a lane does. */
proctype Orderer() {
    d_step { !lock -> lock = 1 }
    if
    :: id == 0 || !(ACCEPTS) -> lock = 0; goto out
    :: else
    fi;
    d_step { touch(); order = 1; users++; lock = 0 }
    order == 2;
    d_step { !lock -> lock = 1 }
    users--;
    d_step { touch(); lock = 0 }
out:
    skip
}

proctype Worker() {
end:
    do
    :: d_step { !stuck && order == 1 && whole -> order = 2 }
    :: d_step { !stuck && done < tail && !frozen && report == 0 -> finished[done + 1] = 1 };
end_done:
       d_step { whole -> done++ }
    :: d_step { !stuck && done < tail && !frozen && report == 0 && finished[done + 1] == 0 -> report = done + 1 };
       /* Until the report is taken. */
end_report:
       d_step { report == 0 && whole -> done++ }
    :: d_step { !stuck -> stuck = 1 }; break
    od
}

/* With the lock: everything that is not over gets its verdict. */
inline end_all() {
#ifdef STOP_UNFROZEN
    floor = done;
#else
    frozen = 1;
    floor = done;
#endif
    d_step {
        if
        :: report != 0 -> record(report, REFUSED); report = 0
        :: else
        fi;
        for (seq : 1 .. REQUESTS) {
            if
            :: seq > floor && seq <= tail && verdict[seq] == NONE -> record(seq, ENDED)
            :: else
            fi
        }
        seq = 0
    }
}

inline take_report() {
    d_step { touch(); record(report, REFUSED); report = 0; lock = 0 }
}

/* Takes reports, stops the device, and on close ends what is left. */
proctype Supervisor() {
    byte seq;
end:
    do
    :: d_step { !lock && report != 0 && !frozen -> lock = 1 }
       take_report()
    :: d_step { !lock && state == RUNNING -> lock = 1 } /* too many losses, say */
       end_all();
       d_step { state = STOPPED; lock = 0 }
    :: state == CLOSING ->
       /* Drains: until nothing is left, or too much time has passed. */
#ifdef BLIND_DRAIN
       OVER(tail) || stuck;
#else
       do
       :: d_step { !lock && report != 0 && !frozen -> lock = 1 }
          take_report()
       :: OVER(tail) && report == 0 -> break
       :: report == 0 && stuck -> break
       od;
#endif
       atomic { !lock -> lock = 1 }
       if
       :: frozen
       :: else -> end_all()
       fi;
       lock = 0;
#ifndef ORDERS_LEFT
       d_step {
           if
           :: order == 1 -> order = 2
           :: else
           fi
       }
#endif
       break
    od;
    atomic { seq = 0; supervised = 0 }
}

proctype Closer() {
    d_step { !lock -> lock = 1 }
#ifdef CLOSE_TWICE
    if
    :: id == 0 -> lock = 0; goto out
    :: else
    fi;
#else
    if
    :: id == 0 || state == CLOSING -> lock = 0; goto out
    :: else
    fi;
#endif
    d_step { state = CLOSING; lock = 0 }
#ifndef ID_BEFORE_VERDICTS
    !supervised;
    end_dispatcher = 1;
    dispatcher_ended;
#endif
    d_step { !lock -> id = 0 }
#ifdef ID_BEFORE_VERDICTS
    !supervised;
    end_dispatcher = 1;
    dispatcher_ended;
#endif
#ifdef USERS_UNLOCKED
    users == 0;
    d_step { assert(whole); whole = 0; state = CLOSED }
#elif defined(HOLD_LOCK)
    d_step { !lock -> lock = 1 }
    users == 0;
    d_step { assert(whole); whole = 0; state = CLOSED; lock = 0 }
#else
    d_step { !lock && users == 0 -> assert(whole); whole = 0; state = CLOSED }
#endif
    /* What was promised was kept. */
    assert(ran == accepted);
out:
    skip
}

init {
    atomic {
        run Supervisor();
        run Dispatcher();
        run Worker();
        run Submitter();
        if
        :: run Asker(1)
        :: run Asker(2)
        fi;
#ifdef TWO_CLOSERS
        run Closer();
#else
        run Registrar();
        run Orderer();
#endif
        run Closer()
    }
}
