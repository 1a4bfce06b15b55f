# SPDX-License-Identifier: Apache-2.0
"""What `bulkhead run --repeat` and `bulkhead bench` draw on a terminal, and do not draw elsewhere."""

import json
import re
import subprocess
import sys

source, bulkhead, tmp = sys.argv[1:4]
sys.path.insert(0, source + "/tests/top/tools")
from terminal import Terminal  # noqa: E402


def check(holds, what):
    if not holds:
        raise SystemExit(what)


run = [bulkhead, "run", source + "/tests/cli/saxpy.ptx", "-d", "cpu", "-b", "8", "f32:2", "in:f32:0..7", "inout:f32:1*8", "u32:8"]
for locale, bar in (("C.UTF-8", "█"), ("C", "#")):
    t = Terminal(run + ["--repeat", "500"], rows=40, columns=110, environment={"LC_ALL": locale})
    check(t.end() == 0, "run failed\n" + t.text())
    text = t.text()
    check("device time of a launch:" in text and bar * 40 in text, text)
    counts = [int(n) for n in re.findall(r"^ +[\d.]+ \w+ to [\d.]+ \w+ +(\d+) ?[%s▏▎▍▌▋▊▉]*$" % bar, text, re.M)]
    check(sum(counts) == 500, "%s launches\n%s" % (counts, text))
plain = subprocess.run(run + ["--repeat", "500"], capture_output=True, text=True)
check("device time" not in plain.stderr and "per launch" in plain.stderr, plain.stderr)

page = tmp + "/bench.html"
bench = subprocess.run([bulkhead, "bench", "-d", "cpu", "--quick", "--json", "--html", page], capture_output=True, text=True)
check(bench.returncode == 0 and bench.stderr == "", bench.stderr)
measures = json.loads(bench.stdout)["measures"]
check(len(measures) == 8 and all(m["samples"] >= 3 for m in measures.values()), bench.stdout)
for name, m in measures.items():
    check(0 < m["best_ns"] <= m["median_ns"] <= m["p99_ns"] <= m["worst_ns"] < 20e9, "%s: %s" % (name, m))
with open(page) as f:
    html = f.read()
check(html.count("<section>") == 8 and html.count("<svg") == 8 and "http" not in html and "src=" not in html, html[:3000])

t = Terminal([bulkhead, "bench", "-d", "cpu", "--quick"], rows=40, columns=110, environment={"LC_ALL": "C"})
check(t.end(20) == 0, "bench failed\n" + t.text())
check(b"[########" in t.raw and "[" not in t.text(), "the bar is not drawn, or stays\n" + t.text())
check(re.search(r"^loss to running again +[\d.]+ [mu]?s", t.text(), re.M), t.text())
wrong = subprocess.run([bulkhead, "bench", "-d", "tpu"], capture_output=True, text=True)
check(wrong.returncode == 1 and "Fix: " in wrong.stderr, wrong.stderr)
wrong = subprocess.run([bulkhead, "bench", "--html", "/no/such/folder/x"], capture_output=True, text=True)
check(wrong.returncode == 1 and "Fix: " in wrong.stderr, wrong.stderr)
