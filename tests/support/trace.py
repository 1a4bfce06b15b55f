# SPDX-License-Identifier: Apache-2.0
"""Reads a trace file and checks what must hold of any. Prints one line for each request, in the order of
the file: lane, ticket, name, verdict, grid, block, bytes, for sequences steps and repeats; then one for each event of the device.
With --cut the file may lack its end."""
import json
import sys

text = open(sys.argv[-1]).read()
cut = "--cut" in sys.argv
if cut:
    text = text[: text.rindex(",\n{")] + "]"
events = json.loads(text)
assert isinstance(events, list) and events

lives, running, lines, device = {}, {}, [], []
for e in events:
    assert isinstance(e["pid"], int) and isinstance(e["tid"], int), e
    phase = e["ph"]
    if phase == "M":
        assert e["args"], e
        continue
    assert e["ts"] >= 0, e
    if phase in "bne":
        lives.setdefault(e["id"], []).append(e)
    elif phase == "X" and e["cat"] == "running":
        assert e["dur"] >= 0, e
        track = running.setdefault(e["tid"], [])
        if track:
            assert e["ts"] + 0.002 >= track[-1]["ts"] + track[-1]["dur"], (track[-1], e)
        track.append(e)
    else:
        assert phase in "iX" and (phase == "X" or e["s"] in "gpt"), e
        device.append(e)

for id, life in lives.items():
    phases = [e["ph"] for e in life]
    if cut and phases[-1] != "e":
        continue
    assert phases in (["b", "n", "e"], ["b", "e"]), (id, phases)
    times = [e["ts"] for e in life]
    assert times == sorted(times), (id, times)
    b, args = life[0], life[0]["args"]
    assert all(e["tid"] == b["tid"] and e["cat"] == b["cat"] for e in life)
    ran = [r for r in running.get(b["tid"], []) if r["args"]["ticket"] == args["ticket"]]
    assert len(ran) <= 1, ran
    if args["verdict"] == "BH_OK" and not cut:
        assert len(phases) == 3 and len(ran) == 1, life
    for r in ran:
        assert r["name"] == b["name"] and r["args"] == args, (r, b)
        assert r["ts"] + 0.002 >= life[1]["ts"], (r, life)
        assert r["ts"] + r["dur"] <= life[-1]["ts"] + 0.002, (r, life)
    shape = lambda key: "x".join(map(str, args.get(key, [0])))
    print(b["tid"] - 1, args["ticket"], b["name"], args["verdict"], shape("grid"), shape("block"),
          args.get("bytes", 0), *(args[key] for key in ("steps", "repeat") if key in args))
for e in device:
    print("device", e["name"], *sorted(e["args"]))
