# SPDX-License-Identifier: BSD-3-Clause
"""Replay: a graph as a callable that is built and compiled when it is first called, and as an op of other graphs."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tracejit import config
from tracejit.autodiff import rounded
from tracejit.aval import Aval
from tracejit.call.recycle import EntryPoint
from tracejit.call.tables import Pattern, Recipe
from tracejit.ir import Graph, Where
from tracejit.ops import Kind, Layout, Op, name_apart
from tracejit.passes.graph.split import split
from tracejit.program import NO_WRITES, Prepared, Program, Writes
from tracejit.record.guards import GuardFailed
from tracejit.util import logs
from tracejit.util.annotate import annotated
from tracejit.util.locks import check_compiler, compiling, new_lock
from tracejit.util.memory import age, collector_paused, give_back
from tracejit.util.named_tuples import NamedTuple
from tracejit.util.precision import precision, with_precision
from tracejit.util.room import check_room, is_limited
from tracejit.util.uninterrupted import Stopping, is_of_handler, uninterrupted

if TYPE_CHECKING:  # the compiler is imported by the first build, which a loaded program does without
    from tracejit.compile.capability import Capability
    from tracejit.describe.profile import Profile
    from tracejit.describe.program import Description
    from tracejit.describe.roofline import Rates
    from tracejit.describe.stages import Stages


class Listener(Protocol):
    """Is told when a program is built and compiled; knows the call that it is built for."""

    @property
    def defined(self) -> Where:
        """The file and line of the function's definition."""

    @property
    def signature(self) -> list[tuple[str, str]]:
        """The name and the description of each argument."""

    def on_built(self, program: Program, part: str, build_ns: int) -> None:
        """Take note of a program; `part` is "", "forward" or "adjoint"."""

    def on_prepared(self, program: Program, part: str, prepared: Prepared) -> None:
        """Take note of the kernels that were compiled or loaded for a program."""


class Replay:
    """A graph that runs as a compiled program.

    Args:
        graph: the graph; its constants are not written afterwards.
        title: heads the emitted module.
        layouts: where the elements of each input lie.
        part: "forward" or "adjoint" for one of the two programs of a graph that runs as an op, otherwise "".
        guard: the number of the output that says whether all guards hold, or None.
        writes: the outputs of the graph that the program writes into inputs; `guard` does not count them.

    Attributes:
        listener: is told what becomes of the program, if set before the program is built.
        precision: what the program is built with: that of the thread that made this.
    """

    def __init__(
        self, graph: Graph, title: str, layouts: Sequence[Layout | None] = (), part: str = "",
        guard: int | None = None, writes: Writes = NO_WRITES,
    ) -> None:  # fmt: skip
        self.graph = graph
        self.guard = guard
        self.writes = writes
        self.title = f"{title}, {part}" if part else title
        self.listener: Listener | None = None
        self.precision = precision()
        self._part = part
        self._layouts = layouts
        self._lock = new_lock()
        self._executable: Any = None
        self._program: Program | None = None
        # Kept until the first call has written the inventory of the program.
        self._stages: Stages | None = None
        self.build_ns = 0

    @property
    def program(self) -> Program:
        """The program, built on first use."""
        if self._program is None:
            with self._lock:
                if self._program is None:
                    started = time.perf_counter_ns()
                    give_back(len(self.graph.nodes))
                    with collector_paused():
                        self._stages = self._built()
                        self._program = self._stages.program._replace(guard=self.guard)
                    self.build_ns = time.perf_counter_ns() - started
                    if self.listener is not None:
                        self.listener.on_built(self._program, self._part, self.build_ns)
        return self._program

    def program_for(self, vector_bytes: int) -> Program:
        """Return the program with kernels that are written for vectors of another size."""
        from tracejit.codegen.target import written_for

        with collector_paused(), written_for(vector_bytes):
            return self._built().program._replace(guard=self.guard)

    def program_for_device(self) -> Program:
        """Return the program of a device for inputs whose elements lie one after the other.

        Raises:
            CodegenError: if there is none.
        """
        with collector_paused():
            program: Program = pipeline().device_stages(self.graph, (), self.writes).program
            return program._replace(guard=self.guard)

    def _built(self) -> "Stages":
        with with_precision(self.precision):
            stages: Stages = pipeline().stages(self.graph, self._layouts, self.writes)
        return stages

    @property
    def is_built(self) -> bool:
        """True once the program is built."""
        return self._program is not None

    def __call__(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the outputs for inputs of the graph's shapes and dtypes and of the given layouts.

        Raises:
            GuardFailed: if the guard says that they do not count.
        """
        outputs: list[np.ndarray] = self.executable()(arrays)
        if self.guard is not None and not outputs[self.guard]:
            raise GuardFailed
        return outputs

    def executable(self) -> Any:
        """Return the compiled program, compiled on first use."""
        if self._executable is None:
            with self._lock:
                if self._executable is None:
                    with collector_paused():
                        self._executable = self._compile()
        return self._executable

    def _compile(self) -> Any:
        """Return the program's executable, and write the program's inventory to the cache on disk."""
        program = self.program
        inventory = self._inventory()
        compiled = self._executable_of(program)
        prepared = getattr(compiled, "prepared", None)
        if prepared is not None:
            took_s = (self.build_ns + prepared.compile_ns + prepared.load_ns) / 1e9
            if took_s > logs.SLOW_S:
                logs.tell_of_slow_build(
                    f"{self.title} was built in {took_s:.1f} s. Calls of this kind replay it now."
                )
            if self.listener is not None:
                self.listener.on_prepared(program, self._part, prepared)
            if inventory is not None:
                uninterrupted(lambda stopping: inventory.keep(self.build_ns, prepared.compile_ns))
        return compiled

    def _executable_of(self, program: Program) -> Any:
        return executable(program, self.title, self._layouts)

    @property
    def target(self) -> str:
        """The CPU or the device that the program runs on, in words."""
        return "cpu"

    def rates(self) -> "Rates":
        """Return the rates of the machine that the program runs on."""
        from tracejit.describe.roofline import rates

        return rates()

    @property
    def capability(self) -> "Capability | None":
        """The compute capability of the device that the program runs on, None for the CPU."""
        return None

    def _inventory(self) -> Any:
        """Return the description of the program for the cache on disk, or None if the cache takes none."""
        stages, self._stages = self._stages, None
        if config.settings.cache == "off" or config.settings.backend == "python":
            return None
        try:
            if stages is None:
                stages = self._built()
            return _compiler().inventory.Inventory(stages, self.title, self.listener, self.capability)
        except Exception as error:  # a call must not fail because its description does
            if is_of_handler(error):
                raise
            what = f"{type(error).__name__}: {error}"
            logs.write(
                logs.WARNING, "cache", f"{self.title}: no description was written to the cache: {what}"
            )
            return None

    @property
    def launch(self) -> Any:
        """The function that runs the program on tuples of arrays, or None if it is not compiled (yet)."""
        return getattr(self._executable, "launch", None)

    def entry(
        self, formats: Sequence[str | None], guarded: bool, pattern: Pattern | None, recipe: Recipe | None
    ) -> EntryPoint | None:
        """Return the compiled entry point of the program, or None if the backend has none."""
        entry = getattr(self._executable, "entry", None)
        return None if entry is None else entry(formats, guarded, pattern, recipe)

    def describe(self) -> "Description":
        """Return the description of the program, which builds it once more (Note [descriptions])."""
        from tracejit.describe.program import describe

        with collector_paused():
            return describe(self._built())

    def profile(self) -> "Profile | None":
        """Return what each launch takes (Note [profiles]), or None if the program is not compiled (yet)."""
        from tracejit.describe.profile import profile

        stepwise = getattr(self._executable, "stepwise", None)
        return None if stepwise is None else profile(self.program, stepwise, self._layouts)

    def source(self) -> str:
        """Return the emitted module, with the user's lines beside those of its kernels."""
        from tracejit.codegen.emit import module_source

        comments = self.describe().comments()
        texts = {
            kernel.name: annotated(kernel.text, comments.get(kernel.name, {})) + "\n"
            for kernel in self.program.kernels
        }
        return module_source(self.program, self.title, self._part or "forward", texts)


def executable(program: Program, title: str, layouts: Sequence[Layout | None] = ()) -> Any:
    """Return a program as a callable of the backend that is set."""
    if config.settings.backend == "python":
        from tracejit.runtime.python import PythonExecutable

        return PythonExecutable(program, title)
    return _compiler().cpu.CpuExecutable(program, layouts)


class _Compiler(NamedTuple):
    """The modules that import LLVM; Numba is imported when something is compiled."""

    cpu: Any
    inventory: Any


_compilers: list[_Compiler] = []


def _compiler() -> _Compiler:
    if not _compilers:
        check_compiler()  # in a forked child nobody may hold the lock, and for ever
        check_room()
        uninterrupted(_import_compiler)
    return _compilers[0]


def _import_compiler(stopping: Stopping) -> None:
    with compiling:
        from tracejit.describe import inventory
        from tracejit.runtime import cpu

        _compilers.append(_Compiler(cpu, inventory))
        age()


_pipelines: list[Any] = []


def pipeline() -> Any:
    """Return the module tracejit.pipeline, which imports the compiler."""
    if not _pipelines:
        check_compiler()
        if is_limited():
            _import_pipeline()  # a thread would take address space that LLVM needs
        else:
            uninterrupted(lambda stopping: _import_pipeline())
    return _pipelines[0]


def _import_pipeline() -> None:
    with compiling:
        from tracejit import pipeline

        _pipelines.append(pipeline)
        age()


def call_op(
    title: str, graph: Graph, formats: Sequence[str | None], guard: int | None = None
) -> tuple[Op, list[Replay]]:
    """Return a graph as one op whose forward and adjoint are compiled programs (Note [a program as an op]).

    The op's outputs are the graph's, of the given formats, then the values saved for the adjoint. If one of them
    is a guard that does not hold, the op raises GuardFailed and nothing is recorded.
    Also returns the replays that the op runs: forward and adjoint.
    """
    parts = split(graph)
    forward = Replay(parts.forward, title, part="forward", guard=guard)
    adjoint = Replay(parts.adjoint, title, part="adjoint")
    outputs = len(parts.by_output)
    lazy: list[Op] = []

    def adjoint_op() -> Op:
        if not lazy:
            lazy.append(_graph_op(f"adjoint of {title}", adjoint, (None,) * len(parts.adjoint.outputs)))
        return lazy[0]

    def vjp(b: Any, node: Any, ct: Any) -> list[Any]:
        cts = ct if isinstance(ct, tuple) else (ct,)
        if any(extra is not None for extra in cts[outputs:]):
            # A derivative of the adjoint that flows through saved values: they are outputs like the others.
            return _recomputing_vjp(b, node, cts, title, forward)
        saved = [node.outputs[i] for i in parts.saved]
        arguments = [*node.inputs, *saved, *_cotangents(b, node, cts[:outputs], parts.by_output)]
        results = b.apply(adjoint_op(), arguments, {}) if parts.adjoint.outputs else ()
        return [None if i is None else results[i] for i in parts.by_input]

    saved_formats = (None,) * (len(parts.forward.outputs) - outputs)
    return _graph_op(title, forward, (*formats, *saved_formats), vjp), [forward, adjoint]


# Note [a program as an op]
# Inside somebody else's dlfeval an accelerated function is one node of the outer tape. Its op computes the
# outputs and what the adjoint will read of the forward values; the vjp is one node of the adjoint program.
# That node can be differentiated again: the adjoint program is a graph, so its derivative is the adjoint of
# that graph, which computes its intermediate values anew.


def in_order(array: np.ndarray) -> np.ndarray:
    """Return an array whose elements lie one after the other, and aligned, as programs take arrays without a layout."""
    if not array.flags.aligned:
        return array.copy()
    return np.ascontiguousarray(array).reshape(array.shape)


def _graph_op(name: str, replay: Replay, formats: Sequence[str | None], vjp: Any = None) -> Op:
    avals = tuple(
        Aval(v.shape, format, v.dtype) for v, format in zip(replay.graph.outputs, formats, strict=True)
    )

    def numpy(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        return tuple(replay([in_order(array) for array in arrays]))

    def recomputing(b: Any, node: Any, ct: Any) -> list[Any]:
        return _recomputing_vjp(b, node, ct if isinstance(ct, tuple) else (ct,), name, replay)

    return Op(
        name=name_apart(name),
        doc="a compiled program",
        kind=Kind.HOST,
        infer=lambda *_: avals,
        numpy=numpy,
        vjp=vjp or recomputing,
        emit=None,
        samples=(),
        analytic=False,
    )


def _recomputing_vjp(b: Any, node: Any, cts: Sequence[Any], name: str, forward: Replay) -> list[Any]:
    parts = split(forward.graph, save=False)
    results: Any = ()
    if parts.adjoint.outputs:
        with with_precision(forward.precision):
            replay = Replay(parts.adjoint, f"adjoint of {name}")
        op = _graph_op(f"adjoint of {name}", replay, (None,) * len(parts.adjoint.outputs))
        results = b.apply(op, [*node.inputs, *_cotangents(b, node, cts, parts.by_output)], {})
    return [None if i is None else results[i] for i in parts.by_input]


def _cotangents(b: Any, node: Any, cts: Sequence[Any], by_output: Sequence[bool]) -> list[Any]:
    """Return the cotangents of the floating-point outputs, zeros where there is none.

    An adjoint program takes them in the dtypes of the outputs; those of 16-bit numbers were added up in float32.
    """
    return [
        b.constant(np.zeros(value.shape, value.dtype)) if ct is None else rounded(b, ct, value)
        for value, ct, has in zip(node.outputs, cts, by_output, strict=False)
        if has
    ]
