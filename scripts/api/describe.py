#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a description of the C API for programs: bulkhead-api.json. Names, types and comments come
from the headers, sizes, offsets and values from the C compiler.

usage: describe.py OUTPUT CC HEADER...
"""

import json
import os
import re
import subprocess
import sys
import tempfile

from headers import Header, declarator, spelled, split_body, strip

# Constants that are macros: numbers, with the type that C gives them.
MACRO = re.compile(r"^#define (BH_\w+)\s+(?:\d+|UINT64_MAX)\b", re.M)
COMMENT = r"/\*((?:(?!\*/).)*)\*/\s*"


def comment_before(raw, pattern):
    """The text of the comment that stands right before a declaration; "" if there is none."""
    match = re.search(COMMENT + pattern, raw, flags=re.S)
    if not match:
        return ""
    lines = [line.strip().lstrip("*").strip() for line in match.group(1).splitlines()]
    return " ".join(line for line in lines if line)


def parameters_of(text):
    if text.strip() in ("void", ""):
        return []
    result = []
    for part in text.split(","):
        ctype, name, array = declarator(part)
        result.append({"name": name, "type": ctype + (f"[{array}]" if array else "")})
    return result


def fields_of(parts):
    """(name, type as text) of each member; those of a member that is a struct or a union follow it,
    as "u.value"."""
    for part in parts:
        if "{" in part:
            outer = re.search(r"(\w+)$", part).group(1)
            yield outer, part.split(None, 1)[0]
            inside = part[part.index("{") + 1 : part.rindex("}")]
            for name, ctype in fields_of(split_body(inside)):
                yield f"{outer}.{name}", ctype
            continue
        pointer = re.fullmatch(r"(.*)\(\*(\w+)\)\((.*)\)", part)
        if pointer:
            yield pointer.group(2), spelled(pointer.group(1)) + " (*)(" + pointer.group(3) + ")"
            continue
        first, *others = part.split(",")
        ctype, name, array = declarator(first)
        yield name, ctype + (f"[{array}]" if array else "")
        for other in others:
            stars = "*" * other.count("*")
            _, name, array = declarator("x " + other.replace("*", "").strip())
            base = ctype.rstrip(" *") + (" " + stars if stars else "")
            yield name, base + (f"[{array}]" if array else "")


def probe(cc, includes, structs, constants):
    """Sizes, offsets and values, printed by a program that the C compiler makes."""
    lines = ["#include <stdio.h>", "#include <stddef.h>"]
    lines += [f'#include "{path}"' for path in includes]
    lines += [
        '#define NUMBER(x) ((x) < 0 ? printf("%lld\\n", (long long)(x)) '
        ': printf("%llu\\n", (unsigned long long)(x)))',
        "int main(void) {",
    ]
    for name, fields in structs:
        lines.append(f"NUMBER(sizeof({name}));")
        for field in fields:
            lines.append(f"NUMBER(offsetof({name}, {field}));")
            lines.append(f"NUMBER(sizeof((({name} *)0)->{field}));")
    lines += [f"NUMBER({name});" for name in constants]
    lines.append("return 0; }")
    with tempfile.TemporaryDirectory() as folder:
        source, program = os.path.join(folder, "probe.c"), os.path.join(folder, "probe")
        with open(source, "w", encoding="utf-8") as file:
            file.write("\n".join(lines))
        subprocess.run(
            [
                cc,
                "-std=c11",
                "-w",
                "-I",
                os.path.dirname(os.path.dirname(includes[0])),
                source,
                "-o",
                program,
            ],
            check=True,
        )
        output = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    return iter(int(line) for line in output.split())


def describe(cc, paths):
    api = {
        "format": 1,
        "headers": [],
        "constants": [],
        "typedefs": [],
        "structs": [],
        "callbacks": [],
        "functions": [],
    }
    structs, constants = [], []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            raw = file.read()
        header, where = Header(strip(raw)), "bulkhead/" + os.path.basename(path)
        stability = re.search(r"\b(Stable|Experimental)\b", raw).group(1).lower()
        summary = re.search(r"\* bulkhead/\w+\.h: (.*?)\n \*\s*\n", raw, flags=re.S).group(1)
        common = {"header": where, "stability": stability}
        api["headers"].append(
            {
                "name": where,
                "stability": stability,
                "library": "libbulkhead-cuda" if where.endswith("/cuda.h") else "libbulkhead",
                "summary": re.sub(r"\s*\n \* ?", " ", summary),
            }
        )
        for base, name in header.typedefs:
            api["typedefs"].append({"name": name, "type": base, **common})
        for name in [name for names in header.enums for name in names] + MACRO.findall(raw):
            api["constants"].append({"name": name, **common})
            constants.append(name)
        for name, parts in header.structs.items():
            members = list(fields_of(parts))
            structs.append((name, [member[0] for member in members]))
            api["structs"].append(
                {
                    "name": name,
                    "handle": header.is_handle(name),
                    "doc": comment_before(raw, rf"typedef struct {name} {{"),
                    "fields": [{"name": field, "type": kind} for field, kind in members],
                    **common,
                }
            )
        for name, (result, text) in header.callbacks.items():
            api["callbacks"].append(
                {
                    "name": name,
                    "result": result,
                    "parameters": parameters_of(text),
                    "doc": comment_before(raw, rf"typedef \w+ {name}\("),
                    **common,
                }
            )
        for result, name, text in header.functions:
            api["functions"].append(
                {
                    "name": name,
                    "result": result,
                    "parameters": parameters_of(text),
                    "doc": comment_before(raw, rf"BH_API [^;(]*\b{name}\("),
                    **common,
                }
            )
    numbers = probe(cc, paths, structs, constants)
    for struct in api["structs"]:
        struct["size"] = next(numbers)
        for field in struct["fields"]:
            field["offset"], field["size"] = next(numbers), next(numbers)
    for constant in api["constants"]:
        constant["value"] = next(numbers)
    values = {constant["name"]: constant["value"] for constant in api["constants"]}
    api["version"] = ".".join(
        str(values[f"BH_VERSION_{part}"]) for part in ("MAJOR", "MINOR", "PATCH")
    )
    return api


def main():
    output, cc, *paths = sys.argv[1:3] + [os.path.abspath(path) for path in sys.argv[3:]]
    with open(output, "w", encoding="utf-8") as file:
        json.dump(describe(cc, paths), file, indent=1)
        file.write("\n")


main()
