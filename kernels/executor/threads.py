# SPDX-License-Identifier: BSD-3-Clause
"""The parts of one launch on several threads: a pool of workers that responds within a microsecond.

Note [pool]
A pool is a block of words, with each word that changes on its own cache line. The caller, which runs a launch of
several parts, publishes it as a ticket: one word of (generation, end of the parts, first part). It takes parts from the
front and workers take them from the end, so that each CPU finds more of its earlier results in its own cache. A part is
taken by exchanging the ticket for one without that part. So no part is taken from a ticket that is used up or replaced,
and the words that describe a launch do not change until its parts are done.

The caller never waits for a worker to wake up, only for parts that a worker has begun: on a busy machine it runs all
of them itself. Workers look for work for 200 microseconds and then sleep. One caller at a time owns the pool; a second
one runs its parts by itself.

When other programs keep the CPUs busy, a worker may be suspended in the middle of a part, for milliseconds. After such
a wait the caller does not use the pool for eight times as long as it has waited, or for twice the last such pause if
that was recent. So waiting takes at most a ninth of the time.
"""

from .machine import (
    Word,
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
    ROW_ARGUMENTS,
    ROW_KERNEL,
    ROW_LENGTH,
    ROW_PARTS,
    ROW_WORDS,
    SLEEPERS,
    STOP,
    TICKET,
    WORD_BYTES,
)

# A ticket: the first part that is left in the low bits, the end of the parts above it, the generation above that.
_NUMBER_BITS = 20
_NUMBER = (1 << _NUMBER_BITS) - 1
_ONE_FROM_END = 1 << _NUMBER_BITS
_GENERATION_BIT = 2 * _NUMBER_BITS
_GENERATIONS = (1 << 22) - 1
_LOOKS = 64  # between two looks at the clock, and before a waiting caller yields its CPU
_AWAKE_NS = 200_000  # without work, before a worker sleeps; waking it takes 5 us, and 50 us until it works
# A caller that waits longer than this, and twice as long as its own work took, does not use the pool for a while.
_PATIENCE_NS = 20_000
_ALONE, _MOST_ALONE_NS = 8, 250_000_000  # the pause: times the wait, and at most


def work(pool: Word) -> None:
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
                run_part(pool[LAUNCH_ROWS], pool[LAUNCH_ARGUMENTS], end - 1)
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
            lock(pool + WORD_BYTES * MUTEX)
            add_word(pool, SLEEPERS, 1)
            # A caller looks for sleepers after it has published its ticket: one of the two sees the other.
            if load_word(pool, TICKET) == ticket and load_word(pool, STOP) == 0:
                wait_for(pool + WORD_BYTES * CONDITION, pool + WORD_BYTES * MUTEX)
            add_word(pool, SLEEPERS, -1)
            unlock(pool + WORD_BYTES * MUTEX)
            looks = 0
            idle_ns = now_ns()


def run_parts(pool: Word, rows: Word, arguments: Word) -> None:
    """Run the parts that begin with the first of `rows` on all threads of a pool."""
    parts = rows[ROW_PARTS]
    started_ns = now_ns()
    owned = parts <= _NUMBER and exchange_word(pool, OWNER, 0, 1)
    if owned and started_ns < pool[RESUME_NS]:
        store_word(pool, OWNER, 0)
        owned = False
    if not owned:
        for part in range(parts):
            run_part(rows, arguments, part)
        return
    pool[LAUNCH_ROWS] = rows
    pool[LAUNCH_ARGUMENTS] = arguments
    pool[LAUNCH_CONTROL] = read_control()
    store_word(pool, DONE, 0)
    generation = ((load_word(pool, TICKET) >> _GENERATION_BIT) + 1) & _GENERATIONS
    store_word(pool, TICKET, (generation << _GENERATION_BIT) + (parts << _NUMBER_BITS))
    if load_word(pool, SLEEPERS) > 0:
        lock(pool + WORD_BYTES * MUTEX)
        wake_all(pool + WORD_BYTES * CONDITION)
        unlock(pool + WORD_BYTES * MUTEX)
    while True:
        ticket = load_word(pool, TICKET)
        part = ticket & _NUMBER
        if part >= (ticket >> _NUMBER_BITS) & _NUMBER:
            break
        if exchange_word(pool, TICKET, ticket, ticket + 1):
            run_part(rows, arguments, part)
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


def run_part(rows: Word, arguments: Word, part: Word) -> None:
    """Call the kernels of one part of a launch."""
    length = rows[ROW_LENGTH]
    for i in range(part * length, (part + 1) * length):
        row = rows + WORD_BYTES * ROW_WORDS * i
        call_kernel(row[ROW_KERNEL], arguments + WORD_BYTES * row[ROW_ARGUMENTS])
