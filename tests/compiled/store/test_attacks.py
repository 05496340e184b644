# SPDX-License-Identifier: BSD-3-Clause
"""Code that somebody planted in the cache is not run: kernels are compiled instead, and results are right."""

import hashlib
import os
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from half import half, key_of_half, run_half

from tracejit import config
from tracejit.codegen.names import NAME, named
from tracejit.compile.key import key_of
from tracejit.compile.registry import KernelRegistry
from tracejit.errors import CacheWarning
from tracejit.program import Kernel
from tracejit.store.entry import StoredKernel, decode, encode
from tracejit.store.kernels import SUFFIX, store

NOBODY = 4321


def third() -> Kernel:
    return named(
        f"def {NAME}(args):\n    x = read_f32(args[0])\n    o = write_f32(args[1], 0)\n    o[0] = x[0] - f32(1.0)\n",
        "third",
    )


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with the kernels half and third, which were compiled by another process."""
    monkeypatch.setattr(config.settings, "cache_dir", str(tmp_path / "cache"))
    assert [run_half(KernelRegistry().address(kernel)) for kernel in (half(), third())] == [1.5, 2.0]
    return tmp_path / "cache"


def file_of(root: Path, kernel: Kernel) -> Path:
    key = key_of("kernel", kernel.text)
    assert key is not None
    return root / "kernels" / (key.name + SUFFIX)


def entries(root: Path) -> tuple[StoredKernel, StoredKernel]:
    first, second = (
        decode(file_of(root, kernel).read_bytes(), file_of(root, kernel).name.removesuffix(SUFFIX))
        for kernel in (half(), third())
    )
    return first, second


def is_compiled_again(told: str = "") -> None:
    """Check that half is compiled, and that this is said where the whole folder is not used."""
    from tracejit.store import kernels as stores

    stores._store.cache_clear()  # as in a new process
    table = KernelRegistry()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert run_half(table.address(half())) == 1.5
    assert (table.compiled, table.loaded) == (1, 0)
    assert [each.category for each in caught] == ([CacheWarning] if told else [])
    assert all(told in str(each.message) for each in caught)
    stores._store.cache_clear()


def is_written_over() -> None:
    table = KernelRegistry()
    assert run_half(table.address(half())) == 1.5
    assert (table.compiled, table.loaded) == (0, 1)


as_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="gives files to other users"
)


@as_root
@pytest.mark.parametrize("place", ["", "kernels"])
def test_a_folder_of_another_owner(place: str, root: Path) -> None:
    os.chown(root / place, NOBODY, -1)
    is_compiled_again(f"because the folder {root / place} belongs to another user (number {NOBODY})")


@as_root
def test_an_entry_of_another_owner(root: Path) -> None:
    os.chown(file_of(root, half()), NOBODY, -1)
    is_compiled_again()
    is_written_over()


@pytest.mark.parametrize("place", ["", "kernels"])
def test_a_folder_that_everybody_may_write_to(place: str, root: Path) -> None:
    (root / place).chmod(0o777)
    is_compiled_again(f"because other users may write to the folder {root / place} (mode 777)")


@pytest.mark.parametrize("place", ["", "kernels"])
def test_a_folder_that_is_a_link(place: str, root: Path, tmp_path: Path) -> None:
    (root / place).rename(tmp_path / "aside")
    (root / place).symlink_to(tmp_path / "aside")
    is_compiled_again(f"because the folder {root / place} is a link")


def test_an_entry_that_is_a_link(root: Path, tmp_path: Path) -> None:
    path = file_of(root, half())
    path.rename(tmp_path / "aside")
    path.symlink_to(tmp_path / "aside")
    is_compiled_again()
    assert not path.is_symlink()
    is_written_over()


def without_its_hash(first: StoredKernel, second: StoredKernel) -> bytes:
    content = bytearray(encode(first))
    content[-1] ^= 1
    return bytes(content)


def with_code_of_another(first: StoredKernel, second: StoredKernel) -> bytes:
    """Only the object code is exchanged."""
    content = encode(first)
    return content[: -len(first.code)] + second.code


def with_code_of_another_and_its_hash(first: StoredKernel, second: StoredKernel) -> bytes:
    return encode(first._replace(code=second.code))


def with_code_and_symbol_of_another(first: StoredKernel, second: StoredKernel) -> bytes:
    return encode(first._replace(code=second.code, symbol="no_such_function"))


def as_another_entry(first: StoredKernel, second: StoredKernel) -> bytes:
    return encode(second)


def under_a_forged_name(first: StoredKernel, second: StoredKernel) -> bytes:
    body = encode(second).partition(b"\n")[2].replace(second.key.name.encode(), first.key.name.encode())
    return b"tracejit entry 1 " + hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def with_unknown_names(first: StoredKernel, second: StoredKernel) -> bytes:
    """LLVM would end the process."""
    return encode(first._replace(code=first.code.replace(b"\0" + first.symbol.encode()[:4], b"\0nowh")))


def with_code_for_another_machine(first: StoredKernel, second: StoredKernel) -> bytes:
    return encode(first._replace(code=first.code[:18] + b"\xf3\0" + first.code[20:]))


@pytest.mark.parametrize(
    "plant",
    [
        without_its_hash, with_code_of_another, with_code_of_another_and_its_hash, with_code_and_symbol_of_another,
        as_another_entry, under_a_forged_name, with_unknown_names, with_code_for_another_machine,
    ],
)  # fmt: skip
def test_an_entry_that_is_planted(plant: Callable[[StoredKernel, StoredKernel], bytes], root: Path) -> None:
    path = file_of(root, half())
    before = path.read_bytes()
    path.write_bytes(plant(*entries(root)))
    assert path.read_bytes() != before
    is_compiled_again()
    is_written_over()


@pytest.mark.parametrize("name", ["../planted", "..", "a/../../planted", "/tmp/planted"])
def test_a_path_out_of_the_folder_is_not_a_key(name: str, root: Path) -> None:
    """Keys are hashes; no text of a user becomes a path."""
    key = key_of_half()
    changed = key._replace(parts=(*key.parts[:1], ("source", name), *key.parts[2:]))
    assert len(changed.name) == 64
    assert set(changed.name) <= set("0123456789abcdef")
    kept = store()
    assert kept is not None
    assert kept.load(changed) is None
