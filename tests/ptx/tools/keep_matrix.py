#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keeps a part of what ask_matrix.py was told, for tests/ptx/matrix_answers.c.

    python3 tests/ptx/tools/keep_matrix.py [--all] matrix.bin.gz tests/ptx/answers/matrix.txt

A form has a line `ask NUMBER A COUNT B COUNT C COUNT META SELECTORS INSTRUCTION` (COUNT: registers of a
lane), and then for each case that is kept `case NUMBER` and the result registers of lane 0, lane 1 and
so on. Of integers and doubles fewer cases are kept than of other floats. With --all everything is kept.
"""
import argparse
import gzip
import json

from matrix_forms import CASES, FORMATS, FORMS

KEPT = range(2, 8)  # one case of each style, twelve bits of metadata
FEW = (3, 5)


def cases_of(result, everything):
    if everything:
        return range(CASES)
    return FEW if result in ("s32", "f64") else KEPT


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="keep every case")
    parser.add_argument("source")
    parser.add_argument("target")
    options = parser.parse_args()
    with gzip.open(options.source, "rb") as file, open(options.target, "w") as out:
        assert json.loads(file.readline()) == [form[0] for form in FORMS]
        print("# SPDX-License-Identifier: Apache-2.0", file=out)
        print("# What an NVIDIA H200 answered: written by tools/keep_matrix.py.", file=out)
        for number, (text, a, b, c, meta) in enumerate(FORMS):
            print("ask", number, *a, *b, *c, *(meta or ("-", 0)), text, file=out)
            width = 8 if FORMATS[c[0]][0] == 64 else 4
            for case in range(CASES):
                results = file.read(32 * c[1] * width)
                if case in cases_of(c[0], options.all):
                    print("case", case, file=out)
                    words = [int.from_bytes(results[at:at + width], "little")
                             for at in range(0, len(results), width)]
                    for at in range(0, len(words), 16):
                        print(*("%x" % word for word in words[at:at + 16]), file=out)
        assert not file.read(1)


if __name__ == "__main__":
    main()
