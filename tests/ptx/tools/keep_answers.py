#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keeps a part of what ask_device.py was told, for tests/ptx/recorded.c.

    python3 tests/ptx/tools/keep_answers.py answers.txt.gz tests/ptx/answers/h200.txt

Of each set of inputs at most a number of rows, evenly spaced, stays; the small sets at the edges of
formats stay whole. Answers to instructions that are no longer asked go.
"""
import gzip
import sys

from ask_instructions import QUESTIONS

ROWS = 64
WHOLE = {"f32": 256, "small64": 400, "small32": 200, "tiny32": 200, "fns": 320, "field64": 160,
         "divide": 400, "exponents32": 512, "all16": 1024, "all8": 256, "bytes": 24, "fp8": 200,
         "products": 120}


def blocks(path):
    """Yields the words of each block's first line, and the lines after it."""
    head, lines = None, []
    with gzip.open(path, "rt") as file:
        for line in file:
            if line.startswith(("inputs ", "ask ")):
                if head:
                    yield head, lines
                head, lines = line.split(), []
            else:
                lines.append(line.rstrip("\n"))
    if head:
        yield head, lines


def main(source, target):
    kept = {}
    wanted = {f"ask {bits} {name} {text}" for bits, name, text in QUESTIONS}
    with open(target, "w") as file:
        print("# SPDX-License-Identifier: Apache-2.0", file=file)
        print("# What an NVIDIA H200 answered: written by tools/keep_answers.py.", file=file)
        for head, lines in blocks(source):
            if head[0] == "inputs":
                name, count = head[1], int(head[2])
                most = min(count, WHOLE.get(name, ROWS))
                kept[name] = [n * count // most for n in range(most)]
                print("inputs", name, most, file=file)
                for n in kept[name]:
                    print(lines[n], file=file)
            elif " ".join(head) in wanted:
                results = " ".join(lines).split()
                print(*head, file=file)
                for at in range(0, len(kept[head[2]]), 16):
                    print(*(results[n] for n in kept[head[2]][at:at + 16]), file=file)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
