#!/usr/bin/python3
"""Stands for kapok-expertd, kapok-trunk and kapok-coordinator in tests of `kapok up`: listens,
says so, writes its command line down, ends on SIGTERM. Copied beside a copy of `kapok` under
each of the three names. Files in its folder change what it does:

    NAME.fails       it ends with a sentence before it listens
    NAME.calls       its command lines, one JSON list a line (written)
    unready          the coordinator answers 503 on /ready while this exists
"""
import http.server
import json
import os
import signal
import socket
import sys

folder, name = os.path.split(os.path.abspath(sys.argv[0]))


def given(what):
    return os.path.exists(os.path.join(folder, what))


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *arguments):
        pass

    def do_GET(self):
        text = b"{}"
        self.send_response(503 if self.path == "/ready" and given("unready") else 200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


def main():
    with open(os.path.join(folder, name + ".calls"), "a") as calls:
        calls.write(json.dumps(sys.argv[1:]) + "\n")
    if given(name + ".fails"):
        print("the memory budget is too small", file=sys.stderr)
        sys.exit(1)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    print("2026-01-01T00:00:00 info options", file=sys.stderr)
    print("%-32s %16d bytes" % ("ring of " + name, 4096), file=sys.stderr, flush=True)
    address = sys.argv[sys.argv.index("--listen") + 1]
    host, port = address.replace("tcp://", "").rsplit(":", 1)
    if name == "kapok-coordinator":
        server = http.server.ThreadingHTTPServer((host, int(port)), Handler)
        print("listening http://%s:%d" % (host, server.server_port), flush=True)
        server.serve_forever()
    listener = socket.create_server((host, int(port)), reuse_port=False)
    print("listening tcp://%s:%d" % (host, listener.getsockname()[1]), flush=True)
    while True:
        signal.pause()


main()
