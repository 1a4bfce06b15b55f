#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keeps a part of what ask_textures.py was told, for tests/ptx/texture_answers.c.

    python3 tests/ptx/tools/keep_textures.py [--all] textures.txt.gz tests/ptx/answers/textures.txt

Of each question at most a number of rows, evenly spaced, stays; all rows of images with odd sizes, which
show how coordinates are rounded; with --all every row. Questions that the driver refused go.
"""
import argparse
import gzip

ROWS = 24


def blocks(path):
    """Yields the first line of each block, and the lines after it."""
    head, lines = None, []
    with gzip.open(path, "rt") as file:
        for line in map(str.rstrip, file):
            if line.startswith(("image ", "fetch ", "store ")):
                if head:
                    yield head, lines
                head, lines = line, []
            else:
                lines.append(line)
    if head:
        yield head, lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="keep every row")
    parser.add_argument("source")
    parser.add_argument("target")
    options = parser.parse_args()
    with open(options.target, "w") as out:
        print("# SPDX-License-Identifier: Apache-2.0", file=out)
        print("# What an NVIDIA H200 answered: written by tools/keep_textures.py.", file=out)
        for head, lines in blocks(options.source):
            if lines[0].startswith("refused"):
                continue
            print(head, file=out)
            whole = options.all or head.startswith(("image ", "fetch odd_"))
            most = len(lines) if whole else min(len(lines), ROWS)
            for n in range(most):
                print(lines[n * len(lines) // most], file=out)


if __name__ == "__main__":
    main()
