# SPDX-License-Identifier: BSD-3-Clause
"""The tree of errors, and the table of messages (tests/support/messages.py)."""

import builtins
import inspect
import re

import numpy as np
import pytest
from messages import ROWS, outcome
from raise_statements import not_reached

import tracejit as tj
from tracejit import ArgumentError, TraceError, dlaccelerate, dlarray, dlfeval, errors

pytestmark = pytest.mark.whole("messages")
TREE = {
    "TraceJitError": ("Exception",),
    "DimsError": ("TraceJitError", "ValueError"),
    "BoundsError": ("DimsError", "IndexError"),
    "AxisError": ("DimsError", "AxisError"),
    "MatrixError": ("DimsError", "LinAlgError"),
    "DTypeError": ("TraceJitError", "TypeError"),
    "ArgumentError": ("TraceJitError", "TypeError"),
    "ArgumentValueError": ("ArgumentError", "ValueError"),
    "RangeError": ("ArgumentError", "OverflowError"),
    "KeyTypeError": ("ArgumentError", "DTypeError", "IndexError"),
    "WriteError": ("TraceJitError", "ValueError"),
    "TraceError": ("TraceJitError", "RuntimeError"),
    "GradientError": ("TraceJitError", "RuntimeError"),
    "RetraceError": ("TraceJitError", "RuntimeError"),
    "CodegenError": ("TraceJitError", "RuntimeError"),
    "DeviceError": ("TraceJitError", "RuntimeError"),
    "DeviceMemoryError": ("DeviceError", "MemoryError"),
    "CacheError": ("TraceJitError", "RuntimeError"),
    "ExportError": ("TraceJitError", "RuntimeError"),
    "TraceJitWarning": ("UserWarning",),
    "OutputsDifferWarning": ("TraceJitWarning",),
    "NotAcceleratedWarning": ("TraceJitWarning",),
    "RetraceWarning": ("TraceJitWarning",),
    "LostChangeWarning": ("TraceJitWarning",),
    "ChangedTraceWarning": ("TraceJitWarning",),
    "CacheWarning": ("TraceJitWarning",),
}


def test_the_tree():
    classes = {name: cls for name, cls in vars(errors).items() if inspect.isclass(cls)}
    found = {name: cls for name, cls in classes.items() if cls.__module__ == errors.__name__}
    assert {name: tuple(base.__name__ for base in cls.__bases__) for name, cls in found.items()} == TREE
    for name, cls in found.items():
        assert getattr(tj, name) is cls and name in tj.__all__ and cls.__doc__


def test_the_drawing_shows_the_tree():
    for name, bases in TREE.items():
        natives = [base for base in bases if hasattr(builtins, base)]
        drawn = rf"(?m)^[ │├└─]*{name}(?! ?\w)" if not natives else rf"(?m)^[ │├└─]*{name} \({natives[0]}\)"
        assert re.search(drawn, errors.__doc__), name


@pytest.mark.parametrize(
    ("make", "error", "builtin", "text"),
    [
        (
            lambda x: dlarray({1, 2}),
            errors.ArgumentError,
            TypeError,
            "dlarray: expected an array, a number or a",
        ),
        (
            lambda x: dlarray([[1], [1, 2]]),
            errors.ArgumentError,
            TypeError,
            "dlarray: cannot make an array of list",
        ),
        (
            lambda x: dlarray("text"),
            errors.DTypeError,
            TypeError,
            "dlarray: data of type <U4 is not supported",
        ),
        (
            lambda x: dlarray(np.zeros(1, "m8[s]")),
            errors.DTypeError,
            TypeError,
            "dlarray: data of type timedelta64.s. is not supported",
        ),
        (
            lambda x: dlarray([x, "x"]),
            errors.ArgumentError,
            TypeError,
            "a list that holds traced dlarrays would lose",
        ),
        (
            lambda x: tj.add(x, [[x], [None]]),
            errors.ArgumentError,
            TypeError,
            "add: a list that holds traced dlarrays",
        ),
        (lambda x: x + None, errors.ArgumentError, TypeError, "add: expected an array, a number"),
        (
            lambda x: tj.add(x, [1, 2, 3]),
            errors.DimsError,
            ValueError,
            "add: operands of sizes 2 and 3 do not align",
        ),
        (lambda x: x[5], errors.BoundsError, IndexError, "index 5 is out of range"),
        (lambda x: dlarray(x, "CC"), errors.DimsError, ValueError, "has the label 'C' 2 times"),
    ],
)
def test_errors_are_builtin_errors_as_well(make, error, builtin, text):
    with pytest.raises(error, match=text) as caught:
        dlfeval(make, np.ones(2))
    assert isinstance(caught.value, builtin) and isinstance(caught.value, errors.TraceJitError)
    assert type(caught.value) is error and str(caught.value).endswith(".")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.text[:40])
def test_a_message(row):
    assert outcome(row)[:2] == (row.error, row.text)


WITHOUT_ROW = {  # statement: why no row provokes it
    "__init__.__getattr__: has no attribute": "Python's own text",
    "nn.__init__.__getattr__: has no attribute": "as above",
    "autodiff.reverse.gradient: : its adjoint gives": "a mistake in the record of an op",
    "codegen.device.sizes.refuse_if_too_large: : a GPU's kernel takes arrays of up to": "memory: tests/compiled/device",
    "codegen.device.sizes.refuse_if_too_many: arguments; this one has": "tests/compiled/device",
    "traces.record_on_device.check: ": "as above",
    "record.selections.__getattr__: ": "Python's own text",
    "capture.asked.asked: the arguments of": "the stack of a frame that this Python lays out in another way",
    "codegen.device.work.emit_kernel: : a kernel of the CPU cannot run on a de": "tests/unit/codegen/device",
    "codegen.device.work.emit_kernel: : a function of Python cannot run on a d": "as above",
    "config._folder: is not valid: it is relative, and there": "a deleted current folder: tests/unit/test_config.py",
    "ops.matrix_ufuncs.matrix_ufunc: : the NumPy that is installed has no suc": "another version of NumPy",
    "ops.fourier_ufuncs.fourier_ufunc: : the NumPy that is installed has no suc": "as above",
    "ops.fourier.numbers: is made of fft_lines: passes/graph/compl": "a pass replaces these ops before",
    "ops.order._no_kernel: sort: graphs that are compiled have part": "a pass replaces these ops before",
    "ops.reduce._found_with_extremum: the extremum is computed, and then found": "a pass replaces these ops before",
    "ir.verify: , but its op infers": "verify finds mistakes of passes: tests/unit/passes",
    "ir.verify: a graph output is not defined in the gra": "as above",
    "ir.verify: assigns a value twice": "as above",
    "ir.verify: holds data of another type or size": "as above",
    "ir.verify: uses a value that is not defined before": "as above",
    "ir.verify: without the casts that it needs": "as above",
    "util.room.check_room: MiB of address space are left to this pr": "a limit of the process: "
    "tests/process/runtime/test_limits.py",
    "util.room.check_stack: KiB. Raise the limit (ulimit -s, threadi": "tests/unit/util/test_room.py",
    "nn.check_layer._require: ": "a line of a report: tests/unit/nn/test_custom_layers.py",
    "functions.numpy_api.by_value.__get__: 'dlarray' object has no attribute": "Python's own text",
    "functions.numpy_api.polynomials._warn_of_rank: Singular matrix": "NumPy's own text",
    "record.number.__class__: the class of a number cannot be set": "no user holds a Number's class",
    "record.number.__getattr__: ' object has no attribute '": "Python's own text",
    "record.number.__getattr__: a number that an accelerated function wa": "where objects are laid out in another way",
    "record.number.__getitem__: ' object is not subscriptable": "Python's own text",
    "record.number.__index__: ' object cannot be interpreted as an int": "Python's own text",
    "record.number.dtype: ' object has no attribute 'dtype'": "Python's own text",
    "util.locks.check_compiler: nothing can be compiled or loaded in thi": "forks: tests/process/util/test_locks.py",
    "util.uninterrupted.result: a signal handler forked this process whi": "as above",
    "util.named_tuples._make: arguments, got": "as typing says it: tests/unit/util/test_named_tuples.py",
    "util.named_tuples._replace: Got unexpected field names:": "as typing says it",
    "util.named_tuples.__new__: : a field without a default follows one": "a mistake of ours, found at import",
    "traces.record._run: ": "no message: the call is recorded again",
    "testing._check: check_gradients: the derivative of": "an op with a wrong adjoint: tests/unit/test_testing.py",
}
IN_FILES = ("cache", "commands", "compile", "describe", "exports", "passes", "runtime", "store", "view")


@pytest.mark.slow
def test_a_message_that_can_be_provoked_has_a_row():
    """The messages of folders that need files or a compiler have theirs in tests/process/test_messages.py."""
    missing = not_reached(set().union(*(outcome(row).statements for row in ROWS)))
    assert {name for name in missing if name.partition(".")[0] not in IN_FILES} == set(WITHOUT_ROW)


def test_every_warning_has_a_row():
    categories = {row.error for row in ROWS if issubclass(row.error, tj.TraceJitWarning)}
    others = {tj.TraceJitWarning, tj.CacheWarning}  # the latter: tests/process/test_messages.py
    assert categories | others == {cls for name, cls in vars(errors).items() if name.endswith("Warning")}


class TestPlaces:
    def test_unknown(self):
        from tracejit.record.recorder import describe_location

        assert describe_location(None) == "an unknown place" and describe_location(("a.py", 3)) == "a.py:3"

    @pytest.mark.filterwarnings("ignore:.* while it is recorded only")
    def test_an_array_made_by_numpy_on_our_behalf(self):
        kept = []
        keep = dlaccelerate(lambda x: kept.insert(0, np.linalg.norm(x)))
        with pytest.raises(
            TraceError, match=rf"made at {re.escape(__file__)}:\d+ while .*lambda> was evaluated"
        ):
            dlfeval(lambda x: keep(x) or kept[0] + 1, np.ones(2))

    def test_an_object_that_is_no_array_although_it_says_so(self):
        class Broken:
            def __array__(self, dtype=None, copy=None):
                raise RuntimeError("no data")

        with pytest.raises(ArgumentError, match="dlarray: cannot make an array of Broken: no data"):
            dlarray(Broken())
