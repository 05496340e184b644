# SPDX-License-Identifier: BSD-3-Clause
"""DeviceReplay: a graph as a callable on the device."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tracejit.errors import CodegenError
from tracejit.program import Program
from tracejit.record.guards import GuardFailed
from tracejit.traces.replay import Replay, pipeline
from tracejit.util import logs
from tracejit.util.devices import on_host

if TYPE_CHECKING:
    from tracejit.describe.program import Description


class DeviceReplay(Replay):
    """A graph that runs as a program on the device.

    Where the device has no program for it, such as for a loop, it runs on the CPU, with copies of its inputs.

    Attributes:
        refusal: why it runs on the CPU, None if it does not.
    """

    refusal: str | None = None

    def _built(self) -> Any:
        """Return the program for the device, in the place of the stages that descriptions are made of."""
        try:
            return _Built(pipeline().build_for_device(self.graph, self._layouts, self.writes))
        except CodegenError as error:
            self.refusal = str(error)
            logs.tell_of_slow_build(f"{self.title} runs on the CPU, because {error}")
            return super()._built()

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:
        """Return the outputs on the device, for inputs there.

        Raises:
            GuardFailed: if the guard says that they do not count.
        """
        outputs: list[Any] = self.executable()(arrays)
        return outputs

    def _compile(self) -> Any:
        if self.program is not None and self.refusal is not None:
            return _OnHost(super()._compile(), self.program)
        from tracejit.runtime.cuda.executable import DeviceExecutable

        self._stages = None
        executable = DeviceExecutable(self.program, self._layouts)
        if self.listener is not None:
            self.listener.on_prepared(self.program, self._part, executable.prepared)
        return executable

    def describe(self) -> "Description":
        """Return the description of the program that the CPU would run."""
        from tracejit.describe.program import describe

        return describe(pipeline().stages(self.graph, self._layouts, self.writes))

    def source(self) -> str:
        """Return the sources of the device's kernels, each with its launches: blocks and threads, and operations."""
        if self.refusal is not None:
            return super().source()
        parts = [f"# {self.title}, on a GPU"]
        for kernel in self.program.kernels:
            rows = [row for row in self.program.rows if row.kernel == kernel and row.grid is not None]
            launches = [
                f"# {row.note}: {row.grid.blocks} x {row.grid.threads} threads" for row in rows if row.grid
            ]
            parts.append("\n".join([*launches, kernel.text]))
        return "\n\n".join(parts)

    @property
    def launch(self) -> Any:
        """The program on the device as a function of its inputs; None if it is not compiled, or runs on the CPU."""
        return None if self.refusal is not None else self._executable


class _Built:
    """A program in the place of the stages that made it."""

    def __init__(self, program: Any) -> None:
        self.program = program


class _OnHost:
    """A program of the CPU that takes and gives arrays on the device."""

    def __init__(self, executable: Any, program: Program) -> None:
        self._executable = executable
        self._program = program
        self.prepared = getattr(executable, "prepared", None)

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        from tracejit.runtime.cuda.arrays import uploaded
        from tracejit.runtime.cuda.driver import driver

        on = driver()
        copies = [on_host(array) for array in inputs]
        outputs = self._executable(copies)
        if self._program.guard is not None and not outputs[self._program.guard]:
            raise GuardFailed
        for number in self._program.written:
            inputs[number].write(copies[number])
        return [uploaded(on, output) for output in outputs]
