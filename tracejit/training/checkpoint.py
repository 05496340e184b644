# SPDX-License-Identifier: BSD-3-Clause
"""Checkpoints: all that a training needs to go on as if it had not stopped, in one file of arrays.

Note [checkpoints]
A file has the arrays of the network and of the solver by name, as np.savez writes them, and the rest as JSON: counters,
the order of the observations and the place in it, the state of random numbers, the history. Nothing in it is executed
when it is read. It is written beside its place and moved there, so that a checkpoint is whole or not there.
"""

import json
import os
import re
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np

from tracejit.array import dlarray
from tracejit.errors import ArgumentError
from tracejit.nn.network import dlnetwork
from tracejit.util.named_tuples import NamedTuple
from tracejit.util.text import brief

_NAME = re.compile(r"checkpoint_(\d+)\.npz")
_META = "training"


class Saved(NamedTuple):
    """The state of a solver, as a checkpoint holds it.

    tables      tables of arrays, by name
    arrays      other arrays, by name
    numbers     numbers and texts, by name
    """

    tables: dict[str, Any]
    arrays: Mapping[str, np.ndarray] = {}
    numbers: Mapping[str, Any] = {}


def save(folder: str, iteration: int, tables: dict[str, Any], solver: Saved, meta: dict[str, Any]) -> str:
    """Write a checkpoint and return its path.

    Args:
        folder: made if it is not there.
        iteration: its number.
        tables: tables of the network's arrays, by name.
        solver: the state of the solver.
        meta: what JSON can hold.

    Raises:
        ArgumentError: the file cannot be written.
    """
    path = os.path.join(folder, f"checkpoint_{iteration}.npz")
    arrays = {
        f"{name}/{row.layer}/{row.parameter}": _plain(np.asarray(row.value))
        for name, rows in (tables | solver.tables).items()
        for row in rows
    }
    text = np.array(json.dumps(meta | {"solver_state": solver.numbers}))
    try:
        os.makedirs(folder, exist_ok=True)
        beside = f"{path}.{os.getpid()}.part"
        try:
            with open(beside, "wb") as file:
                np.savez(file, **arrays, **solver.arrays, **{_META: text})  # type: ignore[arg-type]
            os.replace(beside, path)
        finally:
            if os.path.exists(beside):
                os.remove(beside)
    except OSError as error:
        raise ArgumentError(
            f"trainnet: the checkpoint {path} cannot be written ({error.strerror}); set checkpoint_path to a folder of "
            "your own."
        ) from error
    return path


def _plain(array: np.ndarray) -> np.ndarray:
    """Return an array of bfloat16, whose dtype files do not name, as integers."""
    return array.view(np.uint16) if array.dtype.kind == "V" else array


def latest(path: Any) -> str:
    """Return a checkpoint's path: what was given, or the last one in that folder.

    Raises:
        ArgumentError: there is none.
    """
    try:
        given = os.fsdecode(path)
    except Exception:
        raise ArgumentError(
            f"trainnet: resume must be the path of a checkpoint or of a folder with some, not {brief(path)}."
        ) from None
    if not os.path.isdir(given):
        return given
    numbers = [int(match[1]) for name in os.listdir(given) if (match := _NAME.fullmatch(name))]
    if not numbers:
        raise ArgumentError(f"trainnet: resume: the folder {given} has no checkpoint.")
    return os.path.join(given, f"checkpoint_{max(numbers)}.npz")


class Checkpoint:
    """The arrays and the counters in a checkpoint.

    Args:
        path: of the file.

    Raises:
        ArgumentError: the file cannot be read, or is no checkpoint.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            with open(path, "rb") as opened:
                file = np.load(opened, allow_pickle=False)
                self._arrays = dict(file) if isinstance(file, Mapping) else {}  # a file .npy is one array
            self.meta: dict[str, Any] = json.loads(str(self._arrays[_META]))
            if not isinstance(self.meta, dict):
                raise ValueError("the counters are not by name")
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else "it is no checkpoint"
            raise ArgumentError(f"trainnet: resume: {path} cannot be read ({why}).") from error

    def table(self, name: str, like: Any, keeps_dtypes: bool = True) -> dict[str, dict[str, Any]]:
        """Return the arrays of a table, in dicts by layer and parameter, with the labels of another one.

        Args:
            name: of the table.
            like: the other table.
            keeps_dtypes: whether training leaves dtypes as they are. Those of a state may change: statistics of float32
                beside data or weights of float64 are float64 after the first step.

        Raises:
            ArgumentError: an array is not there, or has a different size or dtype.
        """
        found: dict[str, dict[str, Any]] = {}
        for row in like:
            array = self._arrays.get(f"{name}/{row.layer}/{row.parameter}")
            if array is not None and row.value.dtype.kind == "V" and array.dtype == np.uint16:
                array = array.view(row.value.dtype)
            if (
                array is None
                or array.shape != row.value.shape
                or (keeps_dtypes and array.dtype != row.value.dtype)
            ):
                have = "no such array" if array is None else f"one of {array.shape} {array.dtype}"
                raise ArgumentError(
                    f"trainnet: resume: {self.path} is of another network: for {row.layer}/{row.parameter} of "
                    f"{row.value.shape} {row.value.dtype} it has {have}. Pass the network that was trained."
                )
            found.setdefault(row.layer, {})[row.parameter] = dlarray(array, row.value.format)
        return found

    def array(self, name: str) -> np.ndarray:
        """Return an array that is in no table.

        Raises:
            ArgumentError: it is not there.
        """
        if name not in self._arrays:
            raise ArgumentError(f"trainnet: resume: {self.path} is no checkpoint: it has no array {name}.")
        array: np.ndarray = self._arrays[name]
        return array

    def network(self, name: str, net: dlnetwork) -> dlnetwork:
        """Return a network with the arrays that were saved under a name."""
        net = net.with_learnables(self.table(f"{name}.learnables", net.learnables))
        if not len(net.state):
            return net
        return net.with_state(self.table(f"{name}.state", net.state, keeps_dtypes=False))


def tables_of(name: str, net: dlnetwork) -> dict[str, Any]:
    """Return the tables of a network by the names that network() reads."""
    return {f"{name}.learnables": net.learnables, f"{name}.state": net.state}
