# SPDX-License-Identifier: Apache-2.0
"""What is known of a kernel's parameters: from CUDA source, from PTX, or from sizes alone.

A parameter becomes the tuple that _core.Kernel takes: (form, access, element type, bytes, index of
the parameter that counts the elements or -1, bytes of an element, text).
"""

from __future__ import annotations

import re

from . import _core

_SCALARS = {
    "bool": ("b", 1),
    "char": ("i", 1),
    "signed char": ("i", 1),
    "unsigned char": ("u", 1),
    "short": ("i", 2),
    "unsigned short": ("u", 2),
    "int": ("i", 4),
    "unsigned int": ("u", 4),
    "long": ("i", 8),
    "unsigned long": ("u", 8),
    "long long": ("i", 8),
    "unsigned long long": ("u", 8),
    "int8_t": ("i", 1),
    "uint8_t": ("u", 1),
    "int16_t": ("i", 2),
    "uint16_t": ("u", 2),
    "int32_t": ("i", 4),
    "uint32_t": ("u", 4),
    "int64_t": ("i", 8),
    "uint64_t": ("u", 8),
    "size_t": ("u", 8),
    "ptrdiff_t": ("i", 8),
    "intptr_t": ("i", 8),
    "uintptr_t": ("u", 8),
    "float": ("f", 4),
    "double": ("f", 8),
    "half": ("f", 2),
    "__half": ("f", 2),
    "uint": ("u", 4),
    "uchar": ("u", 1),
    "ushort": ("u", 2),
    "ulong": ("u", 8),
}
_ELEMENTS = {
    ("i", 1): _core.BH_I8,
    ("u", 1): _core.BH_U8,
    ("b", 1): _core.BH_U8,
    ("i", 2): _core.BH_I16,
    ("u", 2): _core.BH_U16,
    ("i", 4): _core.BH_I32,
    ("u", 4): _core.BH_U32,
    ("i", 8): _core.BH_I64,
    ("u", 8): _core.BH_U64,
    ("f", 2): _core.BH_F16,
    ("f", 4): _core.BH_F32,
    ("f", 8): _core.BH_F64,
}
_OTHERS = {  # types that arrays have and numbers do not
    "__nv_bfloat16": (_core.BH_BF16, 2),
    "nv_bfloat16": (_core.BH_BF16, 2),
    "cuFloatComplex": (_core.BH_F32, 8),
    "cuComplex": (_core.BH_F32, 8),
    "cuDoubleComplex": (_core.BH_F64, 16),
}
for _name, _element, _size in (
    ("char", _core.BH_I8, 1),
    ("uchar", _core.BH_U8, 1),
    ("short", _core.BH_I16, 2),
    ("ushort", _core.BH_U16, 2),
    ("int", _core.BH_I32, 4),
    ("uint", _core.BH_U32, 4),
    ("float", _core.BH_F32, 4),
    ("double", _core.BH_F64, 8),
):
    for _lanes in (2, 3, 4):
        _OTHERS[f"{_name}{_lanes}"] = (_element, _size * _lanes)

_NOISE = re.compile(
    r"\b(__restrict__|__restrict|restrict|__grid_constant__|register|volatile"
    r"|struct|typename)\b|std::|cuda::std::"
)


def _plain(text):
    """Source without comments, strings and preprocessor lines."""
    text = re.sub(
        r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"',
        lambda m: m[0] if m[0] == '"C"' else " ",
        text,
        flags=re.S,
    )
    return re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", " ", text, flags=re.M)


def _base(words):
    """A type's words in the order of the table: 'int unsigned' is 'unsigned int'."""
    words = [word for word in words if word != "const"]
    if "unsigned" in words or "signed" in words or "long" in words or "short" in words:
        sign = "unsigned" if "unsigned" in words else ""
        rest = [word for word in words if word not in ("unsigned", "signed", "int")]
        if rest == ["char"] and "signed" in words:
            return "signed char"
        core = " ".join(rest) or "int"
        return f"{sign} {core}".strip()
    return " ".join(words)


def _split(text):
    """Parameters between commas that are in no brackets."""
    parts, depth, at = [], 0, 0
    for i, char in enumerate(text):
        depth += (char in "(<[{") - (char in ")>]}")
        if char == "," and depth == 0:
            parts.append(text[at:i])
            at = i + 1
    return [part.strip() for part in parts + [text[at:]] if part.strip()]


def _declaration(text):
    """(type words, stars, name, count) of one parameter; None: too complicated to say."""
    text = _NOISE.sub(" ", re.sub(r"=.*", "", text))
    if "(" in text or "&" in text or "<" in text:
        return None
    match = re.fullmatch(r"\s*([\w\s:*]*?)\s*(\w+)?\s*(?:\[\s*(\w*)\s*\])?\s*", text)
    if not match:
        return None
    kind, name, count = match[1], match[2], match[3]
    if not kind:
        kind, name = name or "", None
    unfinished = set(kind.split()) <= {"const", "unsigned", "signed", "long", "short"}
    if name and unfinished and (name in _SCALARS or name == "unsigned"):
        kind, name = f"{kind} {name}", None  # a type without a name
    is_array = "[" in text
    return kind.replace("*", " * ").split(), kind.count("*") + is_array, name, count or None


def _elements(words, stars):
    """The words before the last star, which say what the pointer points to."""
    at = [i for i, word in enumerate(words) if word == "*"]
    if stars > len(at):  # float *x[]: its brackets are the last
        at.append(len(words))
    return words[at[-2] + 1 if len(at) > 1 else 0 : at[-1]]


def parse_parameters(text):
    """A C parameter list, as in a CUDA source, as a list of tuples; None: it was not understood.

    Beyond C, `out` before a pointer says that the kernel writes all of it, and `float x[n]` that it
    has at least n elements, n being another parameter.
    """
    parts = _split(text)
    if len(parts) == 1 and parts[0] == "void":
        return []
    read = [_declaration(part) for part in parts]
    if None in read:
        return None
    names = [each[2] for each in read]
    result = []
    for part, (words, stars, name, count) in zip(parts, read):
        label = re.sub(r"\s+", " ", part)
        is_out = words[:1] == ["out"]
        words = words[is_out:]
        if stars:
            pointee = words[: words.index("*")] if "*" in words else words
            base = _base(pointee)
            element, size = 0, 1
            if stars == 1 and base in _SCALARS:
                element, size = _ELEMENTS[_SCALARS[base]], _SCALARS[base][1]
            elif stars == 1 and base in _OTHERS:
                element, size = _OTHERS[base]
            access = (
                _core.BH_ACCESS_OUT
                if is_out
                else _core.BH_ACCESS_IN
                if "const" in _elements(words, stars)
                else _core.BH_ACCESS_INOUT
            )
            at = names.index(count) if count in names and count else -1
            result.append(("p", access, element, 8, at, size, label))
            continue
        base = _base(words)
        if base in _SCALARS:
            form, size = _SCALARS[base]
            result.append((form, 0, 0, size, -1, 0, label))
        else:
            result.append(("?", 0, 0, 0, -1, 0, label))
    return result


def from_source(source):
    """{name: parameters} of the kernels that are defined or declared in a CUDA source."""
    text = _plain(source)
    found = {}
    for match in re.finditer(r"\b__global__\b", text):
        at = match.end()
        name = None
        while True:
            step = re.compile(r"\s*(\w+)\s*(\()?").match(text, at)
            if not step:
                break
            end = step.end()
            if not step[2]:
                at = end
                continue
            depth = 1
            while depth and end < len(text):
                depth += (text[end] == "(") - (text[end] == ")")
                end += 1
            if re.fullmatch(r"__\w+__", step[1]):  # __launch_bounds__(256)
                at = end
                continue
            name = step[1]
            parameters = parse_parameters(text[step.end() : end - 1])
            break
        if name and parameters is not None and (name not in found or found[name] == parameters):
            found[name] = parameters
        elif name:
            found[name] = None  # overloads: the name does not say which
    return found


def from_ptx(text):
    """{name: parameters} of the kernels of a PTX text."""
    found = {}
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.S)
    for match in re.finditer(r"\.entry\s+([\w$]+)\s*(?:\(([^()]*)\))?", text):
        result = []
        for part in _split(match[2] or ""):
            words = part.replace(".", " .").split()
            kinds = [word[1:] for word in words if re.fullmatch(r"\.[busf]\d+", word)]
            name = re.search(r"([\w$]+)\s*(?:\[\s*(\d+)\s*\])?\s*$", part)
            if not kinds or not name:
                result = None
                break
            letter, size = kinds[0][0], int(kinds[0][1:]) // 8
            label = part.replace(".param", "").strip()
            if name[2]:
                result.append(("s", 0, 0, size * int(name[2]), -1, 0, label))
            elif ".ptr" in words:
                result.append(("p", 0, 0, 8, -1, 0, label))
            else:
                form = {"f": "f", "b": "a"}.get(letter, "w" if size == 8 else "n")
                result.append((form, 0, 0, size, -1, 0, label))
        found[match[1]] = result
    return found


def simple_name(mangled):
    """'_Z5saxpyfPKf' is 'saxpy'; '_ZN2ns5saxpyEf' too. Other names stay."""
    match = re.match(r"_ZN?L?(?=\d)", mangled)
    if not match:
        return mangled
    at, name = match.end(), mangled
    while True:
        digits = re.compile(r"\d+").match(mangled, at)
        if not digits:
            return name
        at = digits.end() + int(digits[0])
        name = mangled[digits.end() : at]
        if not mangled.startswith("_ZN"):
            return name


def settle(known, sizes):
    """The parameters of a kernel: what is known, where it agrees with the sizes in the image.

    `sizes` is a list of (bytes, is a pointer).
    """
    if known is None or len(known) != len(sizes):
        known = [None] * len(sizes)
    result = []
    for entry, (size, pointer) in zip(known, sizes):
        label = entry[6] if entry else f"{size} bytes"
        if entry and entry[0] != "?" and entry[3] == size:
            result.append(entry)
        elif pointer and size == 8:
            result.append(("p", 0, 0, 8, -1, 0, label if entry else "a pointer"))
        elif size in (1, 2, 4, 8):
            result.append(("a", 0, 0, size, -1, 0, label))
        else:
            result.append(("s", 0, 0, size, -1, 0, label))
    return tuple(result)
