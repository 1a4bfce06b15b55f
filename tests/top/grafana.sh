#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The dashboard names only metrics that bulkhead serve has, with labels that they have.
set -u
command -v python3 >/dev/null || { echo "skip: python3 is not installed"; exit 77; }
PYTHONDONTWRITEBYTECODE=1 exec python3 - "${BULKHEAD_SOURCE_DIR:?}" "${BULKHEAD_BUILD_DIR:?}" <<'END'
import json, re, subprocess, sys, urllib.request

source, build = sys.argv[1:3]
busy = subprocess.Popen([build + "/tests/programs/busy"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
assert busy.stdout.readline() == b"ready\n"
serve = subprocess.Popen([build + "/bin/bulkhead", "serve", "-q", "-l", "0"], stdout=subprocess.PIPE, text=True)
page = urllib.request.urlopen(serve.stdout.readline().strip() + "metrics").read().decode()
serve.terminate()
busy.stdin.close()
busy.wait()

labels = {}
for line in page.splitlines():
    found = re.match(r"([a-z_]+)\{(.*)\} ", line)
    if found and line[0] != "#":
        labels.setdefault(found.group(1), set()).update(re.findall(r'(?:^|,)([a-z]+)="', found.group(2)))

with open(source + "/contrib/grafana/bulkhead.json") as f:
    board = json.load(f)
texts = []


def walk(it):
    for key, value in it.items() if isinstance(it, dict) else enumerate(it):
        if key in ("expr", "query", "definition") and isinstance(value, str):
            texts.append(value)
        elif isinstance(value, (dict, list)):
            walk(value)


walk(board)
named, failed = set(), False
for text in texts:
    for name, inside in re.findall(r"\b(bulkhead_[a-z_]+)\b(?:\{([^}]*)\})?", text):
        named.add(name)
        if name not in labels:
            failed = True
            print("%s is not a metric: %s" % (name, text))
            continue
        for label in re.findall(r"(\w+)=~", inside):
            if label not in labels[name]:
                failed = True
                print("%s has no label %s: %s" % (name, label, text))
        for label in re.findall(r"by \(([^)]*)\)", text):
            for one in label.split(", "):
                if one not in labels[name]:
                    failed = True
                    print("%s has no label %s: %s" % (name, one, text))
if len(named) < 15:
    failed = True
    print("found only %s" % named)
places = [(p["gridPos"], p["title"]) for p in board["panels"]]
for i, (a, name) in enumerate(places):
    for b, other in places[:i]:
        if a["x"] < b["x"] + b["w"] and b["x"] < a["x"] + a["w"] and a["y"] < b["y"] + b["h"] and b["y"] < a["y"] + a["h"]:
            failed = True
            print("%s lies over %s" % (name, other))
sys.exit(failed)
END
