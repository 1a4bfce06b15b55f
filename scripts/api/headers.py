# SPDX-License-Identifier: Apache-2.0
"""Reads the public headers: functions, structs, callbacks, enums. They are written in a plain
style, so that regular expressions are enough. describe.py and tests/arguments/generate.py use
this."""
import re


def strip(text):
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)
    text = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", "", text, flags=re.M)
    return re.sub(r"\s+", " ", text)


def spelled(text):
    """A type with its stars apart and nothing else: "const bh_shape *"."""
    return re.sub(r"\s+", " ", text.replace("*", " * ")).strip().replace("* *", "**")


def declarator(text):
    """The type, the name, and the length of an array."""
    match = re.fullmatch(r"(.*?)(\w+)\s*(?:\[([^\]]*)\])?", text.strip(), flags=re.S)
    return spelled(match.group(1)), match.group(2), match.group(3)


def split_body(body):
    """Fields of a struct; what is nested in braces stays one."""
    parts, depth, at = [], 0, 0
    for i, char in enumerate(body):
        depth += (char == "{") - (char == "}")
        if char == ";" and depth == 0:
            parts.append(body[at:i].strip())
            at = i + 1
    return parts


class Header:
    def __init__(self, text):
        self.structs, self.functions, self.callbacks = {}, [], {}
        for match in re.finditer(r"typedef struct (\w+) \{", text):
            end, depth = match.end(), 1
            while depth:
                depth += (text[end] == "{") - (text[end] == "}")
                end += 1
            self.structs[match.group(1)] = split_body(text[match.end():end - 1])
        for match in re.finditer(r"typedef (\w+) (bh_\w+_fn)\((.*?)\);", text):
            self.callbacks[match.group(2)] = (match.group(1), match.group(3))
        self.enums = []
        for match in re.finditer(r"\benum \{(.*?)\}", text):
            names = [part.split("=")[0].strip() for part in match.group(1).split(",")]
            self.enums.append([name for name in names if name])
        self.typedefs = re.findall(r"typedef (\w+) (bh_\w+);", text)
        for match in re.finditer(r"BH_API ([\w ]+\**)\s*(bh_\w+)\((.*?)\);", text):
            self.functions.append((spelled(match.group(1)), match.group(2), match.group(3)))

    def is_handle(self, name):
        return self.structs.get(name) == ["uint64_t id"]
