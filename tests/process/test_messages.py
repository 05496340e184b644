# SPDX-License-Identifier: BSD-3-Clause
"""The parts of the table of messages that are about files (tests/support/messages_on_disk.py, damaged_*.py)."""

import messages
import messages_devices
import pytest
from messages_on_disk import ROWS, FolderRow, Outcome, outcome
from raise_statements import not_reached

from tracejit import config


@pytest.fixture(scope="module")
def meet(tmp_path_factory: pytest.TempPathFactory):
    """Return a function that returns the outcome of a row, in a folder and with a cache of its own."""
    outcomes: dict[FolderRow, Outcome] = {}

    def meet(row: FolderRow) -> Outcome:
        if row not in outcomes:
            place = tmp_path_factory.mktemp("row")
            (place / "folder").mkdir()
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(config.settings, "cache_dir", str(place / "cache"))
                outcomes[row] = outcome(row, place / "folder")
        return outcomes[row]

    return meet


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.text[:40])
def test_a_message(row, meet):
    assert meet(row)[:2] == (row.error, row.text)


WITHOUT_ROW = {  # statement: why no row provokes it
    "cache.archive.unpack: changed while it was unpacked;": "another process writes: test_archive.py",
    "commands.demo._demo: cannot write to": "the demo trains a network first: tests/process/test_cli.py",
    "commands.output._plain: cannot be part of a result": "a mistake in a command",
    "compile.capability.known: compute capability": "a GPU of before 2018: tests/compiled/device",
    "compile.symbols._check_cpu: it is for a different kind of CPU": "caught: 'there is no function of that "
    "name in it'",
    "compile.symbols._elf: it is not an ELF file of 64 bits": "as above",
    "compile.symbols._elf: its sections have an unknown size": "as above",
    "compile.symbols._mach_o: it is not a Mach-O file of 64 bits": "as above",
    "compile.symbols._coff: it is not a COFF file of 64 bits": "as above",
    "compile.symbols.symbols: not an object file that can be loaded he": "as above",
    "compile.stages._in_threads: ": "caught: tests/process/runtime/test_thread_pool.py",
    "compile.device_target.ptx_of_lowered: : a device has no function": "as the next ones: tests/compiled/device",
    "compile.operations.leave_to_numba: ": "caught: Numba compiles it: tests/compiled/compile/test_structured.py",
    "compile.expressions.load: ": "caught: the variable gets memory: as above",
    "compile.llvm._object_file: ": "LLVM has no memory, or a defect",
    "compile.machine_words._call_value: ": "a kernel of tracejit that uses more than the subset that it is written in",
    "compile.machine_words._for: ": "as above",
    "compile.machine_words._statements: ": "as above",
    "compile.machine_words._store: ": "as above",
    "compile.machine_words._value: ": "as above",
    "compile.machine_words._checked: cannot be compiled: its source file chan": "an installation that changes "
    "while it runs: tests/compiled/compile",
    "compile.machine_words._definition: cannot be compiled: its source file is n": "an installation without source "
    "files: tests/compiled/compile",
    "describe.profile.profile: a program does not take the synthetic in": "a defect: tests/compiled/describe",
    "exports.loader._check_process: load:": "a build of Python that tracejit does not know: test_loader.py",
    "exports.loader.load: needs a package that cannot be imported": "a package is missing: test_loader.py",
    "exports.writer._captured_arrays: captured state changed during the export": "a thread writes: test_export.py",
    "exports.machine.checked_targets: export: object code for": "a machine that is not x86-64: test_export.py",
    "exports.machine.checked_targets: export: the source files of tracejit's k": "no source files are installed: "
    "test_export.py",
    "exports.device.__init__: ": "a forged folder: tests/compiled/device/test_exports.py",
    "exports.device._capability_of: code for": "as above",
    "exports.device.choose_code: . Export the function with capabilities=": "as above",
    'exports.device.code_of: . Export the function with target="cpu",': "a kernel that the linker refuses: as above",
    'exports.device.choose_code: Or export the function with target="cpu"': "as above",
    "exports.device.functions: load: the driver does not take the code": "as above",
    "exports.writer._program_for_device: it has no program for a GPU:": "an op without a form for devices",
    "exports.device.functions: load: the folder has no code of": "as above",
    "exports.values._encode_container: , of a class that is not written; pass i": "tests/compiled/exports",
    "exports.values._encode_container: , whose layers are not written; pass its": "tests/compiled/nn",
    "passes.graph.branches._infer_cond: cond: the bodies do not fit the operands": "a mistake of the recorder",
    "passes.graph.branches._infer_while: while: the body does not fit the operand": "as above",
    "passes.graph.branches._vjp_while: dlwhile: a loop whose length a value dec": "tests/support/messages_loops.py",
    "passes.graph.complex_parts.node: : an op of complex numbers that has no f": "a mistake in the record of an op",
    "passes.graph.scan._infer: scan: a step makes the carry": "a mistake of the recorder",
    "passes.graph.scan._infer: scan: the operands are": "as above",
    "passes.loops.bodies.launch_loop: a graph with a loop is selected without": "tests/support/messages_loops.py",
    "passes.loops.select.call: cannot be compiled.": "a mistake in the record of an op",
    "exports.values.encode_part: ; call the function with arrays of the h": "tests/compiled/device/test_runtime.py",
    "runtime.cuda.executable._refuse: of a program is": "as above",
    "runtime.cpu.__call__: of a program is": "a defect of tracejit",
    "runtime.cpu.__call__: an input that a program writes shares me": "a defect of tracejit",
    "runtime.object_layout.check_layout: the CPU back end cannot run here: this b": "a build of Python that tracejit "
    "does not know: tests/compiled/call",
    "runtime.object_layout.node_slots: the CPU back end cannot run here: this b": "as above",
    "runtime.object_layout.places_of: the CPU back end cannot run here: this b": "as above",
    "runtime.object_layout.slots: the CPU back end cannot run here: this b": "as above",
    "runtime.python._at: emitted code accesses element": "a defect of tracejit",
    "runtime.ufunc_loops._parts: there is no routine named": "no program has it: tests/unit/ops/test_special.py",
    "runtime.ufunc_loops._pair: has no loop": "as above",
    "runtime.ufunc_loops.head_of: the table of the ufunc": "a build of NumPy that tracejit does not know: as above",
    "store.entry._count: ": "caught: 'its header does not fit its content'",
    "store.entry._text: ": "as above",
    "store.folder._check: belongs to another user (number": "only root gives files away: test_loader.py",
    "store.folder._content: is too large to be an entry": "caught: 'the kernel <key> cannot be read'",
    "store.folder._opened: this system cannot open files relative t": "a system without os.open(dir_fd=...)",
    "store.folder._by_path: the folder": "as below",
    "store.folder._by_path: does not lie in the profile of this user": "Windows: tests/unit/store/test_opened.py",
    "store.opened.open: ": "as above",
    "store.opened.put: ": "as above",
    "store.programs._check_head: a head with values of wrong types": "caught: a damaged program is not listed",
    "store.programs._read_head: it was written by a different version of": "as above",
    "store.programs._read_head: its content does not agree with its hash": "as above",
    "store.programs.bad: its content does not agree with its hash": "caught: a line of what `cache verify` prints",
}
IN_FILES = ("cache", "commands", "compile", "describe", "exports", "passes", "runtime", "store", "view")


def test_a_message_that_can_be_provoked_has_a_row(meet):
    """The messages of other folders have theirs in tests/unit/test_errors.py."""
    of_devices = [messages.outcome(messages.Row(*row)).statements for row in messages_devices.ROWS]
    missing = not_reached(set().union(*of_devices, *(meet(row).statements for row in ROWS)))
    assert {name for name in missing if name.partition(".")[0] in IN_FILES} == set(WITHOUT_ROW)
