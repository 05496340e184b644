# SPDX-License-Identifier: BSD-3-Clause
"""Traps of state: a function of x and a change before each of its calls, followed accelerated and plain."""

import numpy as np
from worlds import follow, pick

X = np.array([1.0, -2.0, 3.0])
CHANGES = "which it reads, changes from call to call"  # the warning where each state needs a trace of its own
OWN_CHANGE = "which it also reads"  # the warning where the function changes what it reads

DRAWS = "it draws from .*, which a replay would not do"


class Traps(dict):
    """Traps by name: functions that return the function to accelerate, and what to do before each call."""

    def trap(self, make=None, **options):
        """Add a trap; options are those of worlds.follow()."""
        if make is None:
            return lambda make: self.trap(make, **options)
        assert make.__name__ not in self
        self[make.__name__] = (make, options)
        return make

    def follow(self, name):
        """Compare the accelerated function of a trap with the plain one over calls between which its state changes."""
        make, options = self[name]

        def world(accelerate):
            plain, change = make()
            accelerated = accelerate(plain)

            def call(n):
                change(n)
                try:
                    return accelerated(X)
                finally:
                    getattr(change, "undo", lambda: None)()

            return call

        follow(world, **{"audit": False, **options})


class Thing:
    """An object with attributes."""


class Obj:
    """An object with one attribute."""

    def __init__(self, k):
        self.k = k


def rates(n):
    """Return a number that changes every three calls."""
    return pick(n, 1.0, 2.0, 5.0)


def setting(owner, name, *values):
    """Return a change that sets an attribute, to the rates if no values are given."""
    return lambda n: setattr(owner, name, pick(n, *values) if values else rates(n))


def toggling(owner, name="w", value=5.0):
    """Return a change that sets an attribute and deletes it in turn."""

    def change(n):
        if pick(n, False, True):
            setattr(owner, name, value)
        elif name in vars(owner):
            delattr(owner, name)

    return change


def patching(owner, name, *values):
    """Return a change that gives an attribute its own value and others in turn, for one call each time."""
    own = getattr(owner, name)

    def change(n):
        setattr(owner, name, pick(n, own, *values))

    change.undo = lambda: setattr(owner, name, own)
    return change
