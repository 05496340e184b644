# SPDX-License-Identifier: BSD-3-Clause
"""A quantum circuit: rotations of single qubits, signs between neighbours, and the energy of a chain of spins."""

from typing import Any

import numpy as np

from benchmarks.programs.program import Words, gradients

QUBITS, LAYERS = 8, 3


def circuit(words: Words, angles: Any, signs: Any, energies: Any) -> Any:
    """Return the energy of the state that angles prepare."""
    xp = words.np
    state = np.zeros(2**QUBITS, complex)
    state[0] = 1
    for layer in range(LAYERS):
        for qubit in range(QUBITS):
            c, s = xp.cos(angles[layer, qubit, 0] / 2), xp.sin(angles[layer, qubit, 0] / 2)
            phase = xp.exp(0.5j * angles[layer, qubit, 1])
            gate = xp.stack([xp.stack([c / phase, -s / phase]), xp.stack([s * phase, c * phase])])
            state = xp.einsum("ab,ibj->iaj", gate, state.reshape(2**qubit, 2, -1))
        state = state.reshape(-1) * signs
    energy = (energies * xp.abs(state) ** 2).sum()
    for qubit in range(QUBITS):
        pairs = state.reshape(2**qubit, 2, -1)
        energy = energy - 2 * xp.real(xp.conj(pairs[:, 0]) * pairs[:, 1]).sum()
    return energy


def circuit_data(rng: np.random.Generator) -> tuple[Any, ...]:
    bits = (np.arange(2**QUBITS)[:, None] >> np.arange(QUBITS)) & 1
    signs = (-1.0) ** (bits[:, 1:] * bits[:, :-1]).sum(1)
    energies = -((1 - 2 * bits[:, 1:]) * (1 - 2 * bits[:, :-1])).sum(1).astype(float)
    return rng.uniform(0, 2 * np.pi, (LAYERS, QUBITS, 2)), signs, energies


PROGRAMS = (gradients("quantum circuit", circuit, circuit_data),)
