/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes that are opened, closed and used again while threads still ask about their tickets, and a loss meanwhile.
 * docs/protocol.md explains it; model.sh gives the mutations that must fail.
 *
 * There is one slot for lanes. Two threads each open a lane, submit one request and close the lane; a third thread each
 * waits for the ticket. Ids of lanes are never used again, positions of the slot go on. */

#define USERS 2
#define FREE 0
#define OPENING 1
#define OPEN 2
#define CLOSED 3

/* The slot. */
byte state;
byte id;               /* of the lane in it, 0 for none */
byte tail;
byte last_failed;
bit ring;              /* it exists */
/* The areas of two workers. */
byte done[2];
bit frozen[2];

/* Private to the application. */
bit lock;
byte ids;              /* given out */
byte current;
bit down;
byte floor;
byte failed[USERS + 1]; /* the store: by id of a lane, the position of the request that failed */

/* Tickets: the number of the thread is its index. */
byte ticket_id[USERS];
byte ticket_seq[USERS];

/* What really happened: by position. */
bit finished[USERS + 1];

#define REACHED (down -> floor : done[current])

#define IDLE (REACHED == tail)
#ifdef REUSE_BUSY
#define USABLE (state == FREE || state == CLOSED)
#else
#define USABLE (state == FREE || (state == CLOSED && IDLE))
#endif

proctype User(byte me) {
    byte mine;
    d_step {
        !lock && USABLE ->
#ifndef NO_OPENING
        state = OPENING;
#endif
        /* Nothing of the lane before is left to do; its tickets no longer lead here. */
        assert(IDLE);
        id = 0
    }
#ifdef EARLY_OPEN
    state = OPEN;
#endif
    /* Makes the ring, with the lock let go. */
    d_step { assert(!ring); ring = 1 }
    d_step {
        !lock ->
        ids++;
        mine = ids;
        id = mine;
#ifdef CLEAR_FAILED
        last_failed = 0;
#endif
#ifdef RESTART_POSITIONS
        tail = 0;
        done[current] = 0;
        last_failed = 0;
#endif
        state = OPEN
    }
    d_step {
        !lock ->
        assert(state == OPEN && id == mine && ring);
        tail++;
        ticket_id[me] = mine;
        ticket_seq[me] = tail
    }
    d_step {
        !lock ->
#ifdef CLOSE_DROPS_ID
        id = 0;
#endif
        ring = 0;
        state = CLOSED
    }
    /* A lane that is closed may also be freed, once it is idle. */
    if
    :: d_step { !lock && state == CLOSED && IDLE -> state = FREE }
    :: skip
    fi;
    mine = 0
}

/* Looks at lanes as whoever walks over all of them does. */
proctype Walker() {
    d_step {
        !lock ->
        assert(state != OPEN || ring)
    }
}

/* Executes, or has the request refused: the verdict is in the store before done passes. */
proctype Worker(byte w) {
    {
end:
        do
        :: atomic {
               current == w && !down && done[w] < tail && !lock ->
               if
               :: finished[done[w] + 1] = 1
               :: d_step {
                      finished[done[w] + 1] == 0 ->
                      if
                      :: ticket_seq[0] == done[w] + 1 -> failed[ticket_id[0]] = ticket_seq[0]
                      :: else -> failed[ticket_id[1]] = ticket_seq[1]
                      fi;
                      last_failed = (last_failed < done[w] + 1 -> done[w] + 1 : last_failed)
                  }
               fi
           }
           done[w] = done[w] + 1
        od
    } unless { w < current }
}

proctype Waiter(byte me) {
    byte w;
    bit ok;
    ticket_id[me] != 0;
    /* Finds the lane by its id; without a lane, the store alone has the answer. */
    if
    :: id == ticket_id[me]
    :: d_step {
           id != ticket_id[me] ->
           assert(failed[ticket_id[me]] == ticket_seq[me] || finished[ticket_seq[me]])
       }
       goto out
    fi;
again:
    ok = 0;
    w = current;
    if
    :: done[w] >= ticket_seq[me] -> ok = 1
    :: else -> goto not_yet
    fi;
    ok = !frozen[w];
    if
    :: last_failed >= ticket_seq[me] -> goto store
    :: else
    fi;
    if
    :: d_step { ok -> assert(finished[ticket_seq[me]] && failed[ticket_id[me]] == 0) }; goto out
    :: else
    fi;
store:
    atomic {
        !lock ->
        if
#ifdef ASK_BY_SLOT
        :: id != 0 && failed[id] == ticket_seq[me] -> goto out
        :: else ->
#else
        :: failed[ticket_id[me]] == ticket_seq[me] -> goto out
        :: else ->
#endif
            if
            :: REACHED >= ticket_seq[me] ->
                d_step { assert(finished[ticket_seq[me]] && failed[ticket_id[me]] == 0) };
                goto out
            :: else
            fi
        fi
    }
not_yet:
    (done[w] >= ticket_seq[me] && !frozen[w]) || w != current;
    goto again;
out:
    atomic { w = 0; ok = 0 }
}

proctype Supervisor() {
    if
    :: d_step { !lock -> lock = 1; frozen[0] = 1 }
       d_step { floor = done[0]; down = 1; lock = 0 }
       d_step {
           !lock ->
#ifdef PUBLISH_OPEN_ONLY
           done[1] = (state == OPEN || (state == CLOSED && floor < tail) -> floor : 0);
#else
           done[1] = floor;
#endif
           current = 1;
           down = 0
       }
    :: skip
    fi
}

init {
    atomic {
        run Walker();
        run Supervisor();
        run Worker(0);
        run Worker(1);
        run User(0);
        run User(1);
        run Waiter(0);
        run Waiter(1)
    }
}
