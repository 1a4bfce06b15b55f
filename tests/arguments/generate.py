#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads the public headers and writes, as C, a table of every function that they declare: how to call
it, and of which sort each parameter is, down to the fields of structs. support/call.h has the types.

A function with a parameter that is none of the sorts goes into the table of unknown ones, which fails
the test: whoever adds it teaches this file, and support/world.c, what a good value is.

usage: generate.py OUTPUT HEADER...
"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../scripts/api"))
from headers import Header, declarator, spelled, strip  # noqa: E402

NUMBERS = {"uint8_t", "uint16_t", "uint32_t", "int32_t", "uint64_t", "int64_t", "size_t", "int",
           "bh_type", "bh_reason", "bh_status", "double", "float", "bool"}
WORDS = NUMBERS | {"void *", "const void *", "const char *", "bh_dl_managed *", "bh_dl_versioned *"}

# Numbers that make a call succeed where zero does not: by parameter, or by function and parameter.
GOOD = {"type": "BH_U32", "count": "4", "bytes": "4", "pattern_bytes": "4", "timeout_ns": "1000000",
        "max_level": "BH_LOG_ERROR", "where": "BH_TO_DEVICE", "advice": "BH_ADVISE_PREFER_DEVICE",
        "capacity": "4096", "ndim": "1", "failure_limit": "65536",
        "bh_managed_map.flags": "BH_MAP_READ", "bh_failure_set_limit.count": "65536",
        "bh_binary_get_image.output": "BH_OUTPUT_PTX",
        "bh_module_load.bytes": "IMAGE_BYTES", "bh_submit_load.bytes": "IMAGE_BYTES",
        "bh_binary_from.count": "IMAGE_BYTES", "bh_preflight_line.bytes": "4096",
        "bh_memory_trim.keep_bytes": "UINT64_MAX",
        "item_size": "sizeof(bh_dispatch_item)", "channels": "1",
        "bh_texture_create_rows.width": "4", "bh_texture_create_rows.height": "1",
        "bh_texture_create_rows.pitch": "32"}
# A request is the beginning of a longer struct: this one.
REQUEST = "bh_transfer"
# Large values of these are legal and last, a deadline that passes, kernels that run for days; or name
# host memory that is not there.
SMALL = {"pitch", "slice", "entry_size", "repeat", "deadline_ns", "stuck_timeout_ns", "retries", "x", "y", "z"}


class Unknown(Exception):
    pass


def number_sort(function, name, ctype, counted):
    good = GOOD.get("%s.%s" % (function, name), GOOD.get(name, "0"))
    if ctype == "size_t" and counted:
        return "COUNT", GOOD.get("%s.%s" % (function, name), "1")
    return ("SMALL" if name in SMALL else "NUMBER"), good


def pointer_sort(header, ctype, name):
    const, base = ctype.startswith("const "), ctype.replace("const ", "").rstrip(" *")
    stars = ctype.count("*")
    if base in header.callbacks:
        return "CALLBACK", "stub_" + base
    if ctype in ("const char *", "char *"):
        return ("IN_TEXT" if const else "OUT_TEXT"), None
    if ctype == "void *" and name == "context":
        return "CONTEXT", None
    if ctype in ("const void *", "void *"):
        return ("IN_DATA" if const else "OUT_DATA"), None
    if base == "bh_request":
        base = REQUEST
    if base in header.structs and stars == 1:
        return ("IN_STRUCT" if const else "OUT_STRUCT"), base
    if const and base in NUMBERS:
        return "IN_NUMBERS", None
    if spelled(re.sub(r"\*$", "", ctype)) in WORDS:
        return "OUT_WORD", None
    raise Unknown(ctype)


class Writer:
    def __init__(self, header):
        self.header, self.layouts, self.lines, self.unknown = header, {}, [], []

    def slot(self, function, owner, ctype, name, array, counted, offset):
        """One entry of a table of slots."""
        size, extra, good = "sizeof(%s)" % ctype, "NULL", "0"
        if array is not None:
            sort = ("IN_FDS" if ctype == "const int" else "OUT_WORD") if owner is None else "BYTES"
            size = "sizeof(void *)" if owner is None else "sizeof(((%s *)0)->%s)" % (owner, name)
        elif "(*" in ctype:
            sort, size = "CONTEXT", "sizeof(void *)"
        elif self.header.is_handle(ctype):
            sort, extra = "HANDLE", '"%s"' % ctype
        elif ctype in self.header.structs:
            sort, extra = "STRUCT", "&" + self.layout(ctype, function)
        elif ctype in NUMBERS:
            sort, good = number_sort(function, name, ctype, counted)
        elif ctype.startswith("const char *const *") or ctype == "const char * const *":
            sort = "IN_TEXTS"
        elif ctype.endswith("*"):
            sort, what = pointer_sort(self.header, ctype, name)
            if sort == "CALLBACK":
                return '{"%s", CALLBACK, %s, sizeof(void *), 0, NULL, (void (*)(void))%s}' % (
                    name, offset, what)
            extra = "&" + self.layout(what, function) if what else "NULL"
        else:
            raise Unknown(ctype)
        return '{"%s", %s, %s, %s, (uint64_t)(%s), %s, NULL}' % (name, sort, offset, size, good,
                                                                  extra)

    def fields(self, struct, function):
        for part in self.header.structs[struct]:
            if part.startswith(("union", "struct")) or "{" in part:
                match = re.search(r"(\w+)$", part)
                name = match.group(1)
                yield '{"%s", ARGUMENT, offsetof(%s, %s), sizeof(((%s *)0)->%s), 0, NULL, NULL}' % (
                    name, struct, name, struct, name)
                continue
            pointer = re.fullmatch(r".*\(\*(\w+)\)\(.*\)", part)
            if pointer:
                yield self.slot(function, struct, "(*", pointer.group(1), None, False,
                                "offsetof(%s, %s)" % (struct, pointer.group(1)))
                continue
            first, *others = part.split(",")
            ctype, name, array = declarator(first)
            for entry in [(name, array)] + [declarator("x " + o.strip())[1:] for o in others]:
                yield self.slot(function, struct, ctype, entry[0], entry[1],
                                entry[0].endswith("count"), "offsetof(%s, %s)" % (struct, entry[0]))

    def layout(self, struct, function):
        if struct not in self.layouts:
            self.layouts[struct] = None # a struct that points to its own kind
            table = ",\n    ".join(self.fields(struct, function))
            first = self.header.structs[struct][0]
            sized = "true" if first in ("uint32_t size", "bh_request request") else "false"
            self.lines.append("static const slot slots_%s[] = {\n    %s};" % (struct, table))
            self.lines.append('const layout layout_%s = {"%s", sizeof(%s), %s, slots_%s, '
                              "sizeof slots_%s / sizeof *slots_%s};" %
                              (struct, struct, struct, sized, struct, struct, struct))
        return "layout_" + struct

    def function(self, result, name, text):
        parameters = [] if text.strip() == "void" else [p.strip() for p in text.split(",")]
        slots, arguments, previous = [], [], ""
        for i, parameter in enumerate(parameters):
            ctype, called, array = declarator(parameter)
            counted = previous.endswith("*") and previous not in ("char *",)
            if called == "entry_size": # of a list: (entries, entry_size, capacity, count)
                GOOD["%s.entry_size" % name] = "sizeof(%s)" % previous.rstrip(" *")
            is_list = "entry_size" in text
            counted = called == "capacity" if is_list else counted
            slots.append(self.slot(name, None, ctype, called, array, counted, "0"))
            cast = ctype + "*" if array is None else ctype + " **"
            arguments.append("*(%s)a[%d]" % (cast, i))
            previous = ctype
        call = "%s(%s)" % (name, ", ".join(arguments))
        body = "return %s;" % call if result == "bh_status" else "(void)%s; return BH_OK;" % call
        self.lines.append("static bh_status call_%s(void *const *a) { (void)a; %s }" % (name, body))
        self.lines.append("static const slot slots_%s[] = {\n    %s};" %
                          (name, ",\n    ".join(slots) or '{"", NUMBER, 0, 0, 0, NULL, NULL}'))
        return '{"%s", call_%s, slots_%s, %d, %s}' % (name, name, name, len(slots),
                                                      "true" if result == "bh_status" else "false")

    def stub(self, name):
        result, text = self.header.callbacks[name]
        parameters = [declarator(p) for p in text.split(",")]
        unused = " ".join("(void)%s;" % p[1] for p in parameters)
        self.lines.append("static %s stub_%s(%s) { %s%s }" % (
            result, name, text, unused, "" if result == "void" else " return true;"))

    def write(self, out):
        for name in self.header.callbacks:
            self.stub(name)
        table = []
        for result, name, text in self.header.functions:
            try:
                table.append(self.function(result, name, text))
            except Unknown as error:
                self.unknown.append('"new function %s has a parameter type %s that the generator '
                                    'does not know"' % (name, error))
        out.write("/* Written by tests/arguments/generate.py. */\n#include \"support/call.h\"\n\n")
        out.write("\n".join(self.lines))
        out.write("\n\nconst function functions[] = {\n    %s};\n" % ",\n    ".join(table))
        out.write("const unsigned function_count = sizeof functions / sizeof *functions;\n")
        out.write("const char *const unknown_functions[] = {%sNULL};\n" %
                  "".join(u + ", " for u in self.unknown))


def main():
    text = "".join(open(path, encoding="utf-8").read() for path in sys.argv[2:])
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        Writer(Header(strip(text))).write(out)


main()
