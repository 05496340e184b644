# SPDX-License-Identifier: BSD-3-Clause
"""Users' programs that write, uncompiled and accelerated, beside NumPy: results, arguments, and replays."""

import warnings

import numpy as np
from users_programs import PROGRAMS
from write_oracle import CALLS, compare, plain

import tracejit as tj


def check_program(name: str) -> None:
    """Compare a program of ndarrays, then of dlarrays, with NumPy; it is replayed from the third call on."""
    program, draw = PROGRAMS[name]
    for box in (None, tj.dlarray):
        accelerated = tj.dlaccelerate(program)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for call in range(CALLS):
                ways = [("accelerated", accelerated)]
                if call == 0:
                    ways += [("dlfeval", lambda *args: tj.dlfeval(program, *args))] + [("eager", program)] * (
                        box is not None
                    )
                for how, function in ways:
                    expected = called(program, draw, call, None)
                    compare(how, call, called(function, draw, call, box), expected, [], 1e-9)
        assert accelerated.stats.hits == CALLS - 2, accelerated.explain()


def called(function, draw, call, box):
    """Call a function with arguments that are drawn anew; return its result and what the arguments hold afterwards."""
    given = draw(np.random.default_rng(call))
    arguments = tj.tree.map(lambda leaf: box(leaf) if box and isinstance(leaf, np.ndarray) else leaf, given)
    result = function(*arguments)
    return result, [np.asarray(leaf) for leaf in map(plain, tj.tree.flatten(arguments)[0])]
