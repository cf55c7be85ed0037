"""A receiver of webhooks that checks every signature and event, by its own code or by packages from PyPI.

Usage: webhooks.py SECRETS [--packages]

SECRETS is a file with lines of a path and a secret; each request reads it again. Prints its port, then a JSON line for each
request: method, path, webhook-id, the events' ids, whether everything is correct, and what is not. A path that begins with
/slow is answered late.
"""

import base64
import hashlib
import hmac
import http.server
import json
import pathlib
import sys
import threading
import time
import urllib.parse

secrets_file = pathlib.Path(sys.argv[1])
with_packages = "--packages" in sys.argv[2:]
if with_packages:
    import cloudevents.http
    import standardwebhooks


def secrets(path):
    lines = secrets_file.read_text().splitlines() if secrets_file.exists() else []
    return [line.split()[1] for line in lines if line.split()[:1] == [path]]


def signers(headers, body, candidates):
    """How many of the candidates have signed this."""
    found = 0
    content = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    given = [part.split(",", 1)[1] for part in headers["webhook-signature"].split(" ") if part.startswith("v1,")]
    for candidate in candidates:
        key = base64.b64decode(candidate.removeprefix("whsec_"))
        expected = base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()
        mine = any(hmac.compare_digest(expected, one) for one in given)
        if with_packages:
            try:
                standardwebhooks.Webhook(candidate).verify(body, {k.lower(): v for k, v in headers.items()})
                theirs = True
            except standardwebhooks.WebhookVerificationError:
                theirs = False
            assert mine == theirs, "the package and we disagree about a signature"
        found += mine
    assert abs(time.time() - int(headers["webhook-timestamp"])) < 300, "the timestamp is off"
    return found


def events(headers, body):
    kind = (headers["content-type"] or "").split(";")[0]
    if kind == "application/cloudevents-batch+json":
        found = json.loads(body)
    elif kind == "application/cloudevents+json":
        found = [json.loads(body)]
    else:
        names = {name.lower(): value for name, value in headers.items()}
        one = {n[3:]: urllib.parse.unquote(v, errors="strict") for n, v in names.items() if n.startswith("ce-")}
        one["data"] = json.loads(body)
        found = [one]
    if with_packages:
        if kind == "application/cloudevents-batch+json":
            read = cloudevents.http.from_json
            theirs = [read(json.dumps(one)) for one in found]
        else:
            theirs = [cloudevents.http.from_http({k.lower(): v for k, v in headers.items()}, body)]
        for one, other in zip(found, theirs, strict=True):
            assert one["id"] == other["id"] and one["type"] == other["type"] and one["source"] == other["source"]
            data = other.data
            if isinstance(data, (bytes, str)):
                data = json.loads(data)
            assert one["data"] == data, "the package and we disagree about the data"
    for one in found:
        assert one["specversion"] == "1.0"
        for name in ("id", "type", "source", "time"):
            assert one[name], name
    return [one["id"] for one in found]


lock = threading.Lock()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def tell(self, **what):
        with lock:
            print(json.dumps({"method": self.command, "path": self.path, **what}), flush=True)

    def do_OPTIONS(self):
        self.tell(origin=self.headers["webhook-request-origin"])
        self.send_response(200)
        self.send_header("WebHook-Allowed-Origin", self.headers["webhook-request-origin"] or "-")
        self.send_header("WebHook-Allowed-Rate", "*")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        try:
            ids = events(self.headers, body)
            count = signers(self.headers, body, secrets(self.path))
            self.tell(id=self.headers["webhook-id"], events=ids, signers=count, ok=count > 0)
        except Exception as error:  # whatever it is, it is the answer
            self.tell(id=self.headers["webhook-id"], events=[], signers=0, ok=False, why=repr(error))
        if self.path.startswith("/slow"):
            time.sleep(0.2)
        self.send_response(204)
        self.end_headers()


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
