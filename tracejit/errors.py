# SPDX-License-Identifier: BSD-3-Clause
"""The errors and warnings of tracejit.

    TraceJitError (Exception)
    ├── DimsError (ValueError)       sizes or labels that do not fit an operation
    │   ├── BoundsError (IndexError) an index outside its axis
    │   ├── AxisError (numpy.exceptions.AxisError) an axis that an array does not have
    │   └── MatrixError (numpy.linalg.LinAlgError) sizes that a function of matrices cannot take
    ├── DTypeError (TypeError)       a data type that is not supported, or not by this operation
    ├── ArgumentError (TypeError)    an argument of the wrong kind or an unknown option
    │   ├── ArgumentValueError (ValueError) an argument whose value does not make sense
    │   ├── RangeError (OverflowError) an integer that its type cannot hold
    │   └── KeyTypeError (IndexError) an index of a wrong type
    ├── WriteError (ValueError)      an array that cannot be written: read-only, or memory that is shared
    ├── TraceError (RuntimeError)    a value is needed while tracing, or used after its trace closed
    ├── GradientError (RuntimeError) the requested gradient does not exist
    ├── RetraceError (RuntimeError)  a call would be recorded, which the policy forbids
    ├── CodegenError (RuntimeError)  emitted source could not be compiled, or object code not loaded
    ├── DeviceError (RuntimeError)   no GPU can be used, or it failed
    │   └── DeviceMemoryError (MemoryError) the memory of a GPU is full
    ├── CacheError (RuntimeError)    the cache was set up or used wrongly
    └── ExportError (RuntimeError)   a function cannot be exported, or an exported folder cannot be loaded

    TraceJitWarning (UserWarning)
    ├── OutputsDifferWarning         a check found that a replay and the function give different results
    ├── NotAcceleratedWarning        a function runs uncompiled, because a replay could be wrong
    ├── RetraceWarning               a call is recorded, and the policy asks for a warning; or nearly every call is
    ├── LostChangeWarning            what a function prints, or puts into a queue, is lost in calls that are replayed
    ├── ChangedTraceWarning          an audit found that the function no longer does what its trace does
    └── CacheWarning                 compiled kernels cannot be kept on disk

Every message names the function and the argument, what was found, what was expected, and what to do. Where an error is
shown, the address of the page of its class follows: the mistake, an example that fails, and one that works.
"""

from functools import cached_property

import numpy as np

DOCUMENTATION = "https://tracejit.readthedocs.io/en/stable"  # the address of the pages that docs/ makes


def _see(error: BaseException) -> list[str]:
    """Return the line below a message: the page of the error's class, or of the class that a user's class extends.

    It is a note (PEP 678) that Python asks for when it shows the error. So nothing is done when an error is raised, and
    ``str(error)`` is the message alone.
    """
    name = next(cls.__name__ for cls in type(error).__mro__ if cls.__module__ == __name__)
    return [f"See {DOCUMENTATION}/errors/{name}.html"]


_notes = cached_property(_see)  # a list for each error, which Python's add_note appends to


class TraceJitError(Exception):
    """Base of all errors raised by tracejit."""

    __notes__ = _notes  # an attribute for Python's own code


class DimsError(TraceJitError, ValueError):
    """Sizes or labels do not fit the operation."""


class BoundsError(DimsError, IndexError):
    """An index lies outside its axis."""


class AxisError(DimsError, np.exceptions.AxisError):
    """An array does not have an axis that is named."""


class MatrixError(DimsError, np.linalg.LinAlgError):
    """Sizes are not those of matrices, or not of square ones, that a function of linear algebra takes."""


class DTypeError(TraceJitError, TypeError):
    """A data type is not supported, or not by this operation."""


class ArgumentError(TraceJitError, TypeError):
    """An argument is of the wrong kind, or an option is unknown."""


class ArgumentValueError(ArgumentError, ValueError):
    """An argument is of the right kind, and its value does not make sense."""


class RangeError(ArgumentError, OverflowError):
    """An integer lies outside the range of its type."""


class KeyTypeError(ArgumentError, DTypeError, IndexError):
    """An index is of a type that selects nothing."""


class WriteError(TraceJitError, ValueError):
    """An array cannot be written: it is read-only, or shares memory in a way that a trace cannot follow."""


class TraceError(TraceJitError, RuntimeError):
    """The value of a traced array is needed while tracing, or a traced array outlived its trace."""


class GradientError(TraceJitError, RuntimeError):
    """The requested gradient does not exist."""


class RetraceError(TraceJitError, RuntimeError):
    """A call would have to be recorded while the policy is "error-on-retrace"."""


class CodegenError(TraceJitError, RuntimeError):
    """Emitted source could not be compiled, or object code not loaded; the message says if this is a defect."""


class DeviceError(TraceJitError, RuntimeError):
    """A GPU cannot be used: there is no driver or device, an array lies on another one, or the device failed."""


class DeviceMemoryError(DeviceError, MemoryError):
    """There is not enough memory on a GPU."""


class CacheError(TraceJitError, RuntimeError):
    """A cache was set up or used wrongly."""


class ExportError(TraceJitError, RuntimeError):
    """A function cannot be exported as it is, or an exported folder cannot be loaded here."""


class TraceJitWarning(UserWarning):
    """Base of all warnings issued by tracejit."""

    __notes__ = _notes  # shown where warnings are errors


class OutputsDifferWarning(TraceJitWarning):
    """Accelerated outputs differ from the outputs of the underlying function."""


class NotAcceleratedWarning(TraceJitWarning):
    """A function runs uncompiled for some arguments, or compares much at each call, because a replay could be wrong."""


class RetraceWarning(TraceJitWarning):
    """A call is recorded while the policy is "warn-on-retrace", or nearly every call is recorded."""


class LostChangeWarning(TraceJitWarning):
    """An output of a function is lost in calls that are replayed: what it prints, or puts into a queue."""


class ChangedTraceWarning(TraceJitWarning):
    """A function no longer does what its trace does; it was recorded again."""


class CacheWarning(TraceJitWarning):
    """Compiled kernels cannot be kept on disk."""
