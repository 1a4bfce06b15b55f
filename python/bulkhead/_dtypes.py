# SPDX-License-Identifier: Apache-2.0
"""Element types, by the names that NumPy has for them. NumPy is imported when it is needed."""

from __future__ import annotations

import struct
import sys

from . import _core
from ._errors import Status, refused


class DType:
    """The type of an array's elements: equal to NumPy's dtype of that name, and to the name.

    >>> bulkhead.dtype("float32") == numpy.float32
    True
    """

    __slots__ = ("name", "itemsize", "_type", "_parts", "_format", "_numpy")

    def __init__(self, name, itemsize, element, parts, form, numpy_dtype=None):
        self.name = name
        self.itemsize = itemsize
        self._type = element  # a bh_type
        self._parts = parts  # elements of that type in one of this
        self._format = form  # of the buffer protocol; "": it has none
        self._numpy = numpy_dtype

    @property
    def numpy(self):
        """NumPy's dtype. bfloat16 needs the package ml_dtypes."""
        if self._numpy is None:
            import numpy

            if self.name == "bfloat16":
                try:
                    import ml_dtypes  # type: ignore[import-not-found]
                except ImportError:
                    raise refused(
                        "NumPy has no bfloat16 of its own",
                        "install the package ml_dtypes, or use array.view('uint16')",
                        Status.UNSUPPORTED,
                    ) from None
                self._numpy = numpy.dtype(ml_dtypes.bfloat16)
            else:
                self._numpy = numpy.dtype(self.name)
        return self._numpy

    @property
    def dtype(self):
        # numpy.dtype(x) looks here
        return self.numpy

    def pack(self, value) -> bytes:
        """The bytes of one element."""
        if self.name == "bfloat16":
            return _bfloat16(float(value))
        if self._format and self._format in _PLAIN:
            try:
                return struct.pack("=" + self._format, value)
            except (struct.error, TypeError, OverflowError) as problem:
                if isinstance(value, (int, float)):
                    raise refused(
                        f"{value!r} is not a value of {self.name}: {problem}",
                        "pass a number that the dtype can hold",
                    ) from None
        import numpy

        return numpy.asarray(value, dtype=self.numpy).tobytes()

    def __eq__(self, other):
        if isinstance(other, DType):
            return self.name == other.name
        if other is None:  # NumPy's default is float64
            return False
        try:
            return self.name == dtype(other).name
        except (TypeError, ValueError):
            return NotImplemented

    def __hash__(self):
        return hash(self.name)

    def __str__(self):
        return self.name

    def __repr__(self):
        return f"bulkhead.dtype({self.name!r})"


_PLAIN = "?bBhHiIqQefd"


def _bfloat16(value):
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    if value == value:  # to the nearest, ties to even
        bits += 0x7FFF + (bits >> 16 & 1)
    return struct.pack("<H", bits >> 16 & 0xFFFF)


bool_ = DType("bool", 1, _core.BH_U8, 1, "?")
int8 = DType("int8", 1, _core.BH_I8, 1, "b")
uint8 = DType("uint8", 1, _core.BH_U8, 1, "B")
int16 = DType("int16", 2, _core.BH_I16, 1, "h")
uint16 = DType("uint16", 2, _core.BH_U16, 1, "H")
int32 = DType("int32", 4, _core.BH_I32, 1, "i")
uint32 = DType("uint32", 4, _core.BH_U32, 1, "I")
int64 = DType("int64", 8, _core.BH_I64, 1, "q")
uint64 = DType("uint64", 8, _core.BH_U64, 1, "Q")
float16 = DType("float16", 2, _core.BH_F16, 1, "e")
bfloat16 = DType("bfloat16", 2, _core.BH_BF16, 1, "")
float32 = DType("float32", 4, _core.BH_F32, 1, "f")
float64 = DType("float64", 8, _core.BH_F64, 1, "d")
complex64 = DType("complex64", 8, _core.BH_C64, 1, "Zf")
complex128 = DType("complex128", 16, _core.BH_C128, 1, "Zd")

_ALL = (
    bool_,
    int8,
    uint8,
    int16,
    uint16,
    int32,
    uint32,
    int64,
    uint64,
    float16,
    bfloat16,
    float32,
    float64,
    complex64,
    complex128,
)
_NAMES = {each.name: each for each in _ALL}
_NAMES.update(
    i8=int8,
    u8=uint8,
    i16=int16,
    u16=uint16,
    i32=int32,
    u32=uint32,
    i64=int64,
    u64=uint64,
    f16=float16,
    bf16=bfloat16,
    f32=float32,
    f64=float64,
    c64=complex64,
    c128=complex128,
    bool_=bool_,
)
_PYTHON = {float: float64, int: int64, bool: bool_, complex: complex128}
_BY_TYPE = {each._type: each for each in reversed(_ALL) if each._parts == 1 and each is not bool_}
#: Formats of memoryviews, in this machine's byte order.
FORMATS = {each._format: each for each in _ALL if each is not bfloat16}
FORMATS.update({"l": int64, "L": uint64, "c": int8, "n": int64, "N": uint64})
_LITTLE = sys.byteorder == "little"


def of_type(element):
    """The dtype of a bh_type."""
    return _BY_TYPE[element]


def dtype(what) -> DType:
    """The dtype of that name; takes NumPy's dtypes, scalar types and Python's float and int too.

    >>> bulkhead.dtype("f32").itemsize
    4
    """
    if isinstance(what, DType):
        return what
    if isinstance(what, str) and what in _NAMES:
        return _NAMES[what]
    if isinstance(what, type):
        if what in _PYTHON:
            return _PYTHON[what]
        if what.__name__ in _NAMES:
            return _NAMES[what.__name__]
    import numpy

    real = numpy.dtype(what)
    if real.name in _NAMES and real.isnative:
        return _NAMES[real.name]
    if not real.isnative:
        raise refused(
            f"elements of dtype {real.str!r} are in the other byte order; kernels read "
            "this machine's",
            f"use {real.newbyteorder('=').str!r}: array.astype(dtype)",
        )
    if real.hasobject or real.itemsize == 0 or real.kind not in "V":
        raise refused(
            f"a device has no elements of dtype {real}",
            "use bool, int8 to int64, uint8 to uint64, float16 to float64, bfloat16, "
            "complex64, complex128, or a structured dtype of these",
        )
    try:
        form = memoryview(numpy.empty(1, real)).format
    except ValueError:  # of a field that the buffer protocol cannot describe
        form = ""
    return DType(str(real), real.itemsize, _core.BH_U8, real.itemsize, form, real)
