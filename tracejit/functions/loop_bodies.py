# SPDX-License-Identifier: BSD-3-Clause
"""Recorded steps of a loop become the body of one node.

Note [kept loops]
A step is recorded as everything is, at the end of the graph. If two consecutive steps recorded the same, on the same
arrays from outside, the loop is kept: the nodes of both are taken out of the graph again, and become the body of one
node. A step that does not repeat shows it in the second recording, just as a trace does that the next call does not
confirm. Some steps cannot be repeated by a body at all: those that let Python decide by a value of their own, or write
into arrays that are not theirs. Then the nodes stay, and the loop goes on step by step, which is slower but right.
So do steps of a mapped function that draw random numbers, which differ between observations.

A draw of random numbers is an op of a generator's state, at an offset. In a body, the state is one more carry, which
each step moves on.
"""

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tracejit.errors import BoundsError
from tracejit.functions.rng import Generator
from tracejit.ir import Builder, Graph, Node, Value
from tracejit.ops import Op
from tracejit.ops.batch import drawn
from tracejit.passes.graph.bodies import Body
from tracejit.passes.graph.branches import COND, WHILE
from tracejit.passes.graph.scan import SCAN
from tracejit.record import monitor
from tracejit.record.guards import same
from tracejit.record.memory import BegunWrite, Private
from tracejit.record.recorder import Recorder, user_location
from tracejit.record.views import LateValue
from tracejit.util.memory import collector_paused
from tracejit.util.named_tuples import NamedTuple


class Step(NamedTuple):
    """A recorded step.

    first, start, end   the numbers of its first node, of the first one behind those that make its inputs, and of the
                        one after the last
    inputs              the carry and the parts
    outputs             the carry and the results
    bases, ends         the blocks that were drawn before it and after it, by generator
    hindrance           why it cannot be a body, None if it can
    made                the generators that the function has made, with their states before the step
    """

    first: int
    start: int
    end: int
    inputs: Sequence[Value]
    outputs: Sequence[Value]
    bases: dict[Generator, int]
    ends: dict[Generator, int]
    hindrance: str | None
    made: Sequence[tuple[Generator, np.ndarray]] = ()

    @property
    def writes(self) -> bool:
        """True if what it writes is why."""
        return self.hindrance == WRITES

    @property
    def draws(self) -> bool:
        """True if it draws random numbers."""
        return self.bases != self.ends


WRITES = "the step writes into an array that was made outside it"


class EndedBody:
    """The stand-in for the recorder of arrays that a body has made, which have no value outside the body."""

    closed = True
    accelerating = True

    def __init__(self, recorder: Recorder, name: str) -> None:
        self.around = weakref.ref(recorder)
        self.name = name


class StepWatch:
    """A watch over the effects of one step: writes, draws and guards.

    Attributes:
        inputs: the carry and the parts, to be set when they are recorded.
        outputs: the carry and the results, to be set when they are known.
        start: the number of the first node behind those that make the inputs.
    """

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.inputs: Sequence[Value] = ()
        self.outputs: Sequence[Value] = ()
        self._bases: dict[Generator, int] = {}
        self._settle()
        self.first = self.start = len(recorder.graph.nodes)
        self._private = [(root, root._data.copy()) for root in recorder.views if type(root._view) is Private]
        self._guards, self._rewritten = len(recorder.guards), len(recorder.rewritten)
        self._generator_draws = recorder.draws_in_steps
        self._bases = _drawn(recorder)
        self._made = [(each, each.advance(0)) for each, draw in recorder.draws.items() if draw is None]

    def _settle(self) -> None:
        """Record the views of the graph so far: those that a step asks for first belong in front of it."""
        for view in [*self.recorder.views]:
            if type(view._value) is LateValue:
                assert view._value.aval

    def step(self, written: list[BegunWrite]) -> Step:
        """Return the step, given the arrays that it wrote, and remove from these the step's own arrays."""
        graph = self.recorder.graph
        nodes = set(graph.nodes[self.first :])
        private = {id(root) for root, _ in self._private}

        def is_own(write: BegunWrite) -> bool:
            if write.before is not None:
                return write.before.node in nodes
            return write.was_private and id(write.root) not in private

        written[:] = [write for write in written if not is_own(write)]
        return Step(
            self.first, self.start, len(graph.nodes), self.inputs, self.outputs, self._bases, _drawn(self.recorder),
            self._hindrance(nodes, written), self._made,
        )  # fmt: skip

    def _hindrance(self, nodes: set[Node], foreign: Sequence[BegunWrite]) -> str | None:
        recorder = self.recorder
        for guard in recorder.guards[self._guards :]:
            if guard.value.node in nodes:
                return f"{guard.what} lets a value of the step decide what Python does"
        if foreign or any(not same(root._data, before) for root, before in self._private):
            return WRITES
        if recorder.draws_in_steps != self._generator_draws:
            return "the step draws from a generator of NumPy's or Python's"
        if any(not same(each.advance(0), state) for each, state in self._made):
            return "the step draws from a generator that was made outside it"
        if recorder.maps and any(node.op.batch is drawn for node in nodes):
            # Repeated for each observation, a body would draw the same numbers for all of them.
            return "the step draws random numbers for each observation of a mapped function"
        if len(recorder.rewritten) > self._rewritten:
            return WRITES
        return None


def _drawn(recorder: Recorder) -> dict[Generator, int]:
    """Return how many blocks were drawn from each generator."""
    return {generator: draw.blocks for generator, draw in recorder.draws.items() if draw is not None}


@contextmanager
def watched(recorder: Recorder) -> Iterator[tuple[StepWatch, list[Step]]]:
    """Watch a step while the block runs; the list then holds it."""
    watch, steps = StepWatch(recorder), list[Step]()
    memories = recorder.memories
    outer, memories.begun = memories.begun, []
    try:
        yield watch, steps
        steps.append(watch.step(memories.begun))
    finally:
        if outer is not None:
            outer += memories.begun
        memories.begun = outer


class _Taken(NamedTuple):
    """A step as a body, with the Values from outside that it reads, and the generators that it draws from."""

    body: Body
    constants: list[Value]
    generators: list[Generator]


class _Taker:
    """The construction of a body from a step.

    Args:
        recorder: of the graph.
        step: the step.
        carries: how many of its inputs are the carry.
        draws: whether the states of generators are carried on.
        before: Values from outside that are its first constants, whether it reads them or not.
    """

    def __init__(
        self, recorder: Recorder, step: Step, carries: int, draws: bool, before: Sequence[Value] = ()
    ) -> None:
        self.step, self.carries = step, carries
        self.nodes = recorder.graph.nodes[step.start : step.end]
        self.b = Builder(Graph())
        self.mapping: dict[Value, Value] = {}
        self.constants = [*before]
        self.drawn: dict[Value, Generator] = {}
        if draws:
            read = {value for node in self.nodes for value in node.inputs}
            self.drawn = {
                draw.value: generator
                for generator, draw in recorder.draws.items()
                if draw is not None and draw.value in read
            }

    def run(self) -> _Taken:
        step, b, carries = self.step, self.b, self.carries
        self.mapping = {value: b.input(value.aval) for value in step.inputs[:carries]}
        states = {value: b.input(value.aval) for value in self.drawn}
        self.mapping |= states
        self.mapping |= {value: b.input(value.aval) for value in (*step.inputs[carries:], *self.constants)}
        for node in self.nodes:
            b.location = node.where
            inputs, params = self.operands(node)
            copied = b.node(node.op, inputs, params, tuple([value.aval for value in node.outputs]))
            self.mapping.update(zip(node.outputs, copied, strict=True))
        outputs = [self.value(value) for value in step.outputs]
        moved = [self.moved(*pair) for pair in self.drawn.items()]
        b.graph.outputs = [*outputs[:carries], *moved, *outputs[carries:]]
        count = carries + len(states)
        body = Body(b.graph, count, len(step.inputs) - carries)
        return _Taken(body, self.constants, [*self.drawn.values()])

    def value(self, value: Value) -> Value:
        """Return what stands in the body for a Value; one from outside is an input, or a number."""
        found = self.mapping.get(value)
        if found is None:
            if value.is_constant and not value.ndim:
                found = self.b.constant(value.data)
            else:
                found = self.b.input(value.aval)
                self.constants.append(value)
            self.mapping[value] = found
        return found

    def operands(self, node: Node) -> tuple[tuple[Value, ...], dict[str, Any]]:
        """Return the inputs and the parameters of a node; draws count from the beginning of the step."""
        generator = self.drawn.get(node.inputs[0]) if node.inputs else None
        base = 0 if generator is None else self.step.bases.get(generator, 0)
        if generator is None or "offset" in node.params:
            inputs = tuple([self.value(value) for value in node.inputs])
            return inputs, {**node.params, "offset": node.params["offset"] - base} if base else node.params
        state, blocks = node.inputs  # where a loop within the step begins to draw (_states)
        return (self.value(state), self.b.constant(blocks.data - np.array([0, base]))), node.params

    def moved(self, value: Value, generator: Generator) -> Value:
        """Return the state of a generator after the step."""
        blocks = self.step.ends[generator] - self.step.bases.get(generator, 0)
        state = self.mapping[value]
        return self.b.add(state, np.array([0, blocks])) if blocks else state


def why_not_kept(recorder: Recorder, steps: Sequence[Step], carries: int) -> str | None:
    """Return why a loop, whose first two steps were recorded, is not kept with one body; None if it is kept."""
    for step in steps:
        if step.hindrance is not None:
            return step.hindrance
    first, second = (_Taker(recorder, step, carries, True).run() for step in steps)
    if repr(first.body) != repr(second.body) or len(first.constants) != len(second.constants):
        return "the second step recorded different operations from the first"
    pairs = [pair for pair in zip(first.constants, second.constants, strict=True) if pair[0] is not pair[1]]
    if pairs:
        recorder.memories.forget_all()
    if not all(_alike(recorder, *pair) for pair in pairs):
        return "the second step read different arrays from the first"
    return None


def _alike(recorder: Recorder, one: Value, other: Value) -> bool:
    """Return whether two steps read what is no array from outside, but made of the same elements by each of them."""
    noted = recorder.memories.read
    is_made = all(each.is_constant or recorder.state.is_left(each, noted) for each in (one, other))
    return is_made and same(one.data, other.data)


def give_back_draws(recorder: Recorder, step: Step) -> None:
    """Have generators give again what a recorded step has drawn that is not made."""
    for generator, end in step.ends.items():
        blocks = end - step.bases.get(generator, 0)
        if blocks:
            draw = recorder.draws[generator]
            draw.blocks -= blocks
            generator.take_back(draw.start + np.array([0, draw.blocks]), blocks)
    for generator, state in step.made:
        generator.take_back(state, int(generator.advance(0)[1] - state[1]))


def decided(recorder: Recorder, array: Any, step: Step, number: int) -> bool:
    """Return the truth of an array that decided whether a recorded step is made, as a guard in front of the step.

    Args:
        recorder: of the graph.
        array: the array.
        step: the step.
        number: of guards there were before the step.
    """
    before = len(recorder.guards)
    truth = bool(array)
    for guard in recorder.guards[before:]:
        recorder.guards.remove(guard)
        recorder.guards.insert(number, guard._replace(at=step.first))
    return truth


def take_loop(
    recorder: Recorder, name: str, steps: Sequence[Step], operands: tuple[Sequence[Value], Sequence[Value]],
    params: dict[str, Any],
) -> list[Value]:  # fmt: skip
    """Replace the two recorded steps of a loop by a node with all steps, and return its results.

    Args:
        recorder: of the graph.
        name: of the function, for errors about arrays that are used outside the body.
        steps: the recorded ones.
        operands: the first carry, and the arrays that each step gets a part of.
        params: the number of steps, the direction, and whether the adjoint saves what it needs.
    """
    carry, parts = operands
    taken = _Taker(recorder, steps[0], len(carry), True).run()
    cut(recorder, steps[0].first, f"a step of {name}")
    states = _states(recorder, steps[0], taken)
    for generator in taken.generators:
        blocks = steps[0].ends[generator] - steps[0].bases.get(generator, 0)
        blocks *= params["length"] - len(steps)
        generator.advance(blocks)
        recorder.draws[generator].blocks += blocks
    outputs = _append(recorder, [*carry, *states, *parts, *taken.constants], {**params, "body": taken.body})
    return [*outputs[: len(carry)], *outputs[taken.body.carries :]]


def take_call(recorder: Recorder, name: str, step: Step) -> list[Value]:
    """Replace a recorded call by a loop of one step, which its adjoint computes again; return its results."""
    taken = _Taker(recorder, step, 0, True).run()
    cut(recorder, step.first, f"a step of {name}")
    params = {"body": taken.body, "length": 1, "reverse": False, "save": False}
    outputs = _append(recorder, [*_states(recorder, step, taken), *taken.constants], params)
    return [recorder.builder.reshape(value, shape=value.shape[1:]) for value in outputs[taken.body.carries :]]


def _states(recorder: Recorder, step: Step, taken: _Taken) -> list[Value]:
    """Return the states from which a body that was taken from a step begins to draw."""
    states = []
    for generator in taken.generators:
        state, base = recorder.draws[generator].value, step.bases.get(generator, 0)
        # In a step of a loop around it, each step begins elsewhere, and all have to record the same.
        if base or recorder.memories.begun is not None:
            state = recorder.builder.add(state, np.array([0, base]))
        states.append(state)
    return states


def take_while(recorder: Recorder, steps: Sequence[Step], carry: Sequence[Value]) -> Sequence[Value]:
    """Replace the two recorded steps of a loop that a value ends by a node; return its results.

    Args:
        recorder: of the graph.
        steps: the recorded ones; the first of their results is the bool that says whether the loop goes on.
        carry: that bool before the first step, and the first carry.
    """
    taken = _Taker(recorder, steps[0], len(carry), False).run()
    after = [value.data for value in steps[-1].outputs]
    cut(recorder, steps[0].first, "a step of dlwhile")
    operands = [*carry, *taken.constants]
    if not recorder.assumed:
        return _append(recorder, operands, {"body": taken.body}, WHILE)
    # In a branch that this call does not take, the loop need not end; the values after two steps are as good.
    recorder.builder.compute = False
    try:
        outputs = _append(recorder, operands, {"body": taken.body}, WHILE)
    finally:
        recorder.builder.compute = True
    for value, data in zip(outputs, after, strict=True):
        value.data = data
    return outputs


@contextmanager
def assuming(recorder: Recorder, is_assumed: bool) -> Iterator[None]:
    """Note that the block records a step or a branch that this call does not make, if it is one."""
    recorder.assumed += is_assumed
    try:
        yield
    finally:
        recorder.assumed -= is_assumed


def take_branches(recorder: Recorder, steps: Sequence[Step], pred: Value) -> Sequence[Value]:
    """Replace the recorded branches of a choice by a node; return its results.

    Args:
        recorder: of the graph.
        steps: the recorded branches, that for true first.
        pred: the bool that chooses.
    """
    then = _Taker(recorder, steps[0], 0, False).run()
    other = _Taker(recorder, steps[1], 0, False, then.constants).run()
    for value in other.constants[len(then.constants) :]:
        Builder(then.body.graph).input(value.aval)
    cut(recorder, min(step.first for step in steps), "a step of dlcond")
    b = recorder.builder
    b.location = user_location()
    operands = [pred, b.logical_not(pred), *other.constants]
    return _append(recorder, operands, {"then": then.body, "other": other.body}, COND)


def take_body(recorder: Recorder, name: str, step: Step) -> tuple[Body, list[Value]]:
    """Take a recorded step out of the graph; return it as a body, and the Values from outside that it reads."""
    taken = _Taker(recorder, step, len(step.inputs), False).run()
    cut(recorder, step.first, name)
    return taken.body, taken.constants


def cut(recorder: Recorder, first: int, name: str) -> None:
    """Take the nodes from number `first` on out of the graph.

    Args:
        recorder: of the graph.
        first: the number of the first node.
        name: of what they are, for errors about arrays that are used outside of it.
    """
    graph = recorder.graph
    ended = EndedBody(recorder, name)
    for node in graph.nodes[first:]:
        for value in node.outputs:
            value.owner = ended
            value.data = None
    del graph.nodes[first:]
    recorder.guards = [guard._replace(at=min(guard.at, first)) for guard in recorder.guards]
    recorder.memories.forget()


def _append(
    recorder: Recorder, inputs: Sequence[Value], params: dict[str, Any], op: Op = SCAN
) -> Sequence[Value]:
    b = recorder.builder
    b.location = user_location()
    try:
        with monitor.paused(), collector_paused():
            outputs: Sequence[Value] = b.apply(op, inputs, params)
    except BoundsError:
        recorder.refuse("a loop met an index out of range", b.location, "check indices outside")
        raise
    return outputs
