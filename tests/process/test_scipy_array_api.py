# SPDX-License-Identifier: BSD-3-Clause
"""SciPy's array-API mode: functions of SciPy that take dlarrays, recorded, replayed and differentiated."""

import os
import subprocess
import sys

PROGRAM = """
import numpy as np, scipy.special as special, scipy.stats as stats, scipy.signal as signal, tracejit as tj
import scipy.integrate as integrate
X = np.array([0.3, 0.7, 0.9, 0.45])
CALLS = {
    "special.logsumexp": special.logsumexp, "special.softmax": special.softmax,
    "special.log_softmax": special.log_softmax,
    "special.gammaln": special.gammaln,
    "special.betainc": lambda x: special.betainc(2.0, 3.0, x),
    "special.xlogy": lambda x: special.xlogy(x, x), "stats.skew": stats.skew, "stats.kurtosis": stats.kurtosis,
    "stats.gmean": stats.gmean, "stats.hmean": stats.hmean, "stats.zscore": stats.zscore, "stats.moment": stats.moment,
    "stats.ttest_1samp": lambda x: stats.ttest_1samp(x, 0.0).pvalue,
    "stats.pearsonr": lambda x: stats.pearsonr(x, x * x).statistic, "stats.entropy": stats.entropy,
    "special.polygamma": lambda x: special.polygamma(1, x), "signal.hilbert": lambda x: signal.hilbert(x).imag,
    "integrate.simpson": lambda x: integrate.cumulative_simpson(x, dx=0.1),
    "signal.detrend": signal.detrend, "signal.convolve": lambda x: signal.convolve(x, x, method="direct"),
    "signal.medfilt": signal.medfilt,
}
for name, call in CALLS.items():
    try:
        want = call(X)
        step = tj.dlaccelerate(lambda x: (call(x), tj.dlgradient((call(x) * np.arange(np.size(want))).sum(), x)))
        for _ in range(3):
            found, slope = step(X)
        h = 1e-6
        near = [(call(X + s * h) * np.arange(np.size(want))).sum() for s in (1, -1)]
        good = np.allclose(tj.extractdata(found), want, rtol=1e-12) and np.isclose(
            tj.extractdata(slope).sum(), (near[0] - near[1]) / (2 * h), rtol=1e-5, atol=1e-7)
        print(name, "works" if good and step.stats.hits else f"wrong {found} {want} {slope}")
    except Exception as error:
        print(name, type(error).__name__, str(error)[:120])
"""


def outcomes() -> dict[str, str]:
    """Return what each function of SciPy does, in a process in that mode."""
    environment = {**os.environ, "SCIPY_ARRAY_API": "1", "TRACEJIT_BACKEND": "python"}
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return dict(line.split(" ", 1) for line in found.stdout.splitlines())


WORK = {
    "special.logsumexp", "special.softmax", "special.log_softmax", "special.xlogy", "stats.skew", "stats.kurtosis",
    "stats.gmean", "stats.hmean", "stats.zscore", "stats.moment", "special.gammaln", "special.betainc",
    "stats.ttest_1samp", "stats.pearsonr", "stats.entropy", "special.polygamma", "signal.hilbert", "integrate.simpson",
    "signal.detrend", "signal.convolve",
}  # fmt: skip


def test_functions_that_follow_the_standard_are_replayed_and_differentiated() -> None:
    """Others are called by the program, and have no derivative."""
    found = outcomes()
    assert {name for name, what in found.items() if what == "works"} == WORK
    assert all("which has no derivative" in found[name] for name in found.keys() - WORK)
    assert found.keys() - WORK == {"signal.medfilt"}
