# SPDX-License-Identifier: Apache-2.0
"""`python -m bulkhead` and the script `bulkhead`: the command of the library."""

import os
import sys

from ._errors import refused


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    program = os.path.join(here, "bin", "bulkhead")
    if not os.access(program, os.X_OK):
        raise SystemExit(
            str(refused(f"{program} is not there", "install the package: pip install ."))
        )
    os.execv(program, ["bulkhead", *sys.argv[1:]])


if __name__ == "__main__":
    main()
