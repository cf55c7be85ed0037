"""An S3 for tests: moto behind a door that believes no signature but what botocore works out itself.

Usage: s3.py

Makes the bucket `bucket`, prints the door's port, then a line for each request: its method, path, status, and `signed` or `forged`.
The key is AKIAFAKE with the secret `secret/+of=fakes`, in eu-test-1.
"""

import hashlib
import http.client
import http.server
import urllib.parse

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from moto.server import ThreadedMotoServer

CREDENTIALS = Credentials("AKIAFAKE", "secret/+of=fakes")
REGION = "eu-test-1"

moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
moto.start()
MOTO = moto.get_host_and_port()


def ask(method, path, body=b"", headers=None):
    connection = http.client.HTTPConnection(*MOTO)
    connection.request(method, path, body, headers or {})
    response = connection.getresponse()
    return response, response.read()


class Signer(S3SigV4Auth):
    """Works out the signature of a request as it came: at its own time, over the headers that it names."""

    def __init__(self, names):
        super().__init__(CREDENTIALS, "s3", REGION)
        self.names = names

    def headers_to_sign(self, request):
        kept = http.client.HTTPMessage()
        for name in self.names:
            kept[name] = request.headers[name]
        return kept

    def of(self, request, stamp):
        request.context["timestamp"] = stamp
        text = self.string_to_sign(request, self.canonical_request(request))
        return self.signature(text, request)


def is_signed(method, target, headers, body):
    parts = dict(
        part.strip().split("=", 1) for part in headers.get("authorization", " ").split(" ", 1)[1].split(",") if "=" in part
    )
    if not parts:
        return False
    if headers.get("x-amz-content-sha256") != hashlib.sha256(body).hexdigest():
        return False
    path, _, query = target.partition("?")
    params = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
    request = AWSRequest(
        method=method, url=f"http://{headers['host']}{path}", data=body, params=params,
        headers={name: headers[name] for name in parts["SignedHeaders"].split(";")},
    )
    request.headers["X-Amz-Content-SHA256"] = headers["x-amz-content-sha256"]
    return Signer(parts["SignedHeaders"].split(";")).of(request, headers["x-amz-date"]) == parts["Signature"]


class Door(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def handle_any(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        signed = is_signed(self.command, self.path, headers, body)
        if signed:
            for name in ("host", "content-length", "connection"):
                headers.pop(name, None)
            response, answer = ask(self.command, self.path, body, headers)
            status, found = response.status, response.getheaders()
        else:
            status, found, answer = 403, [], b"<Error><Code>SignatureDoesNotMatch</Code></Error>"
        print(self.command, self.path.split("?")[0], status, "signed" if signed else "forged", flush=True)
        self.send_response(status)
        for name, value in found:
            if name.lower() not in ("content-length", "connection", "transfer-encoding", "date", "server"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_any


ask("PUT", "/bucket", b'<CreateBucketConfiguration><LocationConstraint>eu-test-1</LocationConstraint></CreateBucketConfiguration>')
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Door)
print(server.server_port, flush=True)
server.serve_forever()
