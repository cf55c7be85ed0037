"""One order as one tree: a collector and a webhook's receiver, which read what a worker sends with PyPI's opentelemetry-proto."""

import http.server
import pathlib
import sys
import tempfile
import threading

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "examples"))
from rig import Rig, expect, free_port, say, until, wrong  # noqa: E402

TRACE = "0af7651916cd43dd8448eb211c80319c"
CALLER = "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{CALLER}-01"


class Heard(http.server.BaseHTTPRequestHandler):
    """Takes spans at /v1/traces, and what a webhook is told at /hook."""

    spans, resources, headers_of_spans, hooks, lock = [], [], [], [], threading.Lock()
    protocol_version = "HTTP/1.1"
    is_away = False

    def do_POST(self):
        if Heard.is_away:                                 # a kept connection outlives the server that took it
            self.close_connection = True
            return
        body = self.rfile.read(int(self.headers["Content-Length"]))
        answer = b""
        with self.lock:
            if self.path == "/v1/traces":
                request = ExportTraceServiceRequest.FromString(body)
                for part in request.resource_spans:
                    self.resources.append(attributes(part.resource))
                    for scope in part.scope_spans:
                        self.spans.extend(scope.spans)
                self.headers_of_spans.append(dict(self.headers.items()))
                answer = ExportTraceServiceResponse().SerializeToString()
            else:
                self.hooks.append({name.lower(): value for name, value in self.headers.items()})
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass


def attributes(thing):
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in thing.attributes}


def tree(spans, parent, depth=0):
    """The spans beneath one, in the order of their beginnings, each with its depth."""
    for span in sorted((one for one in spans if one.parent_span_id.hex() == parent), key=lambda one: one.start_time_unix_nano):
        yield depth, span
        yield from tree(spans, span.span_id.hex(), depth + 1)


def shape(spans):
    return [("  " * depth) + span.name for depth, span in tree(spans, CALLER)]


def show(spans):
    say(f"the caller's span {CALLER} of trace {TRACE}")
    for depth, span in tree(spans, CALLER):
        found = attributes(span)
        more = [str(found[name]) for name in ("millrace.job.kind", "millrace.job.outcome") if name in found]
        took = (span.end_time_unix_nano - span.start_time_unix_nano) / 1e6
        say(f"  {'   ' * depth}└─ {span.name}  {Span.SpanKind.Name(span.kind)[10:].lower()}  {took:.1f} ms  {' '.join(more)}")


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Heard)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    metrics = f"127.0.0.1:{free_port()}"
    with tempfile.TemporaryDirectory(prefix="millrace-outbox-") as outbox, Rig(
            MILLRACE_MAIL_OUTBOX=outbox, MILLRACE_WEBHOOK_ALLOW=address, OTEL_EXPORTER_OTLP_ENDPOINT=address,
            OTEL_EXPORTER_OTLP_HEADERS="x-team=orders,authorization=Bearer%20not-for-logs", OTEL_SERVICE_NAME="shop",
            OTEL_RESOURCE_ATTRIBUTES="deployment.environment=check", MILLRACE_LISTEN=metrics) as rig:
        rig.sql("select millrace.mail_events_set(true)")
        rig.sql(f"select millrace.webhook_add('{address}/hook', '{{millrace.mail.accepted}}', 'binary', null, false)")
        rig.start_worker("worker", "--practice")
        order = rig.sql(f"""
            begin;
            set local millrace.traceparent = '{TRACEPARENT}';
            select millrace.enqueue('practice.mailed_order', '{{"order": 7, "recipient": "ada@example.org"}}', queue => 'orders');
            commit;""")[0]
        wanted = 6

        def ours():
            with Heard.lock:
                return [span for span in Heard.spans if span.trace_id.hex() == TRACE]

        until("the order's spans", lambda: len(ours()) >= wanted and Heard.hooks, 90)
        spans = ours()
        show(spans)
        expect("the order is one tree", shape(spans), [
            "process orders", "  step reserve", "  step charge", "  process mail", "    call outbox", "    call webhook"])
        by_name = {span.name: span for span in spans}
        run = by_name["process orders"]
        found = attributes(run)
        expect("the run says what it was", {name: found.get(name) for name in (
            "messaging.system", "messaging.destination.name", "messaging.message.id", "millrace.job.kind", "millrace.job.attempt",
            "millrace.job.outcome")}, {
                "messaging.system": "millrace", "messaging.destination.name": "orders", "messaging.message.id": order,
                "millrace.job.kind": "practice.mailed_order", "millrace.job.attempt": 1, "millrace.job.outcome": "succeeded"})
        expect("it is a consumer, and links to what enqueued it",
               (Span.SpanKind.Name(run.kind), [link.span_id.hex() for link in run.links]), ("SPAN_KIND_CONSUMER", [CALLER]))
        expect("nothing has failed", [span.name for span in spans if span.status.code == Status.STATUS_CODE_ERROR], [])
        expect("every span ends after it begins", all(s.end_time_unix_nano >= s.start_time_unix_nano > 0 for s in spans), True)
        expect("the process says who it is", {name: Heard.resources[0].get(name) for name in (
            "service.name", "deployment.environment", "service.instance.id")}, {
                "service.name": "shop", "deployment.environment": "check", "service.instance.id": "worker"})
        sent = {name.lower(): value for name, value in Heard.headers_of_spans[0].items()}
        expect("the collector gets its headers", (sent["x-team"], sent["authorization"]), ("orders", "Bearer not-for-logs"))
        expect("the webhook's request names its call",
               Heard.hooks[0].get("traceparent"), f"00-{TRACE}-{by_name['call webhook'].span_id.hex()}-01")
        expect("and its event names the mail's run",
               Heard.hooks[0].get("ce-traceparent"), f"00-{TRACE}-{by_name['process mail'].span_id.hex()}-01")

        Heard.is_away = True
        server.shutdown()
        server.server_close()
        jobs = rig.sql("select count(millrace.enqueue('practice.nothing')) from generate_series(1, 200)")[0]
        until("the jobs of a worker without a collector", lambda: rig.sql(
            "select count(*) from millrace.history h join millrace.kind k on k.id = h.kind where k.name = 'practice.nothing' and h.outcome = 1"
        ) == [jobs], 60)
        said = pathlib.Path(rig.place / "worker.log")
        until("a word about the collector", lambda: "spans could not be sent to the collector" in said.read_text(), 60)
        expect("the log names no secret of the collector's", "not-for-logs" in said.read_text(), False)
        status, page = rig.http("GET", f"http://{metrics}/metrics")
        expect("the metrics count spans", (status, 'millrace_trace_spans_total{outcome="sent"}' in page), (200, True))
    say("all is well" if not wrong else f"WRONG: {', '.join(wrong)}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
