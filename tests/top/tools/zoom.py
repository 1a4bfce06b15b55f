# SPDX-License-Identifier: Apache-2.0
"""Passes the page of `bulkhead serve` on, with a script after it that turns the wheel on the timeline
and drags it, in and out, at several places, and says in the title how far that came."""

import http.server
import sys
import urllib.request

SCRIPT = b"""<script>
(async () => {
  for (let i = 0; i < 200 && !spans.length; i++) await new Promise(done => setTimeout(done, 10));
  spans.length = Math.min(spans.length, 100); /* drawing all of them so often takes long */
  const canvas = id('timeline'), widths = [], wrong = [];
  canvas.setPointerCapture = () => {};
  const turn = (x, y, times) => {
    for (let i = 0; i < times; i++)
      canvas.dispatchEvent(new WheelEvent('wheel', {deltaY: y, clientX: x, cancelable: true}));
  };
  const drag = by => {
    for (const [kind, x] of [['pointerdown', 500], ['pointermove', 500 + by], ['pointerup', 500 + by]])
      canvas.dispatchEvent(new PointerEvent(kind, {clientX: x}));
  };
  for (const x of [300, 900]) {
    turn(x, -1, 250);
    widths.push(range[1] - range[0]);
    drag(200);
    turn(x, 1, 300);
    widths.push(range[1] - range[0]);
    for (let i = 0; i < 100; i++) drag(-5000);
    if (!(range[0] <= full[1] && range[1] >= full[0])) wrong.push('the trace is out of sight: ' + range);
    turn(x, -1, 250);
    id('whole').click();
  }
  for (const i of [0, 2]) {
    if (!(widths[i] >= 1e-3 && widths[i] < 3)) wrong.push('zoomed in to ' + widths[i]);
    if (!(widths[i + 1] > full[1] - full[0])) wrong.push('zoomed out to ' + widths[i + 1]);
  }
  document.title = wrong.length ? wrong.join('; ') : 'zoomed';
})();
</script>
"""


class Pass(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        try:
            with urllib.request.urlopen(sys.argv[1].rstrip("/") + self.path) as answer:
                status, body = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            status, body = error.code, error.read()
        if self.path == "/":
            body += SCRIPT
        self.send_response(status)
        self.send_header("Content-Type", "text/html" if self.path == "/" else "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pass)
print("http://127.0.0.1:%d/" % server.server_port, flush=True)
server.serve_forever()
