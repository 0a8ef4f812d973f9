"""A coordinator that only says what it is told to, for tests of the `kapok` command."""
import http.server
import json
import threading

DIGEST = "00112233445566778899aabbccddeeff"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def whole(self, status, text):
        text = text.encode() if isinstance(text, str) else text
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self):
        fake = self.server.fake
        status, text = fake.answers.get(self.path, (404, "{}"))
        self.whole(status, text)

    def do_POST(self):
        fake = self.server.fake
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        fake.asked.append((self.path, body, self.headers))
        if fake.refusal:
            return self.whole(*fake.refusal)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            for piece in fake.stream(body):
                self.wfile.write(piece.encode())
                self.wfile.flush()
        except (BrokenPipeError, ConnectionResetError):
            fake.left.set()


class Fake:
    """with Fake(stream) as f: f.url, f.asked; `stream(body)` yields the pieces of an answer."""

    def __init__(self, stream=None):
        self.stream = stream or (lambda body: completion(["A", "b"], [5, 6]))
        self.asked, self.refusal = [], None
        self.answers = {"/v1/models": (200, '{"data": [{"id": "kimi-k3"}]}')}
        self.left = threading.Event()

    def __enter__(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.fake = self
        self.url = "http://127.0.0.1:%d" % self.server.server_port
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *what):
        self.server.shutdown()
        self.server.server_close()


def event(value):
    return "data: %s\n\n" % (value if isinstance(value, str) else json.dumps(value))


def chunk(text, finish=None, **more):
    return event(dict({"object": "text_completion", "choices": [
        {"index": 0, "text": text, "finish_reason": finish}]}, **more))


def completion(texts, ids):
    """The pieces of a whole stream, one token each, as a coordinator sends them."""
    yield ": reading the prompt\n\n"
    for text, token in zip(texts, ids):
        yield chunk(text, kapok={"token_ids": [token]})
    yield chunk("", "length", kapok={
        "token_ids": ids, "logits_digest": DIGEST,
        "bytes_read": {"trunk": 4096, "experts": 8192},
        "seconds": {"queue": 0.5, "prefill": 1.5, "decode": 2.5}})
    yield event({"choices": [], "usage": {
        "prompt_tokens": 3, "completion_tokens": len(ids), "total_tokens": 3 + len(ids),
        "prompt_tokens_details": {"cached_tokens": 1}}})
    yield "data: [DONE]\n\n"
