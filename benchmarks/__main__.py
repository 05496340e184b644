# SPDX-License-Identifier: BSD-3-Clause
"""``python -m benchmarks``: measures training steps side by side with other libraries and prints a table."""

import argparse
import fnmatch
import json
import os
import sys
from pathlib import Path

from benchmarks import report
from benchmarks.run import PEERS, Settings, best_rates, machine_rates, measure, versions
from benchmarks.workload import Workload
from benchmarks.workloads import BY_NAME, SWEEP, TABLE


def main(argv: list[str] | None = None) -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.partition(": ")[2])
    parser.add_argument(
        "names", nargs="*", help="workloads, by name or pattern (mlp-*); all of the table by default"
    )
    parser.add_argument("--list", action="store_true", help="print the names of all workloads")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write everything that was measured")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds, no torch.compile")
    parser.add_argument(
        "--sweep", action="store_true", help="measure how cost grows with batch, width, steps, leaves"
    )
    parser.add_argument("--ours", action="store_true", help="tracejit alone")
    parser.add_argument(
        "--threads", type=int, default=min(2, len(os.sched_getaffinity(0))), help="of each library"
    )
    parser.add_argument("--repeats", type=int, help="rounds; in each, every library has its turn")
    for library in PEERS:
        parser.add_argument(
            f"--{library}-python",
            metavar="PATH",
            help=f"the Python that {library} is installed in; by default this one",
        )
    args = parser.parse_args(argv)
    if args.list:
        print("\n".join(f"{workload.name:<14}{workload.title}" for workload in (*TABLE, *SWEEP)))
        return 0
    unknown = [name for name in args.names if not _chosen([name])]
    if unknown:
        parser.error(f"no workload is called {' or '.join(unknown)}; --list prints all names")
    chosen = _chosen(args.names) if args.names else list(SWEEP if args.sweep else TABLE)
    pythons = {library: getattr(args, f"{library}_python") for library in PEERS}
    for library, path in pythons.items():
        if path and not os.access(path, os.X_OK):
            parser.error(f"--{library}-python: {path} is no program")
    settings = Settings(
        threads=args.threads,
        rounds=args.repeats or (3 if args.quick else 7),
        turn_s=0.05 if args.quick else 0.1,
        compilers=not args.quick,
        peers=not args.ours,
        # Not resolved: the Python of a virtual environment is a link.
        pythons={library: os.path.abspath(path) for library, path in pythons.items() if path},
    )
    found = versions(settings)
    rates = [machine_rates(settings)]
    rows = []
    for number, workload in enumerate(chosen, 1):
        print(f"{number}/{len(chosen)} {workload.title}", file=sys.stderr, flush=True)
        rows.append(measure(workload, settings))
    rates.append(machine_rates(settings))
    print(report.text(rows, best_rates(rates), settings, found))
    if args.json:
        content = report.as_json(rows, best_rates(rates), settings, found)
        args.json.write_text(json.dumps(content, indent=1) + "\n")
    return 0


def _chosen(patterns: list[str]) -> list[Workload]:
    return [
        workload
        for name, workload in BY_NAME.items()
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
    ]


if __name__ == "__main__":
    sys.exit(main())
