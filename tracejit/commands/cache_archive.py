# SPDX-License-Identifier: BSD-3-Clause
"""`tracejit cache pack` and `unpack`: the cache as one file."""

import argparse
from typing import Any

from tracejit.commands.arguments import add_command
from tracejit.commands.output import Result


def add(verbs: Any) -> None:
    """Add the commands to a parser."""
    pack = add_command(
        verbs, "pack", _pack, "write kernels and programs into one file, for machines of the same kind"
    )
    pack.add_argument("file", metavar="FILE")
    unpack = add_command(verbs, "unpack", _unpack, "check a file that pack wrote, and put it into the cache")
    unpack.add_argument("file", metavar="FILE")
    unpack.add_argument(
        "--sha256", metavar="HASH", help="fail unless the file has this hash, as printed by pack"
    )


def _pack(arguments: argparse.Namespace) -> Result:
    from tracejit.cache import archive  # imports tarfile

    packed = archive.pack(arguments.file)
    return Result(packed, str(packed))


def _unpack(arguments: argparse.Namespace) -> Result:
    from tracejit.cache import archive  # imports tarfile

    unpacked = archive.unpack(arguments.file, arguments.sha256)
    return Result(unpacked, str(unpacked))
