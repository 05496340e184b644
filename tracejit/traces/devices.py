# SPDX-License-Identifier: BSD-3-Clause
"""gpu and gather, and operations on arrays of the device outside accelerated functions.

Note [operations on the device]
An operation outside an accelerated function is a program of one operation, which is built and kept by sizes, dtypes and
parameters. An operation without a kernel for the device is computed on the host, and the result is copied. A result has
memory of its own, so a slice is a copy on the device.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracejit import tree
from tracejit.array import as_array, dlarray
from tracejit.aval import Aval
from tracejit.errors import ArgumentError, BoundsError, CodegenError
from tracejit.ir import Builder, Graph, asarray
from tracejit.ops import Kind, Op
from tracejit.record import monitor, views
from tracejit.record import recorder as recorders
from tracejit.traces.replay import pipeline
from tracejit.util import devices
from tracejit.util.locks import new_lock

_MOST_PROGRAMS = 4096
_programs: dict[Any, Any] = {}
_lock = new_lock()


def gpu(x: Any) -> Any:
    """Return arrays on the GPU of this process, cuda:0.

    Args:
        x: a dlarray, an array of NumPy, CuPy, PyTorch, JAX or Numba, or containers of them. Arrays that lie on the GPU
            are not copied.

    Returns:
        The same containers with dlarrays whose elements lie on the GPU; anything else in them is as it was.

    Raises:
        DeviceError: if there is no GPU or no driver.
        DeviceMemoryError: if its memory is full.
        ArgumentError: if `x` is traced: where a function runs is decided outside it.

    Examples:
        >>> import tracejit as tj
        >>> try:
        ...     device = tj.gpu(tj.dlarray([1.0, 2.0])).device
        ... except tj.DeviceError:  # no GPU here
        ...     device = "cuda:0"
        >>> device
        'cuda:0'
    """
    from tracejit.runtime.cuda.arrays import uploaded_as_it_is
    from tracejit.runtime.cuda.driver import driver

    on = driver()
    return _moved(
        "gpu", x, lambda data: data if isinstance(data, devices.OnDevice) else uploaded_as_it_is(on, data)
    )


def gather(x: Any) -> Any:
    """Return arrays in the memory of the host, after all work on them is done.

    Args:
        x: a dlarray, or containers of dlarrays. Arrays of the host are not copied.

    Returns:
        The same containers with dlarrays in the memory of the host; anything else in them is as it was.

    Raises:
        ArgumentError: if `x` is traced: where a function runs is decided outside it.

    Examples:
        >>> import tracejit as tj
        >>> tj.gather({"x": tj.dlarray([1.0, 2.0])})["x"].tolist()
        [1.0, 2.0]
    """
    return _moved("gather", x, devices.on_host)


def _moved(function: str, x: Any, move: Callable[[Any], Any]) -> Any:
    """Return containers with the data of their arrays moved; an array whose data stay where they are is itself."""
    leaves, treedef = tree.flatten(x, function=function)
    moved = []
    for leaf in leaves:
        array = _untraced(function, leaf) if _is_array(leaf) else leaf
        if isinstance(array, dlarray):
            data = move(array._data)
            array = array if data is array._data else dlarray._wrap(data, array._format, None)
        moved.append(array)
    return tree.unflatten(treedef, moved)


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, (dlarray, np.ndarray)) or hasattr(type(leaf), "__cuda_array_interface__")


def _untraced(function: str, leaf: Any) -> dlarray:
    array: dlarray = as_array(leaf, function)
    if isinstance(leaf, np.ndarray) and not leaf.ndim:
        array = views.without_axes(array)
    if array._value is not None and recorders.is_open(array):
        raise ArgumentError(
            f"{function}: x is traced ({recorders.describe(array)}); where a function runs is decided outside it. Call "
            f"{function} before, or on its result."
        )
    return array


def compute(op: Any, data: Sequence[Any], params: dict[str, Any]) -> Any:
    """Return what an op gives, on the device (Note [operations on the device])."""
    with monitor.paused(), recorders.suspended():  # a recording around it is not one of the compiler
        return _computed(op, data, params)


def _computed(op: Any, data: Sequence[Any], params: dict[str, Any]) -> Any:
    from tracejit.runtime.cuda.arrays import uploaded
    from tracejit.runtime.cuda.driver import driver

    on = driver()
    # A view that goes by no op (record/views.py) has no program.
    executable = _executable(op, data, params) if isinstance(op, Op) else None
    if executable is not None:
        inputs = [
            (part if part.flags.c_contiguous else part.copy())  # type: ignore[attr-defined]
            if isinstance(part, devices.OnDevice)
            else uploaded(on, part)
            for part in data
        ]
        try:
            outputs = executable(inputs)
            return outputs[0] if len(outputs) == 1 else tuple(outputs)
        except BoundsError:
            pass  # the reference names the index
    result = op.numpy(*[devices.on_host(part) for part in data], **params)
    if type(result) is tuple:
        return tuple([uploaded(on, asarray(part)) for part in result])
    return uploaded(on, asarray(result))


def _executable(op: Op, data: Sequence[Any], params: dict[str, Any]) -> Any:
    """Return the program of an op on the device, None if it has none."""
    from tracejit.runtime.cuda.driver import driver

    avals = [Aval(part.shape, None, part.dtype) for part in data]
    key = (driver(), op.name, *avals, *sorted(params.items(), key=lambda item: item[0]))
    try:
        hash(key)
    except TypeError:
        return None
    with _lock:
        if key not in _programs:
            if len(_programs) >= _MOST_PROGRAMS:
                del _programs[next(iter(_programs))]
            _programs[key] = _built(op, avals, params)
        return _programs[key]


def _built(op: Op, avals: Sequence[Aval], params: dict[str, Any]) -> Any:
    from tracejit.runtime.cuda.executable import DeviceExecutable

    if op.kind is Kind.HOST:
        return None
    graph = Graph()
    builder = Builder(graph)
    result = builder.apply(op, [builder.input(aval) for aval in avals], params)
    graph.outputs = list(result) if isinstance(result, tuple) else [result]
    try:
        return DeviceExecutable(pipeline().build_for_device(graph))
    except CodegenError:
        return None


def _adopt(x: Any, function: str, argument: str) -> Any:
    from tracejit.runtime.cuda.arrays import adopted

    return adopted(x, function, argument)


def _upload(data: Any) -> Any:
    from tracejit.runtime.cuda.arrays import uploaded_as_it_is
    from tracejit.runtime.cuda.driver import driver

    return uploaded_as_it_is(driver(), data)


devices.registered.compute = compute
devices.registered.adopt = _adopt
devices.registered.upload = _upload
