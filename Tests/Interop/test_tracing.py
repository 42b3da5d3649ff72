"""The context of a distributed trace passes or restarts by the rule, log lines and refusals name the trace, and sampled
requests are reported to a collector as spans that belong together: read here by OpenTelemetry's own definitions. A
collector that is away, slow or refuses delays no request, and what is lost is counted."""

import gzip
import http.server
import json
import pathlib
import threading
import time

import pytest
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from backend import Backend
from gateway import run
from serving_paths import PATHS, options_of
from test_metrics import Administered
from test_reload import Site
from waiting import until

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
CONTEXT = f"00-{TRACE}-{PARENT}-01"
FIELDS = {"traceparent": CONTEXT, "tracestate": "vendor=1", "baggage": "tenant=7", "x-request-id": "call-1"}


class Collector:
    """Takes spans. `answers` has the status, fields and body of each next response; the last one is repeated."""

    def __init__(self):
        self.answers: list[tuple[int, dict[str, str], bytes]] = [(200, {}, b"{}")]
        self.spans: list[dict] = []
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.hold = threading.Event()
        self.hold.set()
        collector = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.hold.wait(60)
                collector.take(self, body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def take(self, handler: http.server.BaseHTTPRequestHandler, body: bytes) -> None:
        assert handler.headers.get("Content-Encoding") is None or gzip.decompress(body)
        status, fields, text = self.answers[0] if len(self.answers) == 1 else self.answers.pop(0)
        self.requests.append((handler.path, dict(handler.headers)))
        document = json.loads(body)
        # Refuses a member that the definition does not have, and a value of another type.
        json_format.ParseDict(document, ExportTraceServiceRequest())
        if status == 200:
            self.spans += [span for resource in document["resourceSpans"] for scope in resource["scopeSpans"]
                           for span in scope["spans"]]
        handler.send_response(status)
        for name, value in fields.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(text)))
        handler.end_headers()
        handler.wfile.write(text)

    def of_event(self, event: str) -> list[dict]:
        return [span for span in self.spans if attributes(span).get("countersign.event") == event]

    def close(self) -> None:
        self.hold.set()
        self.server.shutdown()
        self.server.server_close()


def attributes(span: dict) -> dict[str, str]:
    return {entry["key"]: next(iter(entry["value"].values())) for entry in span["attributes"]}


@pytest.fixture
def collector():
    collector = Collector()
    yield collector
    collector.close()


class Traced(Administered):
    def __init__(self, folder: pathlib.Path, backend: Backend, *options: object):
        super().__init__(folder, "--workers", 1, "--upstream", backend.url, *options)

    def __enter__(self) -> "Traced":
        super().__enter__()
        self.add_app("demo", legacy_host="127.0.0.1")
        self.admin("route", "set", "demo", "/open", "--require", "open")
        self.key = self.add_release()
        return self

    def spans(self) -> dict[str, float]:
        return {dict(labels)["outcome"]: count for (name, labels), count in self.metrics().items()
                if name == "countersign_trace_spans_total"}


def unsigned_fields(request: bytes, **fields: str) -> bytes:
    """The request with fields that its signature does not cover."""
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items())
    return request.replace(b"\r\nHost:", b"\r\n" + lines.encode() + b"Host:", 1)


def passed(backend: Backend) -> dict[str, str | None]:
    """What of the context reached the backend with the last request."""
    return {name: backend.seen[-1].get(name) for name in FIELDS}


@pytest.mark.parametrize("path", PATHS)
def test_the_context_goes_on_unless_the_rule_restarts_it(tmp_path, backend, path):
    with Traced(tmp_path, backend, *options_of(path)) as gateway:
        loose = {name.replace("-", "_"): value for name, value in FIELDS.items()}
        assert gateway.send(unsigned_fields(gateway.key.request(), **loose)).status == 200
        # A backend may act on what baggage says.
        assert passed(backend) == FIELDS | {"baggage": None}
        assert gateway.send(gateway.key.request(fields=list(FIELDS.items()))).status == 200
        assert passed(backend) == FIELDS
        event = gateway.event(backend.seen[-1].get("countersign-event"))
        assert (event["trace"], event["request_id"]) == (TRACE, "call-1")
        # Without a context nothing is added.
        assert gateway.send(gateway.key.request()).status == 200
        assert passed(backend) == dict.fromkeys(FIELDS)
        event = gateway.event(backend.seen[-1].get("countersign-event"))
        assert "trace" not in event and "request_id" not in event
        # A context that is not valid is no context.
        assert gateway.send(gateway.key.request(fields=[("traceparent", CONTEXT.upper())])).status == 200
        assert "trace" not in gateway.event(backend.seen[-1].get("countersign-event"))


@pytest.mark.parametrize("path", PATHS)
def test_restart(tmp_path, backend, path):
    with Traced(tmp_path, backend, *options_of(path), "--trace-context", "restart") as gateway:
        found = []
        for target, request in [("/", gateway.key.request(fields=list(FIELDS.items()))),
                                ("/open", unsigned_fields(
                                    b"GET /open HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % gateway.port, **FIELDS))]:
            assert gateway.send(request).status == 200
            assert backend.seen[-1].target == target
            got = passed(backend)
            assert [got[name] for name in ("tracestate", "baggage", "x-request-id")] == [None] * 3
            version, trace, _, flags = got["traceparent"].split("-")
            assert (version, flags) == ("00", "01") and trace != TRACE
            event = gateway.event(backend.seen[-1].get("countersign-event"))
            assert event["trace"] == trace and "request_id" not in event
            found.append(trace)
        assert len(set(found)) == 2


def test_a_refusal_names_the_trace(tmp_path, backend):
    with Traced(tmp_path, backend) as gateway:
        head = b"GET /%s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n" % (b"x", gateway.port)
        answer = gateway.send(head + f"traceparent: {CONTEXT}\r\n\r\n".encode())
        problem = json.loads(answer.body)
        assert (answer.status, problem["code"], problem["trace"]) == (401, "unsigned", TRACE)
        assert gateway.event(problem["instance"])["trace"] == TRACE
        assert "trace" not in json.loads(gateway.send(head + b"\r\n").body)


@pytest.mark.parametrize("path", PATHS)
def test_spans_of_a_request_belong_together(tmp_path, backend, collector, path):
    fields = tmp_path / "fields"
    fields.write_text("# of the collector\n\nAuthorization: Bearer collector-key\n")
    fields.chmod(0o600)
    with Traced(tmp_path / "site", backend, *options_of(path), "--trace-export", collector.url,
                "--trace-export-fields", fields) as gateway:
        before = time.time_ns()
        answer = gateway.send(gateway.key.request("POST", "/pay?card=4111", b"{}", fields=list(FIELDS.items()) + [
            ("content-type", "application/json"), ("idempotency-key", "spans-1")]))
        assert answer.status == 200
        event = backend.seen[-1].get("countersign-event")
        until(lambda: collector.of_event(event))
        server, client = collector.of_event(event)[0], collector.spans[1]
        version, trace, parent, flags = backend.seen[-1].get("traceparent").split("-")
        assert (version, trace, flags) == ("00", TRACE, "01")
        assert (server["traceId"], server["parentSpanId"], server["kind"]) == (TRACE, PARENT, Span.SPAN_KIND_SERVER)
        assert (client["traceId"], client["parentSpanId"], client["kind"]) == \
            (TRACE, server["spanId"], Span.SPAN_KIND_CLIENT)
        assert client["spanId"] == parent != PARENT
        start, end = int(server["startTimeUnixNano"]), int(server["endTimeUnixNano"])
        assert before - 1e9 < start <= int(client["startTimeUnixNano"]) <= int(client["endTimeUnixNano"]) \
            <= end + 1e6 < time.time_ns() + 1e9
        wanted = {"http.request.method": "POST", "url.path": "/pay", "url.scheme": "https",
                  "http.response.status_code": "200", "client.address": "127.0.0.1", "countersign.app": "demo",
                  "countersign.release": gateway.key.key_id, "countersign.scheme": "message-signatures",
                  "countersign.code": "ok", "countersign.event": event}
        assert attributes(server) == wanted and "status" not in server
        assert attributes(client) == {"http.request.method": "POST", "server.address": "127.0.0.1",
                                      "http.response.status_code": "200"}
        path_called, sent = collector.requests[0]
        assert path_called == "/v1/traces" and sent["Authorization"] == "Bearer collector-key"
        assert sent["Content-Type"] == "application/json"
        # A query may have anything in it, and is in no span.
        assert "4111" not in json.dumps(collector.spans)
        # A refusal of a request that proves nothing.
        refused = gateway.send(b"GET /unsigned HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % gateway.port)
        problem = json.loads(refused.body)
        until(lambda: collector.of_event(problem["instance"]))
        span = collector.of_event(problem["instance"])[0]
        assert span["traceId"] == problem["trace"] and "parentSpanId" not in span
        assert attributes(span)["error.type"] == "unsigned" and "countersign.release" not in attributes(span)
        # One that is refused after its proof has the release that it has proved.
        once = gateway.key.request(target="/once")
        assert gateway.send(once).status == 200
        event = json.loads(gateway.send(once).body)["instance"]
        until(lambda: collector.of_event(event))
        replayed = attributes(collector.of_event(event)[0])
        assert (replayed["error.type"], replayed["countersign.release"]) == ("replayed", gateway.key.key_id)
        assert gateway.spans()["exported"] >= 3
        assert "collector-key" not in gateway.log_path.read_text()


def test_what_waits_is_sent_at_the_end(tmp_path, backend, collector):
    with Traced(tmp_path, backend, "--trace-export", collector.url) as gateway:
        assert gateway.send(gateway.key.request()).status == 200
        assert gateway.stop() == 0
    assert len(collector.spans) == 2


def test_a_failed_upstream_is_an_error(tmp_path, backend, collector):
    with Traced(tmp_path, backend, "--trace-export", collector.url) as gateway:
        backend.close()
        assert gateway.send(gateway.key.request()).status == 502
        until(lambda: len(collector.spans) == 2)
        server, client = collector.spans
        assert server["status"] == client["status"] == {"code": 2}
        assert attributes(server)["error.type"] == attributes(client)["error.type"] == "upstream-unreachable"


def test_strangers_do_not_decide_what_is_sampled(tmp_path, backend, collector):
    """One in a billion traces is sampled; a context says that its trace is. That of a caller without proof counts for
    nothing."""
    with Traced(tmp_path, backend, "--trace-export", collector.url, "--trace-sample", 1_000_000_000) as gateway:
        head = b"GET /open HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n" % gateway.port
        assert gateway.send(head + f"traceparent: {CONTEXT}\r\n\r\n".encode()).status == 200
        assert backend.seen[-1].get("traceparent").endswith("-00")
        assert gateway.send(gateway.key.request(fields=[("traceparent", CONTEXT[:-1] + "0")])).status == 200
        assert backend.seen[-1].get("traceparent").endswith("-00")
        assert gateway.send(gateway.key.request(fields=[("traceparent", CONTEXT)])).status == 200
        assert backend.seen[-1].get("traceparent").endswith("-01")
        assert gateway.stop() == 0
    assert len(collector.spans) == 2


def test_callers_decide_what_is_sampled_within_a_budget(tmp_path, backend, collector):
    """The release key is in every copy of the app: whoever has it must not fill the queue of spans."""
    with Traced(tmp_path, backend, "--trace-export", collector.url, "--trace-sample", 1_000_000_000, "--trace-callers", 0) as gateway:
        assert gateway.send(gateway.key.request(fields=[("traceparent", CONTEXT)])).status == 200
        assert backend.seen[-1].get("traceparent").endswith("-00")
        assert gateway.stop() == 0
    assert collector.spans == []


def test_a_collector_that_is_busy_gets_the_spans_again(tmp_path, backend, collector):
    collector.answers = [(503, {}, b""), (429, {"Retry-After": "1"}, b""),
                         (200, {}, json.dumps({"partialSuccess": {"rejectedSpans": "1"}}).encode()), (400, {}, b"no")]
    with Traced(tmp_path, backend, "--trace-export", f"{collector.url}/custom/path") as gateway:
        assert gateway.send(gateway.key.request()).status == 200
        until(lambda: gateway.spans()["exported"] == 1)
        assert gateway.spans() == {"exported": 1, "rejected": 1, "undelivered": 0, "queue-full": 0}
        assert [path for path, _ in collector.requests] == ["/custom/path"] * 3
        # A collector that refuses for good is not asked again.
        assert gateway.send(gateway.key.request()).status == 200
        until(lambda: gateway.spans()["rejected"] == 3)
        notes = [event["message"] for event in gateway.events() if event.get("log") == "traces"]
        assert [note.rsplit(": ", 1)[1] for note in notes[::2]] == ["it answers 503", "it answers 400"]
        assert "are delivered again" in notes[1] and len(notes) == 3


def test_a_collector_that_hangs_delays_no_request(tmp_path, backend, collector):
    collector.hold.clear()
    with Traced(tmp_path, backend, "--trace-export", collector.url) as gateway:
        with gateway.connect() as connection:
            for _ in range(1_400):
                connection.send(gateway.key.request())
                assert connection.answer().status == 200
        spans = gateway.spans()
        # Two spans a request; 2,048 wait, and up to 512 are on the way.
        assert spans["queue-full"] >= 2_800 - 2_048 - 512 and spans["exported"] == 0
        assert gateway.stop() == 0


def test_a_reload_changes_the_rule_and_the_part(tmp_path):
    with Site(tmp_path) as site:
        request = site.gateway.key.request

        def traceparent() -> str | None:
            assert site.gateway.send(request(fields=[("traceparent", CONTEXT)])).status == 200
            return (site.one.seen or site.two.seen)[-1].get("traceparent")

        assert traceparent() == CONTEXT
        site.write(trace_context="restart", trace_sample=1_000_000_000)
        code, report = site.reload()
        assert code == 0, report
        changed = traceparent()
        assert changed.split("-")[1] != TRACE and changed.endswith("-00")


@pytest.mark.parametrize(("text", "mode", "says"), [
    ("Authorization Bearer x\n", 0o600, "line 1: expected NAME: VALUE"),
    ("A: b\nHost: c\n", 0o600, "line 2: expected NAME: VALUE"),
    ("A: b\n", 0o644, "lets others read this secret"),
    (None, 0o600, "no such file"),
])
def test_the_file_of_fields_is_checked(tmp_path, text, mode, says):
    path = tmp_path / "fields"
    if text is not None:
        path.write_text(text)
        path.chmod(mode)
    options = ["--data", tmp_path / "data", "--trace-export", "http://127.0.0.1:1", "--trace-export-fields", path]
    checked = run("serve", "--check-config", *options)
    started = run("serve", "--listen", "127.0.0.1:0", *options)
    for done in (checked, started):
        assert done.returncode != 0 and says in done.out + done.err, done.out + done.err
