# SPDX-License-Identifier: Apache-2.0
"""Compares bulkhead-api.json with the headers, the libraries and the Python extension.

usage: check_api.py c JSON                  prints C that compiles only if the headers agree
       check_api.py exported JSON FILE      what nm says of the libraries
       check_api.py extension JSON FILE     what nm says of the extension; imports bulkhead
"""

import json
import re
import sys


def as_c(api):
    print('#include "bulkhead.h"\n#include "bulkhead/cuda.h"')
    for each in api["functions"]:
        types = ", ".join(parameter["type"] for parameter in each["parameters"]) or "void"
        print(
            f"_Static_assert(__builtin_types_compatible_p(__typeof__({each['name']}), "
            f'{each["result"]}({types})), "{each["name"]}");'
        )
    for each in api["structs"]:
        print(f'_Static_assert(sizeof({each["name"]}) == {each["size"]}, "{each["name"]}");')
        for field in each["fields"]:
            place = f"{each['name']}, {field['name']}"
            print(f'_Static_assert(offsetof({place}) == {field["offset"]}, "{place}");')
            if field["type"] in ("union", "struct") or "(*)" in field["type"]:
                continue
            kind = re.sub(r"(\[.*\])$", "", field["type"])
            array = field["type"][len(kind) :]
            print(
                f"_Static_assert(__builtin_types_compatible_p(__typeof__((({each['name']} *)0)->"
                f'{field["name"]}), __typeof__({kind} {array})), "{place}");'
            )
    for each in api["constants"]:
        print(
            f"_Static_assert({each['name']} == {each['value']}"
            f'{"u" if each["value"] > 2**31 else ""}, "{each["name"]}");'
        )


def names(path):
    with open(path, encoding="utf-8") as file:
        return set(re.findall(r"\b(bh_\w+)", file.read()))


def main():
    mode, path, *rest = sys.argv[1:]
    with open(path, encoding="utf-8") as file:
        api = json.load(file)
    functions = {each["name"] for each in api["functions"]}
    if mode == "c":
        as_c(api)
    elif mode == "exported":
        if names(rest[0]) != functions:
            sys.exit(f"exported or described only: {sorted(names(rest[0]) ^ functions)}")
    else:
        from bulkhead import _core

        used = names(rest[0])
        assert len(used) > 80 and used <= functions, sorted(used - functions)
        values = {each["name"]: each["value"] for each in api["constants"]}
        constants = {name: getattr(_core, name) for name in dir(_core) if name.startswith("BH_")}
        assert len(constants) > 80
        for name, value in constants.items():
            assert values[name] == value, name
        structs = {each["name"]: each for each in api["structs"]}
        compared = 0
        for name, (size, fields) in _core.layouts.items():
            assert structs[name]["size"] == size, name
            known = {field["name"]: field for field in structs[name]["fields"]}
            for field, (kind, offset, length) in fields.items():
                if field not in known:  # of a struct within it
                    assert name == "bh_finding", (name, field)
                    continue
                described = known[field]
                assert (described["offset"], described["size"]) == (offset, length), (name, field)
                text = described["type"]
                assert (kind == "s") == text.startswith("char["), (name, field)
                assert (kind == "i") == text.startswith(("int32_t", "bh_status")) or kind == "a"
                compared += 1
        print(f"{len(used)} functions, {len(constants)} constants, {compared} fields")


main()
