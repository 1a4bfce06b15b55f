# SPDX-License-Identifier: Apache-2.0
"""Modules and kernels."""

from __future__ import annotations

from . import _core, _signature
from ._errors import NotFoundError, refused


class Kernel(_core.Kernel):
    """A kernel of a module. ``kernel[grid, block]`` is called with its arguments.

    >>> saxpy = module["saxpy"]
    >>> ticket = saxpy[(n + 255) // 256, 256](2.0, x, y, n)
    >>> saxpy.forall(n)(2.0, x, y, n).wait()

    Grid and block are a number or up to three; bytes of dynamic shared memory and a cluster may
    follow: ``kernel[grid, block, 4096]``. The number of arguments, their types, the dtypes of
    arrays and whether the kernel may write them are checked, as far as they are known: from the
    CUDA source, a declared signature or PTX.

    Keywords of the call: ``deadline`` (seconds), ``idempotent``, ``timed``, ``cooperative``,
    ``lane``, ``after`` (tickets), ``also`` (arrays that the kernel reaches through pointers in
    others), ``priority``, ``writable_inputs``, ``programmatic``.
    """

    def forall(self, threads: int, block: int = 256, shared: int = 0) -> _core.Launcher:
        """The launcher with enough blocks of `block` threads for so many threads."""
        return self[-(-threads // block), block, shared]

    def info(self) -> dict:
        """Registers, shared memory, faults, who runs it: ``bh_kernel_info`` as a dict."""
        return _core.kernel_info(self._handle)

    def occupancy(self, block=256, shared: int = 0) -> dict:
        """How many blocks of this size run at once, and which block the device recommends."""
        return _core.kernel_occupancy(self._handle, (1, block, shared))

    def pardon(self) -> None:
        """Lets a quarantined kernel run again."""
        _core.kernel_pardon(self._handle)

    def __call__(self, *args, **kwargs):
        raise TypeError(
            f"say how many threads run it: {self.name}[grid, block](...) or "
            f"{self.name}.forall(n)(...)"
        )

    def __repr__(self) -> str:
        return f"<bulkhead.Kernel {self.name}({', '.join(self.parameters)})>"

    def __reduce_ex__(self, protocol):
        raise TypeError("a kernel cannot be pickled. Fix: pickle the source, and compile it there")


class Module:
    """Loaded code: kernels and variables, from ``dev.compile()`` or ``dev.load()``.

    >>> module = dev.compile(source)
    >>> module.kernels()
    ['saxpy']
    >>> module["saxpy"]
    <bulkhead.Kernel saxpy(float a, const float *x, float *y, unsigned n)>
    """

    def __init__(self, device, handle: int, source: str | None = None, image=None):
        self.device = device
        self._handle = handle
        self._source = source
        self._image = image
        self._known: dict | None = None
        self._kernels: dict[tuple[str, str | None], Kernel] = {}

    def _names(self) -> dict[str, str]:
        """{name as users write it: name in the image}"""
        result: dict[str, str] = {}
        for handle in _core.list_kernels(self._handle):
            mangled = _core.kernel_info(handle)["name"]
            simple = _signature.simple_name(mangled)
            result[mangled if simple in result else simple] = mangled
        return result

    def kernels(self) -> list[str]:
        """The names of the kernels."""
        return list(self._names())

    def _parameters(self, name: str, mangled: str):
        if self._known is None:
            self._known = {}
            image = self._image
            if image is None:
                image = self.image("ptx")
            if isinstance(image, (bytes, bytearray)):
                image = image.decode("utf-8", "replace") if b".entry" in image else ""
            self._known.update(_signature.from_ptx(image or ""))
            if self._source is not None:
                for known, parameters in _signature.from_source(self._source).items():
                    self._known["source " + known] = parameters
        base = name.split("<")[0].strip().split("::")[-1]
        from_source = self._known.get("source " + base)
        from_ptx = self._known.get(mangled)
        if from_source and from_ptx and len(from_source) == len(from_ptx):
            return [a if a[0] != "?" else b[:6] + (a[6],) for a, b in zip(from_source, from_ptx)]
        return from_source or from_ptx

    def kernel(self, name: str, signature: str | None = None) -> Kernel:
        """The kernel of that name, or of a name expression that the module was compiled with.

        A signature tells what PTX does not: it is the parameter list in C. ``const T *`` is read,
        ``T *`` is read and written, ``out T *`` is written whole; ``float x[n]`` has at least n
        elements, n being another parameter.

        >>> module.kernel("saxpy", "float a, const float x[n], float y[n], unsigned n")
        """
        key = (name, signature)
        if key in self._kernels:
            return self._kernels[key]
        self._need()
        try:
            handle = _core.kernel_get(self._handle, name)
        except NotFoundError:
            mangled = self._names().get(name)
            if mangled is None:
                raise
            handle = _core.kernel_get(self._handle, mangled)
        info = _core.kernel_info(handle)
        sizes = [_core.kernel_param(handle, i) for i in range(info["param_count"])]
        if signature is not None:
            known = _signature.parse_parameters(signature)
            if (
                known is None
                or len(known) != len(sizes)
                or any(each[3] not in (0, size) for each, (size, _) in zip(known, sizes))
            ):
                raise refused(
                    f'the signature ({signature}) does not fit kernel "{name}", whose parameters '
                    f"have {[size for size, _ in sizes]} bytes",
                    "write the parameter list as in C, with plain types",
                )
        else:
            known = self._parameters(name, info["name"])
        kernel = Kernel(self.device, self, handle, name, _signature.settle(known, sizes))
        self._kernels[key] = kernel
        return kernel

    def __getitem__(self, name: str) -> Kernel:
        return self.kernel(name)

    def image(self, kind: str = "ptx") -> bytes | None:
        """What the module was compiled to: "ptx" or "cubin"; None if it does not have that."""
        self._need()
        output = {"ptx": _core.BH_OUTPUT_PTX, "cubin": _core.BH_OUTPUT_CUBIN}.get(kind)
        if output is None:
            raise refused(f"{kind!r} is no kind of image", 'use "ptx" or "cubin"')
        binary = _core.module_binary(self._handle)
        if binary is None:
            return None
        try:
            return _core.binary_image(binary, output)
        finally:
            _core.binary_release(binary)

    def compiled(self) -> dict | None:
        """Compiler, time and cache of the compile, as a dict; None: it was loaded."""
        self._need()
        binary = _core.module_binary(self._handle)
        if binary is None:
            return None
        try:
            return _core.binary_info(binary)
        finally:
            _core.binary_release(binary)

    def write(self, variable: str, data, offset: int = 0) -> None:
        """Sets a ``__device__`` or ``__constant__`` variable from bytes or a NumPy array."""
        self._need()
        _core.global_write(self._handle, variable, offset, data)

    def read(self, variable: str) -> bytes:
        """The bytes of a variable."""
        self._need()
        data = bytearray(_core.global_size(self._handle, variable))
        _core.global_read(self._handle, variable, 0, data)
        return bytes(data)

    def accept(self) -> None:
        """After a loss: continues with the values that the new worker started with."""
        self._need()
        _core.module_accept(self._handle)

    def _need(self):
        if not self._handle:
            raise refused("the module was released", "load it again")

    def release(self) -> None:
        """Unloads the module when the work that uses it is complete."""
        handle, self._handle = self._handle, 0
        self._kernels.clear()
        if handle and self.device.is_open:
            _core.module_release(handle)

    def __enter__(self) -> Module:
        return self

    def __exit__(self, *exception) -> None:
        self.release()

    def __del__(self):
        try:
            if self._handle and self.device.is_open:
                _core.module_release(self._handle)
        except Exception:  # the interpreter is ending
            pass

    def __repr__(self) -> str:
        return f"<bulkhead.Module {', '.join(self.kernels()) if self._handle else 'released'}>"

    def __reduce_ex__(self, protocol):
        raise TypeError("a module cannot be pickled. Fix: pickle its source or module.image()")
