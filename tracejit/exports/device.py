# SPDX-License-Identifier: BSD-3-Clause
"""Exported folders for GPUs: their code, and the choice and use of it where a folder is loaded.

Code is a cubin for each kernel where NVIDIA's linker is installed, and otherwise PTX. A cubin runs on GPUs of the same
major capability and the same or a greater minor one. PTX runs on all GPUs of at least its capability, because their
driver compiles it. (Importing this imports no LLVM.)
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from tracejit.call.recycle import EntryPoint
from tracejit.call.signature import ArrayPart, Key
from tracejit.call.tables import Pattern, Recipe
from tracejit.compile.capability import PTX_VERSIONS, Capability
from tracejit.errors import ArgumentError, CodegenError, DeviceError, ExportError
from tracejit.exports.machine import HOST
from tracejit.program import Kernel, Prepared, Program
from tracejit.util.arguments import is_option, listed
from tracejit.util.text import brief
from tracejit.util.uninterrupted import uninterrupted

CUDA = "cuda"
_CUBIN, _PTX = "cubin", "ptx"
_ELF = b"\x7fELF"  # with which a cubin begins
_KNOWN = {Capability(*version).dotted: Capability(*version) for version in PTX_VERSIONS}


def checked_capabilities(target: Any, cpus: Any, capabilities: Any) -> tuple[Capability, ...]:
    """Return the capabilities that export() was asked for, none for a CPU.

    Raises:
        ArgumentError: if there is no such target or capability, or they do not fit together.
        DeviceError: if that of this GPU is asked for, and there is none.
    """
    if not is_option(target, ("cpu", CUDA)):
        raise ArgumentError(f"export: target: expected one of ('cpu', 'cuda'), not {brief(target)}.")
    if target == "cpu":
        if capabilities is not None:
            raise ArgumentError('export: capabilities are those of GPUs; set target="cuda" with them.')
        return ()
    if not (isinstance(cpus, str) and cpus == HOST):
        raise ArgumentError(
            'export: cpus are not used with target="cuda"; leave them out, and give capabilities.'
        )
    if capabilities is None:
        from tracejit.runtime.cuda.driver import driver

        return (driver().capability.known,)
    names = (
        (capabilities,) if isinstance(capabilities, str) else listed("export", "capabilities", capabilities)
    )
    for name in names:
        if not is_option(name, tuple(_KNOWN)):
            valid = ", ".join(map(repr, _KNOWN))
            raise ArgumentError(f"export: capabilities: expected one of {valid}, not {brief(name)}.")
    if not names or len(set(names)) != len(names):
        raise ArgumentError(
            f"export: capabilities: expected one or more, each once, not {brief(capabilities)}."
        )
    return tuple([_KNOWN[name] for name in names])


def neutral(key: Key) -> Key:
    """Return a key whose arrays lie one after the other, on no device in particular."""
    parts = [
        part._replace(strides=None, device=None) if isinstance(part, ArrayPart) else part
        for part in key.parts
    ]
    return key._replace(parts=tuple(parts))


def code_of(kernels: Sequence[Kernel], capability: Capability) -> tuple[str, dict[str, bytes]]:
    """Return the form of the code of kernels, and their code by their names.

    Raises:
        ExportError: if NVIDIA's linker is installed, and does not take a kernel.
    """
    from tracejit.compile import link
    from tracejit.compile.device_code import compiled, stored_code

    code = {kernel.name: stored_code(kernel, capability) for kernel in kernels}
    missing = [kernel for kernel in kernels if code[kernel.name] is None]
    if missing:
        made = uninterrupted(
            lambda stopping: [*compiled(missing, capability, lambda kernel, content: content, stopping)]
        )
        code |= {kernel.name: content for kernel, content in made}
    contents = {name: content for name, content in code.items() if content is not None}
    for name, content in contents.items():
        reason = None if content.startswith(_ELF) else link.refusal(content.decode(), capability)
        if reason is not None:
            raise ExportError(
                f"export: NVIDIA's linker does not take {name} for GPUs of capability {capability.dotted}, and no "
                f'driver would: {reason}. Export the function with target="cpu", or as several functions.'
            )
    is_cubin = all(content.startswith(_ELF) for content in contents.values())
    return _CUBIN if is_cubin and contents else _PTX, contents


def choose_code(manifest: Mapping[str, Any], path: str, wanted: str | None) -> dict[str, Any]:
    """Return the entry of a manifest with the best code for the GPU of this process.

    Args:
        manifest: of the folder.
        path: of the folder.
        wanted: the name of the only entry to choose, or None.

    Raises:
        ExportError: if there is no GPU, or no code for it.
    """
    from tracejit.runtime.cuda.driver import driver

    targets = {_capability_of(target["name"]): target for target in manifest[CUDA]}
    names = ", ".join([f"{capability} ({target['form']})" for capability, target in targets.items()])
    try:
        own = driver().capability
    except DeviceError as error:
        raise ExportError(
            f'load: {path} has code for GPUs only: {names}. {error} Or export the function with target="cpu".'
        ) from error
    fitting = [
        (target["form"] == _CUBIN, capability)
        for capability, target in targets.items()
        if wanted in (None, str(capability))
        and capability <= own
        and (target["form"] == _PTX or capability.major == own.major)
    ]
    if not fitting:
        what = "" if wanted is None else f" {wanted!r}"
        raise ExportError(
            f"load: {path} has no code{what} for this GPU ({own}); it has {names}. Export the function with "
            f'capabilities="{own.known.dotted}".'
        )
    return dict(targets[max(fitting)[1]])


def _capability_of(name: Any) -> Capability:
    known = {str(capability): capability for capability in _KNOWN.values()}
    if not isinstance(name, str) or name not in known:
        raise ValueError(f"code for {name!r:.40}")
    return known[name]


class DeviceCode:
    """The kernels of a folder by name, each loaded at its first use.

    Args:
        code: of each kernel.
    """

    def __init__(self, code: Mapping[str, bytes]) -> None:
        self._code = code
        self._functions: dict[str, int] = {}

    @classmethod
    def of(cls, files: Mapping[str, bytes], target: Mapping[str, Any]) -> "DeviceCode":
        """Return the code of an entry of a manifest, given the files of its folder."""
        folder = f"code/{CUDA}-{_capability_of(target['name']).dotted}"
        return cls({name: files[f"{folder}/{name}.{target['form']}"] for name in target["code"]})

    def functions(self, on: Any, kernels: Sequence[Kernel]) -> tuple[dict[str, int], Prepared]:
        """Return the device's functions by the names of kernels, and what was loaded for that.

        Raises:
            ExportError: if the folder lacks one, or the driver refuses it.
        """
        started = time.perf_counter_ns()
        missing = [kernel.name for kernel in kernels if kernel.name not in self._functions]
        for name in missing:
            if name not in self._code:
                raise ExportError(f"load: the folder has no code of {name}. Export the function again.")
            try:
                self._functions[name] = on.load(self._code[name], name)
            except DeviceError as error:
                raise ExportError(
                    f"load: the driver does not take the code of {name} ({error}) Export the function for this GPU."
                ) from error
        functions = {kernel.name: self._functions[kernel.name] for kernel in kernels}
        return functions, Prepared((), tuple(missing), 0, time.perf_counter_ns() - started)


class LoadedDeviceReplay:
    """A program of an exported folder, compiled for the GPU of this process.

    Args:
        program: the program.
        code: of its kernels.
        title: of its emitted source.
    """

    def __init__(self, program: Program, code: DeviceCode, title: str) -> None:
        from tracejit.runtime.cuda.executable import DeviceExecutable

        self.program = program
        self.title = title
        try:
            self.launch = DeviceExecutable(program, functions_of=code.functions)
        except CodegenError as error:
            raise ValueError(str(error)) from error

    def __call__(self, arrays: Sequence[Any]) -> list[Any]:
        outputs: list[Any] = self.launch(arrays)
        return outputs

    def entry(
        self, formats: Sequence[str | None], guarded: bool, pattern: Pattern | None, recipe: Recipe | None
    ) -> EntryPoint | None:
        """Return None: a compiled entry point would have to be compiled here."""
        return None


def on_device(key: Key) -> Key:
    """Return the key of a call that runs on the GPU of this process, with its arrays."""
    from tracejit.runtime.cuda.driver import driver

    name = f"cuda:{driver().ordinal}"
    parts = [part._replace(device=name) if isinstance(part, ArrayPart) else part for part in key.parts]
    has_arrays = any(isinstance(part, ArrayPart) for part in parts)
    return key._replace(parts=tuple(parts), runs_on=None if has_arrays else name)
