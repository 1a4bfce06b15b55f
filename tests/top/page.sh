#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The page of bulkhead serve in a browser: what it draws, in light and dark, and that texts of other
# programs stay texts; a long trace, and zooming as far as it goes. With BULKHEAD_PICTURES=FOLDER the
# pictures are kept there.
# TIMEOUT: 90
set -u
tmp=${BULKHEAD_TEST_TMP:?}
busy=${BULKHEAD_BUILD_DIR:?}/tests/programs/busy
pictures=${BULKHEAD_PICTURES:-$tmp}
browser=
for name in chromium chromium-browser google-chrome; do
    command -v "$name" >/dev/null && browser=$name && break
done
[ -n "$browser" ] || { echo "skip: chromium is not installed"; exit 77; }
command -v python3 >/dev/null || { echo "skip: python3 is not installed"; exit 77; }

mkfifo "$tmp/hold" "$tmp/said"
"$busy" "$tmp" <"$tmp/hold" >"$tmp/said" &
program=$!
exec 3>"$tmp/hold"
read -r line <"$tmp/said" && [ "$line" = ready ] || { echo "busy did not start"; exit 1; }
echo '[{"ph":"X","pid":1,"tid":1,"name":"<b>bold</b>","ts":0,"dur":5}]' >"$tmp/a<img src=x>.json"
"${BULKHEAD_BIN:?}" serve -q -l 0 -i 0.1 --traces "$tmp" --reports "$tmp" >"$tmp/address" &
server=$!
trap 'kill $server; exec 3>&-; wait $program $server' EXIT
while ! [ -s "$tmp/address" ]; do sleep 0.02; done
address=$(cat "$tmp/address")
# Lines need a few values.
python3 -c '
import sys, time, urllib.request
for _ in range(6):
    urllib.request.urlopen(sys.argv[1] + "json").read()
    time.sleep(0.15)' "$address"

# look OPTION... : the page after some of its seconds.
look() {
    timeout 40 "$browser" --headless=new --no-sandbox --disable-gpu --hide-scrollbars \
        --user-data-dir="$tmp/profile" --window-size=1280,1500 --virtual-time-budget=4000 "$@" \
        "$address" 2>"$tmp/browser-errors"
}
look --dump-dom >"$tmp/page.html"
look --screenshot="$pictures/light.png" >/dev/null
look --blink-settings=preferredColorScheme=0 --screenshot="$pictures/dark.png" >/dev/null
[ -s "$tmp/page.html" ] || { echo "skip: $browser does not run here: $(tail -1 "$tmp/browser-errors")"; exit 77; }

failed=0
expect() {
    grep -Eq "$1" "$tmp/page.html" || {
        echo "not in the page: $1"
        failed=1
    }
}
expect '<span id="state" class="dim">1 open</span>'
expect '<td>busy</td>'
expect '<td class=" wide">weights</td>'
expect '<td class=" wide">iota</td>'
expect 'class="line" d="M0.0 '
expect 'trap_now'
expect '<option value="busy.json">busy.json'
expect '<option value="a&lt;img src=x&gt;.json">a&lt;img src=x&gt;.json'
expect 'aria-label="1 spans on 1 tracks"'
expect '<pre id="report">[^<]'
if grep -q '<img' "$tmp/page.html"; then
    echo "a text became part of the page"
    failed=1
fi
if [ "$failed" = 1 ]; then tail -c 3000 "$tmp/page.html"; fi

# Drawn, and dark where it should be: the corner's colour, and how many colours there are.
python3 - "$pictures/light.png" "$pictures/dark.png" <<'END' || failed=1
import struct, sys, zlib

def pixels(path):
    data, at, packed = open(path, "rb").read(), 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        if kind == b"IHDR":
            width, height, depth, color = struct.unpack(">IIBB", data[at + 8:at + 18])
        if kind == b"IDAT":
            packed += data[at + 8:at + 8 + length]
        at += 12 + length
    step = {2: 3, 6: 4}[color]
    raw, lines, before = zlib.decompress(packed), [], bytearray(width * step)
    for y in range(height):
        start = y * (width * step + 1)
        kind, line = raw[start], bytearray(raw[start + 1:start + 1 + width * step])
        if kind:
            for x in range(len(line)):
                a = line[x - step] if x >= step else 0
                b, c = before[x], before[x - step] if x >= step else 0
                if kind == 1:
                    line[x] = line[x] + a & 255
                elif kind == 2:
                    line[x] = line[x] + b & 255
                elif kind == 3:
                    line[x] = line[x] + (a + b) // 2 & 255
                else:
                    p = a + b - c
                    best = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
                    line[x] = line[x] + best & 255
        lines.append(line)
        before = line
        if y == 700:
            break
    return lines, step

for path, dark in ((sys.argv[1], False), (sys.argv[2], True)):
    lines, step = pixels(path)
    corner = sum(lines[2][6 * step:6 * step + 3])
    colors = {bytes(line[x:x + 3]) for line in lines[::3] for x in range(0, len(line), step * 3)}
    if (corner < 200) != dark:
        sys.exit("%s: the corner has the brightness %d" % (path, corner))
    if len(colors) < 40:
        sys.exit("%s: only %d colours" % (path, len(colors)))
END

# A long trace, in microseconds since a day long ago as some tools write them.
python3 -c '
for i in range(150000):
    print("[,"[i > 0] + "{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"name\":\"n\",\"ts\":%d,\"dur\":1}" % (1700000000000000 + 3 * i))
print("]")' >"$tmp/long.json"
touch -d '+1 minute' "$tmp/long.json"
python3 "${BULKHEAD_SOURCE_DIR:?}/tests/top/tools/zoom.py" "$address" >"$tmp/passed" &
passing=$!
trap 'kill $server $passing; exec 3>&-; wait $program $server' EXIT
while ! [ -s "$tmp/passed" ]; do sleep 0.02; done
address=$(cat "$tmp/passed")
look --dump-dom >"$tmp/page.html"
expect 'aria-label="150000 spans on 1 tracks"'
expect '<title>zoomed</title>'
grep -Eo '<title>.*</title>|id="state"[^/]*' "$tmp/page.html"
exit $failed
