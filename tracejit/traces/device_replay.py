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
    from tracejit.compile.capability import Capability
    from tracejit.describe.profile import Profile
    from tracejit.describe.roofline import Rates
    from tracejit.describe.stages import Stages


class DeviceReplay(Replay):
    """A graph that runs as a program on the device.

    Where the device has no program for it, such as for a loop, it runs on the CPU, with copies of its inputs.

    Attributes:
        refusal: why it runs on the CPU, None if it does not.
    """

    refusal: str | None = None

    def _built(self) -> "Stages":
        if self.refusal is None:
            try:
                stages: Stages = pipeline().device_stages(self.graph, self._layouts, self.writes)
                return stages
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

    def _executable_of(self, program: Program) -> Any:
        if self.refusal is not None:
            return _OnHost(super()._executable_of(program), program)
        from tracejit.runtime.cuda.executable import DeviceExecutable

        return DeviceExecutable(program, self._layouts)

    @property
    def capability(self) -> "Capability | None":
        """The compute capability of the device, None if the program runs on the CPU."""
        if self.refusal is not None:
            return None
        from tracejit.runtime.cuda.driver import driver

        return driver().capability

    @property
    def target(self) -> str:
        """The device, or the reason why the program runs on the CPU, in words."""
        if self.refusal is not None:
            return f"cpu, with copies, because {self.refusal.rstrip('.')}"
        from tracejit.runtime.cuda.driver import driver

        on = driver()
        major, minor = on.capability
        return f"cuda:{on.ordinal}, {on.name}, compute capability {major}.{minor}"

    def rates(self) -> "Rates":
        """Return the rates of the device."""
        if self.refusal is not None:
            return super().rates()
        from tracejit.describe.device_profile import rates
        from tracejit.runtime.cuda.driver import driver

        return rates(driver())

    def profile(self) -> "Profile | None":
        """Return what each launch takes on the device, or None if the program is not compiled or runs on the CPU."""
        from tracejit.describe.device_profile import profile

        return None if self.launch is None else profile(self.launch)

    @property
    def launch(self) -> Any:
        """The program on the device as a function of its inputs; None if it is not compiled, or runs on the CPU."""
        return None if self.refusal is not None else self._executable


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
        results = [
            uploaded(on, output) for output in outputs
        ]  # before writes: there may be too little memory
        for number in self._program.written:
            inputs[number].write(copies[number])
        return results
