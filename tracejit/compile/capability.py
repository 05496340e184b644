# SPDX-License-Identifier: BSD-3-Clause
"""The compute capability of a GPU; without Numba and LLVM."""

from typing import NamedTuple

from tracejit.errors import CodegenError

# The oldest versions of PTX that know a capability: older drivers read them. 7.8 is that of CUDA 11.8.
PTX_VERSIONS = {(7, 5): 78, (8, 0): 78, (8, 6): 78, (8, 9): 78, (9, 0): 78, (10, 0): 86, (12, 0): 87}


class Capability(NamedTuple):
    """The compute capability of a GPU."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"cuda {self.dotted}"

    @property
    def dotted(self) -> str:
        """The capability as NVIDIA writes it, such as 9.0."""
        return f"{self.major}.{self.minor}"

    @property
    def known(self) -> "Capability":
        """The greatest capability that LLVM writes PTX for and whose PTX this one runs.

        Raises:
            CodegenError: if there is none.
        """
        fitting = [Capability(*version) for version in PTX_VERSIONS if version <= self]
        if not fitting:
            least = ".".join(map(str, min(PTX_VERSIONS)))
            raise CodegenError(f"compute capability {self.major}.{self.minor}: expected {least} or greater.")
        return max(fitting)
