#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks a CUDA device what texture and surface instructions give.

    python3 tests/ptx/tools/ask_textures.py textures.txt.gz

needs the CUDA driver and a GPU, nothing else. The file has blocks, in hexadecimal:

    image NAME FORMAT channels=N size=XxYxZ layers=N levels=N cube=0|1
        then a line for each level: its texels without gaps, as bytes
    fetch IMAGE (mode=... linear=... ...) INSTRUCTION    or: fetch IMAGE surface INSTRUCTION
        then a line for each input: eight words, =, four words of results
    store IMAGE INSTRUCTION
        then a line for each input: eight words, =, OFFSET:BYTE for each byte of level 0 that
        changed; the image has its first contents before each

An instruction or object that the driver refuses has one line instead: refused, and its error. A
launch that fails ends the script, because the context is lost then. texture_questions.py has the questions. With `--ptxas PTXAS` nothing is run:
every instruction is assembled, to find mistakes without a GPU.
"""
import argparse
import ctypes
import gzip
import subprocess
import sys
import tempfile

import texture_questions as questions
from ask_device import Device

HEAD = ".version 8.4\n.target sm_90\n.address_size 64\n"
ENTRY = """.visible .entry k(.param .u64 handle, .param .u64 in, .param .u64 out, .param .u32 count)
{ .reg .b64 %%t, %%in, %%out, %%at, %%d<9>; .reg .b32 %%r<9>, %%o<4>, %%i, %%n; .reg .f32 %%f<9>;
.reg .b16 %%h<9>; .reg .pred %%past;
ld.param.u64 %%t, [handle]; ld.param.u64 %%in, [in]; ld.param.u64 %%out, [out];
ld.param.u32 %%n, [count]; mov.u32 %%i, %%tid.x; setp.ge.u32 %%past, %%i, %%n; @%%past ret;
mul.wide.u32 %%at, %%i, 32; add.u64 %%in, %%in, %%at;
mul.wide.u32 %%at, %%i, 16; add.u64 %%out, %%out, %%at;
ld.global.v4.u32 {%%r1, %%r2, %%r3, %%r4}, [%%in];
ld.global.v4.u32 {%%r5, %%r6, %%r7, %%r8}, [%%in+16];
mov.b32 %%f1, %%r1; mov.b32 %%f2, %%r2; mov.b32 %%f3, %%r3; mov.b32 %%f4, %%r4;
mov.b32 %%f5, %%r5; mov.b32 %%f6, %%r6; mov.b32 %%f7, %%r7; mov.b32 %%f8, %%r8;
mov.b64 %%d5, {%%r5, %%r6}; cvt.u16.u32 %%h5, %%r5;
mov.u32 %%o0, 0; mov.u32 %%o1, 0; mov.u32 %%o2, 0; mov.u32 %%o3, 0;
%s
%s
st.global.v4.u32 [%%out], {%%o0, %%o1, %%o2, %%o3}; ret; }
"""


def entry(instruction):
    """Results that are not words are made words."""
    result = instruction.split("[")[0] if not instruction.startswith("su") else \
        instruction.split(" ", 1)[1].split("[")[0]
    move = ""
    if "%d0" in result:
        move = "mov.b64 {%o0, %o1}, %d0;"
    elif "%h1" in result:
        move = "".join("cvt.u32.u16 %%o%d, %%h%d;" % (n, n) for n in range(4))
    elif "%h0" in result:
        move = "cvt.u32.u16 %o0, %h0;"
    return HEAD + ENTRY % (instruction, move)


class ArrayShape(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t * 3), ("format", ctypes.c_int),
                ("channels", ctypes.c_uint), ("flags", ctypes.c_uint)]


class Side(ctypes.Structure):
    _fields_ = [("at", ctypes.c_size_t * 4), ("kind", ctypes.c_int), ("host", ctypes.c_void_p),
                ("device", ctypes.c_uint64), ("array", ctypes.c_void_p),
                ("reserved", ctypes.c_void_p), ("pitch", ctypes.c_size_t),
                ("height", ctypes.c_size_t)]


class Copy(ctypes.Structure):
    _fields_ = [("source", Side), ("target", Side), ("size", ctypes.c_size_t * 3)]


class Resource(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int), ("handle", ctypes.c_void_p),
                ("reserved", ctypes.c_int * 30), ("flags", ctypes.c_uint)]


class Texture(ctypes.Structure):
    _fields_ = [("modes", ctypes.c_int * 3), ("filter", ctypes.c_int), ("flags", ctypes.c_uint),
                ("anisotropy", ctypes.c_uint), ("levels", ctypes.c_int),
                ("bias", ctypes.c_float), ("lowest", ctypes.c_float), ("highest", ctypes.c_float),
                ("border", ctypes.c_float * 4), ("reserved", ctypes.c_int * 12)]


assert (ctypes.sizeof(ArrayShape), ctypes.sizeof(Copy), ctypes.sizeof(Resource),
        ctypes.sizeof(Texture)) == (40, 200, 144, 104)

HOST, ARRAY = 1, 3
LAYERED, SURFACE, CUBE, GATHER = 1, 2, 4, 8


class Arrays:
    """One image as the driver has it: a mipmapped array, or an array."""

    def __init__(self, device, image):
        self.device, self.image, self.handle = device, image, ctypes.c_void_p()
        self.mipmapped = False
        flat = image.dimensions == 2 and image.levels == 1 and not image.cube
        try:
            self.create(GATHER if flat else 0)
        except RuntimeError:
            self.create(0)
        self.fill()

    def create(self, more):
        image = self.image
        flags = LAYERED * bool(image.layers) | SURFACE * image.surface | CUBE * image.cube | more
        depth = image.size[2] or max(image.layers, int(image.cube)) * (6 if image.cube else 1)
        shape = ArrayShape((ctypes.c_size_t * 3)(*image.size[:2], depth),
                           questions.CODE[image.form][0], image.channels, flags)
        self.mipmapped = image.levels > 1
        if self.mipmapped:
            self.device.call("cuMipmappedArrayCreate", ctypes.byref(self.handle),
                             ctypes.byref(shape), ctypes.c_uint(image.levels))
        else:
            self.device.call("cuArray3DCreate_v2", ctypes.byref(self.handle), ctypes.byref(shape))

    def fill(self):
        for level in range(self.image.levels):
            self.copy(level, self.image.level_bytes(level), False)

    def read(self):
        return self.copy(0, bytes(len(self.image.level_bytes(0))), True)

    def copy(self, level, data, read):
        array, buffer = self.handle, ctypes.create_string_buffer(data, len(data))
        if self.mipmapped:
            array = ctypes.c_void_p()
            self.device.call("cuMipmappedArrayGetLevel", ctypes.byref(array), self.handle,
                             ctypes.c_uint(level))
        width, height, depth = self.image.level_size(level)
        host = Side(kind=HOST, host=ctypes.addressof(buffer), pitch=width * self.image.texel,
                    height=height)
        there = Side(kind=ARRAY, array=array.value)
        order = Copy(*((there, host) if read else (host, there)),
                     (ctypes.c_size_t * 3)(width * self.image.texel, height, depth))
        self.device.call("cuMemcpy3D_v2", ctypes.byref(order))
        return buffer.raw

    def object(self, sampling):
        made = ctypes.c_uint64()
        resource = Resource(int(self.mipmapped), self.handle.value)
        if sampling is None:
            self.device.call("cuSurfObjectCreate", ctypes.byref(made), ctypes.byref(resource))
            return made
        how = Texture((ctypes.c_int * 3)(*(sampling.mode,) * 3), sampling.linear, sampling.flags, 0,
                      sampling.levels, sampling.bias, sampling.lowest, sampling.highest,
                      (ctypes.c_float * 4)(*sampling.border))
        self.device.call("cuTexObjectCreate", ctypes.byref(made), ctypes.byref(resource),
                         ctypes.byref(how), None)
        return made


class Asker:
    def __init__(self, file):
        self.device, self.file, self.arrays = Device(), file, {}

    def say(self, *words):
        print(*words, file=self.file)

    def images(self):
        for name, image in questions.IMAGES.items():
            self.arrays[name] = Arrays(self.device, image)
            self.say("image", image)
            for level in range(image.levels):
                self.say(image.level_bytes(level).hex())

    def launch(self, function, handle, rows):
        """One block; a row has one thread."""
        flat = [word for row in rows for word in row]
        source = self.device.upload((ctypes.c_uint32 * len(flat))(*flat))
        got = (ctypes.c_uint32 * (4 * len(rows)))()
        target, count = self.device.upload(got), ctypes.c_uint32(len(rows))
        arguments = (ctypes.c_void_p * 4)(
            *(ctypes.addressof(v) for v in (handle, source, target, count)))
        self.device.call("cuLaunchKernel", function, 1, 1, 1, 512, 1, 1, 0, None, arguments, None)
        self.device.call("cuCtxSynchronize")
        self.device.call("cuMemcpyDtoH_v2", got, target, ctypes.c_size_t(ctypes.sizeof(got)))
        self.device.call("cuMemFree_v2", source)
        self.device.call("cuMemFree_v2", target)
        return [tuple(got[at:at + 4]) for at in range(0, len(got), 4)]

    def ask(self, kind, question, answer):
        image, sampling, instruction, rows = question
        how = f"({sampling}) " if sampling else "surface " if kind == "fetch" else ""
        self.say(kind, image.name, how + instruction)
        try:
            module, function = self.device.load(entry(instruction)), ctypes.c_void_p()
            self.device.call("cuModuleGetFunction", ctypes.byref(function), module, b"k")
            handle = self.arrays[image.name].object(sampling)
        except RuntimeError as error:
            self.say("refused:", " ".join(str(error).split()))
            return
        for row, result in zip(rows, answer(image, function, handle, rows)):
            self.say(*("%x" % word for word in row), "=", *result)
        name = "cuTexObjectDestroy" if sampling else "cuSurfObjectDestroy"
        self.device.call(name, handle)
        self.device.call("cuModuleUnload", module)

    def fetched(self, _, function, handle, rows):
        for result in self.launch(function, handle, rows):
            yield ["%x" % word for word in result]

    def stored(self, image, function, handle, rows):
        before = image.level_bytes(0)
        for row in rows:
            self.arrays[image.name].fill()
            self.launch(function, handle, [row])
            after = self.arrays[image.name].read()
            yield ["%x:%02x" % (at, new) for at, (old, new) in enumerate(zip(before, after))
                   if old != new]
        self.arrays[image.name].fill()

    def everything(self):
        self.images()
        for question in questions.fetches():
            self.ask("fetch", question, self.fetched)
        for question in questions.surface_loads():
            self.ask("fetch", question, self.fetched)
        for question in questions.surface_stores():
            self.ask("store", question, self.stored)


def assemble(ptxas):
    """True if every instruction that is asked is valid."""
    texts = {q[2] for part in (questions.fetches, questions.surface_loads, questions.surface_stores)
             for q in part()}
    good = True
    for instruction in sorted(texts):
        with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
            file.write(entry(instruction))
            file.flush()
            done = subprocess.run([ptxas, "-arch=sm_90", "-o", "/dev/null", file.name],
                                  capture_output=True, text=True, check=False)
        if done.returncode != 0:
            good = False
            print(instruction, done.stderr, sep="\n")
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="?", default="textures.txt.gz")
    parser.add_argument("--ptxas", help="only assemble, with this assembler")
    options = parser.parse_args()
    if options.ptxas:
        return 0 if assemble(options.ptxas) else 1
    with gzip.open(options.file, "wt", compresslevel=9) as file:
        Asker(file).everything()
    return 0


if __name__ == "__main__":
    sys.exit(main())
