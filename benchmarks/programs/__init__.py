# SPDX-License-Identifier: BSD-3-Clause
"""Programs of the kinds that people differentiate, each written once in words that tracejit and JAX share."""

from benchmarks.programs import fitting, physics, quantum, statistics
from benchmarks.programs.program import Program

PROGRAMS: dict[str, Program] = {
    program.name: program for module in (statistics, fitting, physics, quantum) for program in module.PROGRAMS
}
