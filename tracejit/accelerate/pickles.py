# SPDX-License-Identifier: BSD-3-Clause
"""The ways in which accelerated functions are pickled: by reference, as functions are, or by value.

Note [pickles by value]
Picklers that send work to other processes (cloudpickle, those of joblib and Dask) pickle a function by value if the
other process could not import it: a function of __main__, of a notebook, or within another function. They do not know
accelerated functions, and treat them as pickle does. So an accelerated function finds out which pickler asks. Pickled
by value, it is its underlying function and its options. Both are set on an object that exists already, because the
function may refer to that object.
"""

import pickle
import sys
from typing import Any

_Pickler: Any = getattr(pickle, "_Pickler", pickle.Pickler)  # the one that is written in Python


def name_to_import(accelerated: Any, frame: Any) -> str | None:
    """Return the name by which an accelerated function is pickled; None to pickle it by value.

    Args:
        accelerated: the accelerated function.
        frame: the frame that asks for the pickle.
    """
    name, module = getattr(accelerated, "__qualname__", ""), getattr(accelerated, "__module__", "")
    target: Any = sys.modules.get(module)
    for step in name.split("."):
        target = getattr(target, step, None)
    if target is not accelerated:
        return None
    pickler = frame.f_locals.get("self")
    return None if _is_by_value(pickler) and _wants_by_value(pickler, module) else name


def _is_by_value(pickler: Any) -> bool:
    """Return whether an object is a pickler that pickles functions by value."""
    if not isinstance(pickler, (pickle.Pickler, _Pickler)):
        return False
    return hasattr(pickler, "reducer_override") or type(pickler).__module__.partition(".")[0] == "dill"


def _wants_by_value(pickler: Any, module: str) -> bool:
    """Return whether a pickler pickles functions of a module by value, although they can be imported here."""
    if module == "__main__":
        return True
    for kind in type(pickler).__mro__:
        registered = getattr(sys.modules.get(kind.__module__), "list_registry_pickle_by_value", None)
        if registered is not None:  # of cloudpickle, also where another package has a copy of it
            return any(module == name or module.startswith(f"{name}.") for name in registered())
    return False
