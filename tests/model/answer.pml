/* SPDX-License-Identifier: Apache-2.0 */
/* Answers that stay as they were told, whatever a mad worker writes: its done goes up and down as it likes. What has
 * been told is kept in `answered`. docs/protocol.md explains it; model.sh gives the mutations that must fail. */

#define REQUESTS 2
#define ASKERS 2

#define NONE 0
#define LOST 1
#define CANCELLED 2

/* The areas, one for each worker. The first worker is mad, its successor is not. */
byte done[2];
bit frozen[2];

/* Private to the application. */
bit lock;
byte epoch;
byte current;
bit down;
byte floor;
byte verdict[REQUESTS + 1];
byte last_failed;
/* One word: a position, and the epoch in which the worker became the current one that it belongs to. */
byte answered;
byte era;

/* What really happened. */
bit told_ok[REQUESTS + 1];
bit resent[REQUESTS + 1];    /* it is sent again, and not yet done */

inline tell_ok(seq) {
    assert(verdict[seq] == NONE);
    assert(!resent[seq]);
    told_ok[seq] = 1
}

inline record(seq, what) {
    assert(!told_ok[seq]);
    assert(verdict[seq] == NONE);
    verdict[seq] = what
}

inline raise(what, to) {
    if
    :: what < to -> what = to
    :: else
    fi
}

proctype Mad() {
    do
    :: done[0] = 0
    :: done[0] = REQUESTS
    :: current == 1 -> break
    od
}

proctype Successor() {
end:
    do
    :: d_step { current == 1 && done[1] < REQUESTS -> done[1]++; resent[done[1]] = 0 }
    od
}

/* Raises `answered`, by compare-and-swap. An asker that is late finds another era and raises nothing. */
inline raise_answered() {
    d_step {
        ok = 1;
        if
#ifdef NO_ERA
        :: true -> raise(answered, seq)
#else
        :: era == e -> raise(answered, seq)
        :: else -> ok = 0
#endif
        fi
    }
}

proctype Asker(byte seq) {
    byte e, w;
    bit ok;
again:
    ok = 0;
    e = epoch;
    w = current;
#ifdef VERDICT_FIRST
    if
    :: last_failed >= seq -> goto locked
    :: else
    fi;
#endif
    if
#ifdef NO_ERA
    :: answered >= seq -> ok = 1
#else
    :: answered >= seq && era == e ->
#ifdef ANSWERED_ALONE
        if
        :: last_failed >= seq -> goto locked
        :: d_step { last_failed < seq -> tell_ok(seq) }; goto out
        fi
#else
        ok = 1
#endif
#endif
    :: else ->
        if
        :: done[w] >= seq -> ok = 1
        :: else -> goto again
        fi;
#ifndef RAISE_LATE
        raise_answered();
        if
        :: ok
        :: else -> goto again
        fi
#endif
    fi;
    if
    :: frozen[w] -> goto locked
    :: else
    fi;
#ifndef VERDICT_FIRST
    if
    :: last_failed >= seq -> goto locked
    :: else
    fi;
#endif
#ifdef RAISE_LATE
    if
    :: d_step { epoch == e -> tell_ok(seq) }
    :: else -> goto again
    fi;
    raise_answered();
#else
    if
    :: d_step { epoch == e -> tell_ok(seq) }
    :: else -> goto again
    fi;
#endif
    goto out;
locked:
    atomic {
        !lock ->
        if
        :: verdict[seq] != NONE -> goto out
        :: verdict[seq] == NONE && (down -> floor : answered) >= seq -> d_step { tell_ok(seq) }; goto out
        :: else -> goto again
        fi
    }
out:
    atomic { e = 0; w = 0; ok = 0 }
}

/* Takes back request 1. The mad worker has not claimed it, and may say that it is done. */
proctype Canceller() {
    d_step { !lock -> lock = 1 }
#ifdef LOOK_BEFORE_RAISE
    if
    :: down || answered >= 1 || verdict[1] != NONE
    :: else ->
        last_failed = (last_failed < 1 -> 1 : last_failed);
        d_step { record(1, CANCELLED) }
    fi;
#else
    if
    :: down || verdict[1] != NONE
    :: else ->
        last_failed = (last_failed < 1 -> 1 : last_failed);
        if
#ifndef BLIND_CANCEL
        :: answered >= 1
#endif
        :: d_step {
#ifdef BLIND_CANCEL
               true ->
#else
               answered < 1 ->
#endif
               record(1, CANCELLED)
           }
        fi
    fi;
#endif
    lock = 0
}

inline judge(seq) {
    if
    :: seq <= floor || verdict[seq] != NONE
    :: else ->
        assert(!told_ok[seq]);
        if
        :: repeat -> resent[seq] = 1
        :: !repeat ->
            raise(last_failed, seq);
            record(seq, LOST)
        fi
    fi
}

proctype Supervisor() {
    byte f;
    bit repeat;
    if
    :: repeat = 0
    :: repeat = 1
    fi;
    d_step { !lock -> lock = 1; epoch++ }
    frozen[0] = 1;
    f = done[0];
#ifndef NO_FLOOR
    d_step { raise(f, answered) }
#endif
    d_step { floor = f; judge(1); judge(2); down = 1; lock = 0 }
    d_step {
        !lock ->
        done[1] = floor;
        answered = floor;
        epoch++;
        era = epoch;
        current = 1;
        down = 0
    }
}

init {
    byte i, seq = 1;
    atomic {
        run Mad();
        run Successor();
        run Supervisor();
        run Canceller();
        for (i : 1 .. ASKERS) {
            if
            :: seq = 1
            :: seq = 2
            fi;
            run Asker(seq)
        }
    }
}
