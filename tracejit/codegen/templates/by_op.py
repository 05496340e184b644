# SPDX-License-Identifier: BSD-3-Clause
"""The kernels of ops that are written as text, because they keep tiles in vector registers (codegen/templates/gemm.py).

Other kernels of ops are functions in kernels/loops/, which a generated adapter calls.
"""

from importlib import import_module

from tracejit.passes.loops.launches import KernelLaunch
from tracejit.program import Kernel

TEXTS = {
    "windows": "convolution",
    "channelwise": "convolution",
    "laid_out": "convolution_laid_out",
    "window_dots": "convolution_dots",
    "channels": "convolution_channels",
    "filters": "convolution_weights",
    "planes": "convolution_planes",
    "plane_sums": "convolution_planes",
    "winograd": "winograd",
    "winograd_weights": "winograd",
    "winograd_filters": "winograd",
    "winograd_sums": "winograd",
    "winograd_scattered": "winograd_scattered",
    "winograd_made": "winograd_made",
    "attention_forward": "attention",
    "attention_backward": "attention",
    "lstm_forward": "recurrent",
    "lstm_backward": "recurrent",
    "gru_forward": "recurrent",
    "gru_backward": "recurrent",
    "rnn_forward": "recurrent",
    "rnn_backward": "recurrent",
    "ctc_forward": "ctc",
    "ctc_backward": "ctc",
    "fft_lines": "fourier",
    "maxpool": "pooling",
    "maxpool_adjoint": "pooling",
    "maxpool_adjoint_planes": "pooling",
    "resample_planes": "resampling",
    "extremum_max": "extrema",
    "extremum_min": "extrema",
    "first_place": "extrema",
    **dict.fromkeys(
        [
            f"first_{fold}{by}"
            for fold in ("max", "min")
            for by in ("", "_by_2", "_by_minus_1", "_by_minus_2")
        ],
        "first_extrema",
    ),
    "order": "sorting",
    "partition": "sorting",
}
"""The module of this folder that writes a kernel, by the name of the launch; imported when it is needed."""

BESIDE_LOOPS = (
    "maxpool", "maxpool_adjoint", "maxpool_adjoint_planes", "resample_planes",
    "first_place", "order", "partition",
)  # fmt: skip
"""Those that have a function in kernels/loops/ too, for other CPUs, sizes and devices."""


def kernel(launch: KernelLaunch) -> Kernel | None:
    """Return the kernel of a launch, None if it is not written as text, or not for this dtype and CPU."""
    name = TEXTS.get(launch.name)
    if name is None:
        return None
    written: Kernel | None = import_module(f"tracejit.codegen.templates.{name}").kernel(launch)
    return written
