# SPDX-License-Identifier: BSD-3-Clause
"""`python -m tracejit` is the command `tracejit`."""

import sys

from tracejit.cli import main

if __name__ == "__main__":
    sys.exit(main())
