# SPDX-License-Identifier: Apache-2.0
"""The pytest plugin, the Jupyter magic, the notebooks, the examples, the type hints."""

import ast
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from conftest import PTX

import bulkhead

ROOT = pathlib.Path(__file__).parents[3]
PACKAGE = ROOT / "python" / "bulkhead"


def test_the_fixture(bulkhead_device):
    x = bulkhead_device.zeros(4, "int32")
    bulkhead_device.load(PTX)["add"][1, 4](x, 1, 4).wait()
    assert x.tolist() == [1] * 4


@pytest.mark.parametrize(
    "body, outcome, says",
    [
        ("pass", "1 passed", ""),
        ("device.load(PTX)['add'][1, 4](device.zeros(4, 'i32'), 1, 4).wait()", "1 passed", ""),
        ("device.load(PTX)['add'][1, 8](device.zeros(4, 'i32'), 1, 8)", "1 error", "did not look"),
        (
            "device.load(PTX)['add'][1, 8](device.zeros(4, 'i32'), 1, 8).wait()",
            "1 failed",
            "FaultError",
        ),
        (
            "t = device.load(PTX)['add'][1, 8](device.zeros(4, 'i32'), 1, 8)\n    device.sync()\n"
            "    assert isinstance(t.error, bulkhead.FaultError)",
            "1 passed",
            "",
        ),
        (
            "import pytest\n    with pytest.raises(bulkhead.FaultError):\n"
            "        device.load(PTX)['add'][1, 8](device.zeros(4, 'i32'), 1, 8).wait()",
            "1 passed",
            "",
        ),
        ("device.close()", "1 passed", ""),
    ],
)
def test_the_plugin_under_the_checker(body, outcome, says, tmp_path, device_name):
    if device_name != "cpu":
        pytest.skip("the checker is of the CPU device")
    (tmp_path / "test_it.py").write_text(
        f"import bulkhead\nPTX = {PTX!r}\ndef test_it(bulkhead_device):\n"
        f"    device = bulkhead_device\n    {body}\n"
    )
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "-p",
            "bulkhead.pytest_plugin",
            "--bulkhead-device",
            "cpu",
            "test_it.py",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert outcome in done.stdout and says in done.stdout, done.stdout + done.stderr
    assert ("error" in done.stdout.splitlines()[-1]) == ("error" in outcome), done.stdout


def test_the_magic(compiler, device_name):
    from bulkhead import jupyter

    x = np.ones(10, "float32")
    space = {"x": x, "n": 10}
    table = jupyter.run_cell(
        f'twice --device {device_name} --threads n --block 32 --args "x, n" --repeat 2',
        'extern "C" __global__ void twice(float *x, int n) {\n'
        "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i < n) x[i] *= 2;\n}",
        space,
    )
    assert x.tolist() == [4] * 10 and "completed" in repr(table) and "on the device" in repr(table)
    assert "<table>" in table._repr_html_() and space["cuda"].kernels() == ["twice"]
    table = jupyter.run_cell(
        'wrong --args "x"', 'extern "C" __global__ void wrong(float *x) { x[1 << 28] = 1; }', space
    )
    assert "FaultError" in repr(table) and "wrong" in repr(table)
    assert "Compiled: nothing" in repr(jupyter.run_cell("", "__global__ void nothing() {}", space))
    with pytest.raises(bulkhead.InvalidError):
        jupyter.run_cell("--wrong", "", space)
    with pytest.raises(bulkhead.CompileError):
        jupyter.run_cell("", "no CUDA", space)
    jupyter.unload_ipython_extension(None)


def test_in_ipython(compiler):
    testing = pytest.importorskip("IPython.testing.globalipapp")
    shell = testing.get_ipython() or testing.start_ipython()
    shell.run_line_magic("load_ext", "bulkhead.jupyter")
    shell.user_ns["x"] = x = np.ones(4, "float32")
    shell.run_cell_magic(
        "cuda",
        '--device cpu add --block 4 --args "x"',
        'extern "C" __global__ void add(float *x) { x[threadIdx.x] += 1; }',
    )
    assert x.tolist() == [2] * 4
    shell.run_line_magic("unload_ext", "bulkhead.jupyter")


@pytest.mark.parametrize("name", ["kernels.ipynb"])
def test_notebooks(name, compiler):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    book = nbformat.read(ROOT / "examples" / "python" / name, as_version=4)
    nbclient.NotebookClient(book, timeout=60, kernel_name="python3").execute()
    shown = "".join(
        output.get("data", {}).get("text/plain", "")
        for cell in book.cells
        if cell.cell_type == "code"
        for output in cell.outputs
    )
    assert "completed" in shown and "FaultError" in shown


def test_the_example(compiler, device_name):
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "python" / "saxpy.py", device_name],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("y[999] = 1999.0") == 2 and "x is intact: True" in done.stdout


def test_the_first_program_of_the_docs(compiler):
    text = (ROOT / "docs" / "python.md").read_text()
    program = text.split("```python\n")[1].split("```")[0].replace(".open()", ".open('cpu')")
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "1998.0\n", done.stderr


def test_the_command(tmp_path):
    """`bulkhead` of a wheel lies in the package; in the build folder it does not."""
    done = subprocess.run(
        [sys.executable, "-m", "bulkhead", "--version"], capture_output=True, text=True
    )
    if (pathlib.Path(bulkhead.__file__).parent / "bin" / "bulkhead").exists():
        assert bulkhead.__version__ in done.stdout
    else:
        assert done.returncode and "Fix:" in done.stderr


def names_of(path):
    """Classes with their methods, and functions, that a file or a stub declares."""
    found = {}
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found[node.name] = None
        elif isinstance(node, ast.ClassDef):
            found[node.name] = {
                each.name for each in node.body if isinstance(each, ast.FunctionDef)
            }
        elif isinstance(node, ast.AnnAssign):
            found[node.target.id] = None
    return found


def test_the_stub_says_what_the_extension_has():
    from bulkhead import _core

    stub = names_of(PACKAGE / "_core.pyi")
    real = {name for name in dir(_core) if not name.startswith("__")}
    assert real == set(stub)
    for name, methods in stub.items():
        kind = getattr(_core, name)
        if isinstance(kind, type):
            have = {
                each
                for each in vars(kind)
                if not each.startswith("__") or each in ("__getitem__", "__await__", "__call__")
            }
            assert have == {
                each for each in methods if each not in ("__init__", "__new__", "__buffer__")
            }, name


def test_everything_public_is_documented():
    for name in bulkhead.__all__:
        thing = getattr(bulkhead, name)
        assert not callable(thing) or thing.__doc__, name
        for method, function in vars(thing).items() if isinstance(thing, type) else ():
            if callable(function) and not method.startswith("_"):
                assert function.__doc__, f"{name}.{method}"
    assert (PACKAGE / "py.typed").exists()


def test_types():
    mypy = pytest.importorskip("mypy.api")
    if "BULKHEAD_PYTHON_TYPES" not in os.environ:
        pytest.skip("mypy takes long: BULKHEAD_PYTHON_TYPES=1 runs it")
    out, errors, status = mypy.run(["--no-incremental", "--cache-dir", os.devnull, str(PACKAGE)])
    assert status == 0, out + errors
