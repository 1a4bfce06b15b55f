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

KEPT = (*range(2, 8), 16)  # one case of each style
FEW = (3, 5)


def width_of(name):
    return 8 if FORMATS[name][0] == 64 else 4


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
        numbers = {form[0]: number for number, form in enumerate(FORMS)}
        asked = [(numbers[text], FORMS[numbers[text]]) for text in json.loads(file.readline())]
        data = file.read()
        sizes = [32 * form[3][1] * width_of(form[3][0]) for _, form in asked]
        cases, rest = divmod(len(data), sum(sizes))
        assert rest == 0 and cases <= CASES
        print("# SPDX-License-Identifier: Apache-2.0", file=out)
        print("# What an NVIDIA H200 answered: written by tools/keep_matrix.py.", file=out)
        for (number, (text, a, b, c, meta)), size in zip(asked, sizes):
            print("ask", number, *a, *b, *c, *(meta or ("-", 0)), text, file=out)
            width = width_of(c[0])
            for case in range(cases):
                results, data = data[:size], data[size:]
                if case in cases_of(c[0], options.all):
                    print("case", case, file=out)
                    words = [int.from_bytes(results[at:at + width], "little")
                             for at in range(0, len(results), width)]
                    for at in range(0, len(words), 16):
                        print(*("%x" % word for word in words[at:at + 16]), file=out)


if __name__ == "__main__":
    main()
