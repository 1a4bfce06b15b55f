# SPDX-License-Identifier: Apache-2.0
"""Arrays: device memory with a dtype and a shape, and C-contiguous views of it."""

from __future__ import annotations

import gc
import sys
from contextlib import contextmanager
from math import prod
from operator import index

from . import _core, _dtypes
from ._dtypes import DType
from ._errors import NoMemoryError, Status, refused

_ALLOCATION = {
    "shareable": _core.BH_BUFFER_SHAREABLE,
    "managed": _core.BH_BUFFER_MANAGED,
    "transparent": _core.BH_BUFFER_TRANSPARENT,
    "driver": _core.BH_BUFFER_DRIVER,
}
_VISIBLE = _core.BH_BUFFER_SHAREABLE | _core.BH_BUFFER_MANAGED
_DL_CODES = {
    "i": _core.BH_DL_INT,
    "u": _core.BH_DL_UINT,
    "f": _core.BH_DL_FLOAT,
    "b": _core.BH_DL_BOOL,
    "c": 5,
}


def shape_tuple(shape) -> tuple[int, ...]:
    """A shape as numpy takes it: a number or several."""
    sizes = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    try:
        result = tuple(index(size) for size in sizes)
    except TypeError:
        raise TypeError(
            f"a shape is an integer or several, not {shape!r}. Fix: int(size)"
        ) from None
    if any(size < 0 for size in result):
        raise refused(f"the shape {result} has a negative number", "use numbers from 0 on")
    return result


def _is_basic(key):
    if isinstance(key, slice) or key is Ellipsis:
        return True
    try:
        index(key)
    except TypeError:  # also of arrays with several elements
        return False
    return not isinstance(key, bool)


class Array(_core.Buffer):
    """Memory of a device with a dtype and a shape: ``dev.array()``, ``empty()``, ``zeros()``.

    >>> x = dev.array(numpy.arange(12, dtype="float32").reshape(3, 4))
    >>> row = x[1]              # a view: shares the memory
    >>> row.fill(0)
    >>> x.numpy()               # a copy in host memory

    Kernels get one address, so a view is C-contiguous: ``x[1]``, ``x[1:3]``, ``x[2, :3]``. Other
    slices, ``x[:, 1]`` or ``x[::2]``, are refused. The memory is freed with the last view.
    """

    __slots__ = ("_dtype", "_shape", "__weakref__")

    def __new__(cls, *args, **kwargs):
        raise TypeError("arrays are made by device.empty(), zeros() and array()")

    @classmethod
    def _allocate(cls, device, shape, dtype, flags=0, tag=None, align=0):
        kind = _dtypes.dtype(dtype)
        sizes = shape_tuple(shape)
        count = prod(sizes) * kind._parts
        if count * kind.itemsize > sys.maxsize:
            raise refused(
                f"an array of shape {sizes} and dtype {kind} is larger than memory can be",
                "use a smaller shape",
                Status.NO_MEMORY,
            )
        arguments = (device, kind._type, count, flags, tag, align)
        try:
            made = _core.Buffer.__new__(cls, *arguments)
        except NoMemoryError:
            # arrays in cycles are garbage whose size the collector does not know
            if not gc.collect():
                raise
            made = _core.Buffer.__new__(cls, *arguments)
        return made._set(kind, sizes)

    def _set(self, kind: DType, shape: tuple[int, ...]) -> Array:
        self._dtype = kind
        self._shape = shape
        if len(shape) > 64:
            raise refused(f"an array has at most 64 dimensions, not {len(shape)}", "reshape it")
        self._layout(shape, kind.itemsize, kind._format)
        return self

    def _part(self, kind: DType, first: int, shape: tuple[int, ...]) -> Array:
        """A view of elements of `kind` from element `first` on, counted in that type."""
        part = self._view(kind._type, first * kind._parts, prod(shape) * kind._parts)
        return part._set(kind, shape)

    # ---- properties

    @property
    def dtype(self) -> DType:
        """The type of the elements; equal to NumPy's dtype of that name."""
        return self._dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape

    @property
    def ndim(self) -> int:
        return len(self._shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self._shape)

    @property
    def itemsize(self) -> int:
        return self._dtype.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one element to the next, for each dimension."""
        result, step = [], self._dtype.itemsize
        for size in reversed(self._shape):
            result.append(step)
            step *= size
        return tuple(reversed(result))

    @property
    def address(self) -> int:
        """The address on the device. The same as long as the array lives, takeovers included."""
        return self._info()["address"]

    @property
    def suspect(self) -> bool:
        """True if a lost worker may have left some of it half written: see ``accept()``."""
        return bool(self._info()["suspect"])

    def __len__(self) -> int:
        if not self._shape:
            raise TypeError("an array without dimensions has no length")
        return self._shape[0]

    def __repr__(self) -> str:
        return f"<bulkhead.Array shape={self._shape} dtype={self._dtype.name}>"

    # ---- views

    def __getitem__(self, key) -> Array:
        keys = key if isinstance(key, tuple) else (key,)
        for each in keys:
            if not _is_basic(each):
                raise TypeError(
                    f"an array of a device is indexed by numbers, slices and `...`, not "
                    f"by {each!r}. Fix: index a copy, array.numpy()[...]"
                )
        if keys.count(Ellipsis) > 1:
            raise IndexError("an index has one `...` at most")
        named = len(keys) - keys.count(Ellipsis)
        if named > self.ndim:
            raise IndexError(f"{named} indices for an array with {self.ndim} dimensions")
        full = (slice(None),) * (self.ndim - named)
        at = keys.index(Ellipsis) if Ellipsis in keys else len(keys)
        keys = keys[:at] + full + keys[at + 1 :]

        first, gap = 0, False
        shape: list[int] = []
        strides: list[int] = []
        step = self.size
        cut = False  # a dimension before this one has several entries
        for axis, (each, size) in enumerate(zip(keys, self._shape)):
            step = step // size if size else 0
            if isinstance(each, slice):
                begin, end, by = each.indices(size)
                length = len(range(begin, end, by))
                gap |= length > 1 and by != 1 or cut and length != size
                first += begin * step if length else 0
                shape.append(length)
                strides.append(by * step * self.itemsize)
                cut |= length > 1
            else:
                index = each.__index__()
                if not -size <= index < size:
                    raise IndexError(
                        f"index {index} is outside of dimension {axis} with size {size}"
                    )
                first += index % size * step
                gap |= cut and size != 1
        view_shape = tuple(shape)
        count: int = prod(view_shape)
        if gap and count:
            raise refused(
                f"the elements of this slice, of shape {view_shape} with strides "
                f"{tuple(strides)}, "
                "are not one after the other, and a kernel gets one address",
                "slice the first dimensions only, index inside the kernel, or copy: "
                "dev.array(array.numpy()[...])",
                Status.UNSUPPORTED,
            )
        if not count:
            first = 0
        return self._part(self._dtype, first, view_shape)

    def __setitem__(self, key, value) -> None:
        part = self[key]
        if isinstance(value, (int, float, complex)):
            ticket = part.fill(value)
            if ticket is not None and self._flags & _VISIBLE:
                ticket.wait()  # the process may look at the memory next
        else:
            part.copy_from(value)

    def __iter__(self):
        for i in range(len(self)):
            yield self[i]

    def reshape(self, *shape) -> Array:
        """The same elements with another shape, as a view; one number may be -1."""
        asked = list(shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape)
        if asked.count(-1) == 1:
            rest = -prod(asked)
            if rest == 0 or self.size % rest:
                raise refused(
                    f"{self.size} elements have no shape {tuple(asked)}",
                    "use a shape with the same number of elements",
                )
            asked[asked.index(-1)] = self.size // rest
        sizes = shape_tuple(asked)
        if prod(sizes) != self.size:
            raise refused(
                f"{self.size} elements have no shape {sizes}",
                "use a shape with the same number of elements",
            )
        return self._part(self._dtype, 0, sizes)

    def ravel(self) -> Array:
        """The same elements in one dimension, as a view."""
        return self.reshape(self.size)

    def view(self, dtype) -> Array:
        """The same bytes as elements of another dtype; the last dimension changes with it."""
        kind = _dtypes.dtype(dtype)
        shape = self._shape or ((1,) if kind.itemsize != self.itemsize else ())
        if shape:
            row = shape[-1] * self.itemsize
            if row % kind.itemsize:
                raise refused(
                    f"rows of {row} bytes are no whole number of {kind} elements",
                    "reshape the array first",
                )
            shape = shape[:-1] + (row // kind.itemsize,)
        return self._part(kind, 0, shape)

    # ---- transfers

    def fill(self, value) -> _core.Ticket | None:
        """Sets all elements, as work on the current lane; returns its ticket."""
        if not self.nbytes:
            return None
        pattern = self._dtype.pack(value)
        if len(pattern) > _core.BH_PATTERN_MAX:
            raise refused(
                f"an element of {len(pattern)} bytes is longer than the {_core.BH_PATTERN_MAX} of "
                "a fill",
                "array.copy_from(numpy.full(array.shape, value, array.dtype))",
            )
        return self._fill(0, self.nbytes, pattern)

    def copy_from(self, source, *, wait: bool = True) -> _core.Ticket | None:
        """Overwrites all elements: from another array, or from anything that NumPy can read.

        >>> x.copy_from(numpy.ones(x.shape, x.dtype))
        >>> x[2:4] = y[0:2]

        From an array of the same device it is work on the current lane; with ``wait=False`` its
        ticket is returned at once.
        """
        if isinstance(source, Array):
            if source.dtype != self._dtype or source.size != self.size:
                raise refused(
                    f"cannot copy {source.size} elements of {source.dtype} to {self.size} of "
                    f"{self._dtype}",
                    "use arrays of the same size and dtype",
                )
            if not self.nbytes:
                return None
            ticket = self._copy(0, source, 0, self.nbytes)
            if not wait or ticket is None:
                return ticket
            ticket.wait()
            return None
        self._write(0, _host_bytes(source, self._dtype, self._shape))
        return None

    def numpy(self, out=None):
        """A copy as a NumPy array, in `out` if that is given.

        Waits for the work that writes the array. StaleError if a lost worker may have left it half
        written. On a stopped device it still reads what is intact.
        """
        import numpy

        if out is None:
            out = numpy.empty(self._shape, self._dtype.numpy)
        elif (
            out.shape != self._shape or out.dtype != self._dtype.numpy or not out.flags.c_contiguous
        ):
            raise refused(
                f"`out` is not a C-contiguous array of shape {self._shape} and dtype {self._dtype}",
                "use numpy.empty(array.shape, array.dtype)",
            )
        if out.nbytes:
            self._read(0, out.reshape(-1).view(numpy.uint8))
        return out

    def __array__(self, dtype=None, copy=None):
        if copy is False:
            raise ValueError(
                "the memory of a device is copied to host memory: numpy.asarray(array)"
            )
        host = self.numpy()
        return host if dtype is None else host.astype(dtype, copy=False)

    def tobytes(self) -> bytes:
        """A copy of the bytes. Needs no NumPy."""
        data = bytearray(self.nbytes)
        if data:
            self._read(0, data)
        return bytes(data)

    def tolist(self):
        """The elements as Python numbers, in lists."""
        return self.numpy().tolist()

    def item(self):
        """The only element as a Python number."""
        if self.size != 1:
            raise refused(f"an array of {self.size} elements is not one number", "index it first")
        return self.numpy().item()

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ValueError("whether an array is true is not clear. Fix: array.numpy().any()")
        return bool(self.item())

    def copy(self) -> Array:
        """A new array on the same device with the same elements."""
        other = Array._allocate(self.device, self._shape, self._dtype)
        if self.nbytes:
            other._copy(0, self, 0, self.nbytes)
        return other

    # ---- after a loss

    def accept(self) -> None:
        """Declares that suspect contents are good enough: they can be read again."""
        self._accept()

    # ---- the same memory elsewhere

    @contextmanager
    def map(self, mode: str = "rw"):
        """A managed array as a NumPy array, without a copy, inside a ``with`` block.

        "r" to read, "rw" to read and write, "w" to overwrite all of it. Launches that use the array
        are refused meanwhile.

        >>> x = dev.managed((4,), "float32", transparent=False)
        >>> with x.map("w") as host:
        ...     host[:] = 1
        """
        flags = {
            "r": _core.BH_MAP_READ,
            "rw": _core.BH_MAP_READ | _core.BH_MAP_WRITE,
            "w": _core.BH_MAP_WRITE | _core.BH_MAP_DISCARD,
        }.get(mode)
        if flags is None:
            raise refused(f"{mode!r} is not a mode of map()", 'use "r", "rw" or "w"')
        held = _core.managed_map(self, 0, self.nbytes, flags)
        try:
            import numpy

            host = numpy.frombuffer(held, self._dtype.numpy).reshape(self._shape)
            try:
                yield host
            finally:
                host.flags.writeable = False  # what is written later may reach nobody
        finally:
            held.end()

    def prefetch(self, where: str = "device") -> _core.Ticket:
        """Moves what is newer on the other side now: a managed array, to the "device" or "host"."""
        sides = {"device": _core.BH_TO_DEVICE, "host": _core.BH_TO_HOST}
        if where not in sides:
            raise refused(f"{where!r} is no side", 'use "device" or "host"')
        return _core.managed_prefetch(self, sides[where])

    @property
    def host(self):
        """A NumPy array on the same memory, without a copy.

        Of ``dev.managed()`` on every device, and of arrays made with ``shareable=True`` on the CPU
        device. Use it between launches: a launch that was not waited for may still write.
        """
        import numpy

        seen = b"" if not self.nbytes else memoryview(self if self._dtype._format else self._raw())
        return numpy.frombuffer(seen, self._dtype.numpy).reshape(self._shape)

    def _raw(self) -> Array:
        return self.reshape(-1).view("uint8")

    def _dl_type(self):
        if self._dtype.name == "bfloat16":
            return _core.BH_DL_BFLOAT, 16
        if self._dtype._parts != 1:
            raise BufferError("DLPack has no structured dtypes. Fix: array.view('uint8')")
        kind = self._dtype.name[0]
        return _DL_CODES[kind], self.itemsize * 8

    def _need_shareable(self):
        if not self._flags & _core.BH_BUFFER_SHAREABLE:
            raise BufferError(
                "this array has no memory of its own that others could map. Fix: allocate it with "
                "shareable=True: dev.empty(shape, dtype, shareable=True), or copy it with .numpy()"
            )

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        self._need_shareable()
        if copy:
            raise BufferError("__dlpack__ does not copy. Fix: array.copy()")
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise BufferError(
                f"the array is on DLPack device {self.__dlpack_device__()}, not on "
                f"{tuple(dl_device)}. Fix: copy it with .numpy()"
            )
        code, bits = self._dl_type()
        versioned = max_version is not None and max_version[0] >= 1
        return _core.dlpack_export(self, self._shape, versioned, code, bits)

    def __dlpack_device__(self) -> tuple[int, int]:
        self._need_shareable()
        if self.device.kind == "cpu":
            return _core.BH_DL_CPU, 0
        return _core.BH_DL_CUDA, _core.cuda_address(self)[1]

    @property
    def __cuda_array_interface__(self):
        if self.device.kind != "cuda" or not self._flags & _core.BH_BUFFER_SHAREABLE:
            raise AttributeError(
                "__cuda_array_interface__: not a shareable array of a GPU. Fix: "
                "dev.empty(shape, dtype, shareable=True) on a GPU"
            )
        address = _core.cuda_address(self)[0] if self.nbytes else 0
        return {
            "shape": self._shape,
            "typestr": self._dtype.numpy.str,
            "data": (address, False),
            "version": 3,
            "strides": None,
        }

    def export(self) -> tuple[int, int, bytes]:
        """Two descriptors, which the caller closes, and a token: for ``dev.from_export()``, also in
        another process. The array was allocated with ``shareable=True``."""
        return _core.share_export(self)

    # ---- ends

    def release(self) -> None:
        """Frees the memory now, if no part of the array is left; otherwise with the last part.

        BufferError while NumPy arrays or memoryviews look at managed memory.
        """
        self._release()

    def __enter__(self) -> Array:
        return self

    def __exit__(self, kind, *rest) -> None:
        try:
            self._release()
        except BufferError:
            if kind is None:
                raise  # with an exception pending the memory goes with the array

    def __reduce_ex__(self, protocol):
        raise TypeError("an array of a device cannot be pickled. Fix: pickle array.numpy()")


def _host_bytes(source, kind: DType, shape):
    """What can be written to the device: bytes of `source` as elements of `kind`."""
    if isinstance(source, (bytes, bytearray)):
        if len(source) != prod(shape) * kind.itemsize:
            raise refused(
                f"{len(source)} bytes are not the {prod(shape) * kind.itemsize} of the array",
                "pass as many bytes as array.nbytes",
            )
        return source
    try:
        view = memoryview(source)
    except (TypeError, ValueError, BufferError):
        view = None
    if view is not None and view.c_contiguous and view.shape == shape:
        found = _dtypes.FORMATS.get(view.format.lstrip("@="))
        if found is not None and found == kind and view.itemsize == kind.itemsize:
            return view
    import numpy

    host = numpy.asarray(source)
    if host.dtype.hasobject and host.dtype != kind.numpy:
        raise refused(f"{type(source).__name__} is no array of numbers", "pass numbers")
    if not numpy.can_cast(host.dtype, kind.numpy, "same_kind") and not isinstance(
        source, (list, tuple, int, float)
    ):
        raise refused(
            f"elements of {host.dtype} do not become {kind} without loss",
            f"convert them: x.astype({kind.name!r})",
        )
    host = numpy.ascontiguousarray(numpy.broadcast_to(host, shape), dtype=kind.numpy)
    return host.reshape(-1).view(numpy.uint8)


def from_host(device, source, dtype, flags, tag, align) -> Array:
    """dev.array(): a new array with a copy of `source`."""
    if isinstance(source, Array):
        if dtype is not None and _dtypes.dtype(dtype) != source.dtype:
            return from_host(device, source.numpy(), dtype, flags, tag, align)
        result = Array._allocate(device, source.shape, source.dtype, flags, tag, align)
        result.copy_from(source)
        return result
    if isinstance(source, (bytes, bytearray)):
        source = memoryview(source)  # numbers from 0 to 255, not NumPy's text
    if dtype is None:
        try:
            view = memoryview(source)
        except (TypeError, ValueError, BufferError):
            view = None
        if view is not None and view.c_contiguous:
            kind = _dtypes.FORMATS.get(view.format.lstrip("@="))
            if kind is not None and view.itemsize == kind.itemsize:
                result = Array._allocate(device, view.shape, kind, flags, tag, align)
                if view.nbytes:
                    result._write(0, view)
                return result
    import numpy

    host = numpy.asarray(source, None if dtype is None else _dtypes.dtype(dtype).numpy)
    if not host.dtype.isnative:
        host = host.astype(host.dtype.newbyteorder("="))
    kind = _dtypes.dtype(host.dtype)
    result = Array._allocate(device, host.shape, kind, flags, tag, align)
    if host.nbytes:
        result._write(0, numpy.ascontiguousarray(host).reshape(-1).view(numpy.uint8))
    return result


def allocation_flags(zero=False, **kinds) -> int:
    flags = _core.BH_BUFFER_ZERO if zero else 0
    for name, wanted in kinds.items():
        if name not in _ALLOCATION:
            raise TypeError(
                f"an allocation has no option {name!r}. Fix: use shareable, tag or align"
            )
        flags |= _ALLOCATION[name] if wanted else 0
    return flags
