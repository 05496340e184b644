# SPDX-License-Identifier: BSD-3-Clause
"""The folder kernels/ of a checkout, under its installed name; a wheel holds that folder instead of this file."""

from pathlib import Path

__path__ = [str(Path(__file__).resolve().parents[2] / "kernels")]
