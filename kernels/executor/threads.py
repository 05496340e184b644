# SPDX-License-Identifier: BSD-3-Clause
"""Parts of one launch on several threads: a pool of workers that is at hand within a microsecond.

Note [pool]
A pool is a block of words, each of the changing ones on a cache line of its own. Who runs a launch of several parts
publishes it as a ticket, one word of (generation, end of the parts, first part), and then takes parts from the front,
while workers take them from the end: so a CPU finds more of what it wrote before in its own cache. A part is taken
by exchanging the ticket for one without it. So nobody takes from a ticket that is used up or was replaced
meanwhile, and what a part reads of the launch stays as it is until the part is done.

The caller never waits for a worker to wake up, only for parts that a worker has begun: on a busy machine it runs all
of them itself. Workers look for work for some tens of microseconds and then sleep. One caller at a time owns the
pool; another one that comes meanwhile runs its parts by itself.

Where something else keeps the CPUs busy, a worker may be suspended in the middle of a part, for milliseconds. After
such a wait the caller leaves the pool alone for eight times as long as it has waited, and for twice as long as the last
time if that was not long ago: so waiting takes a ninth of the time at most.
"""

from .machine import (
    Words,
    add_word,
    call_kernel,
    exchange_word,
    give_way,
    load_word,
    lock,
    now_ns,
    pause,
    read_control,
    set_control,
    store_word,
    unlock,
    wait_for,
    wake_all,
)
from .state import (
    ALONE_NS,
    CONDITION,
    DONE,
    LAUNCH_ARGUMENTS,
    LAUNCH_CONTROL,
    LAUNCH_ROWS,
    MUTEX,
    OWNER,
    RESUME_NS,
    ROW_WORDS,
    SLEEPERS,
    STOP,
    TICKET,
)

_NUMBER_BITS = 20  # of a ticket: the first part that is left; as many again: the end; above: the generation
_NUMBER = (1 << _NUMBER_BITS) - 1
_ONE_FROM_END = 1 << _NUMBER_BITS
_GENERATION_BIT = 2 * _NUMBER_BITS
_GENERATIONS = (1 << 22) - 1
_LOOKS = 64  # between two looks at the clock, or until who waits for a part lets others use the CPU
_AWAKE_NS = 200_000  # without work, until a worker sleeps; to wake it takes 5 us, and 50 until it works
# Who waits longer than this, and twice as long as the own work took, leaves the pool alone for a while.
_PATIENCE_NS = 20_000
_ALONE, _MOST_ALONE_NS = 8, 250_000_000  # times what was waited


def work(pool: Words) -> None:
    """Take parts of launches until the pool stops."""
    looks = 0
    idle_ns = now_ns()
    while load_word(pool, STOP) == 0:
        ticket = load_word(pool, TICKET)
        end = (ticket >> _NUMBER_BITS) & _NUMBER
        if ticket & _NUMBER < end:
            if exchange_word(pool, TICKET, ticket, ticket - _ONE_FROM_END):
                control = read_control()
                set_control(pool[LAUNCH_CONTROL])
                rows = pool[LAUNCH_ROWS]
                length = rows[3]
                for i in range((end - 1) * length, end * length):
                    row = rows + 8 * ROW_WORDS * i
                    call_kernel(row[0], pool[LAUNCH_ARGUMENTS] + 8 * row[1])
                set_control(control)
                add_word(pool, DONE, 1)
            looks = 0
            idle_ns = now_ns()
        elif looks < _LOOKS:
            looks += 1
            pause()
        elif now_ns() - idle_ns < _AWAKE_NS:
            looks = 0
        else:
            lock(pool + 8 * MUTEX)
            add_word(pool, SLEEPERS, 1)
            # Who publishes a ticket looks for sleepers after that: one of the two sees the other.
            if load_word(pool, TICKET) == ticket and load_word(pool, STOP) == 0:
                wait_for(pool + 8 * CONDITION, pool + 8 * MUTEX)
            add_word(pool, SLEEPERS, -1)
            unlock(pool + 8 * MUTEX)
            looks = 0
            idle_ns = now_ns()


def run_parts(pool: Words, rows: Words, arguments: Words) -> None:
    """Run parts on all threads of a pool.

    The third word of the first of `rows` says how many there are, the fourth how many rows each of them has.
    """
    parts, length = rows[2], rows[3]
    started_ns = now_ns()
    owned = parts <= _NUMBER and exchange_word(pool, OWNER, 0, 1)
    if owned and started_ns < pool[RESUME_NS]:
        store_word(pool, OWNER, 0)
        owned = False
    if not owned:
        for i in range(parts * length):
            row = rows + 8 * ROW_WORDS * i
            call_kernel(row[0], arguments + 8 * row[1])
        return
    pool[LAUNCH_ROWS] = rows
    pool[LAUNCH_ARGUMENTS] = arguments
    pool[LAUNCH_CONTROL] = read_control()
    store_word(pool, DONE, 0)
    generation = ((load_word(pool, TICKET) >> _GENERATION_BIT) + 1) & _GENERATIONS
    store_word(pool, TICKET, (generation << _GENERATION_BIT) + (parts << _NUMBER_BITS))
    if load_word(pool, SLEEPERS) > 0:
        lock(pool + 8 * MUTEX)
        wake_all(pool + 8 * CONDITION)
        unlock(pool + 8 * MUTEX)
    while True:
        ticket = load_word(pool, TICKET)
        part = ticket & _NUMBER
        if part >= (ticket >> _NUMBER_BITS) & _NUMBER:
            break
        if exchange_word(pool, TICKET, ticket, ticket + 1):
            for i in range(part * length, (part + 1) * length):
                row = rows + 8 * ROW_WORDS * i
                call_kernel(row[0], arguments + 8 * row[1])
            add_word(pool, DONE, 1)
    worked_ns = now_ns()
    looks = 0
    while load_word(pool, DONE) < parts:
        looks += 1
        if looks > _LOOKS:
            give_way()
        else:
            pause()
    done_ns = now_ns()
    waited_ns = done_ns - worked_ns
    if waited_ns > _PATIENCE_NS + 2 * (worked_ns - started_ns):
        alone_ns = pool[ALONE_NS]
        again = started_ns - pool[RESUME_NS] < 4 * alone_ns
        alone_ns = (2 * alone_ns) if again else (alone_ns >> 1)
        pool[ALONE_NS] = min(max(_ALONE * waited_ns, alone_ns), _MOST_ALONE_NS)
        pool[RESUME_NS] = done_ns + pool[ALONE_NS]
    store_word(pool, OWNER, 0)
