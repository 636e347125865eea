"""Carrying out a step: what one request, or one connection, is made to suffer."""

import base64
import functools
import gzip
import json

from ledger import Request
from replies import Reply, phrase
from wire import read_body, read_head, read_some

UNTIL_RELEASE = -1
SNIFFED = 8                     # enough to tell GET from POST


def seconds(value):
    return None if value == UNTIL_RELEASE else value


class Session:
    """Serves one connection until it ends."""

    def __init__(self, provider, conn, bound=None, forced=None):
        self.provider, self.conn = provider, conn
        self.bound = bound          # the scenario owning the port, if any
        self.forced = forced        # a step every request of this port gets
        self.pending = None         # a step taken before its request was read

    # -- before anything is read -------------------------------------------

    def at_accept(self):
        """Before TLS; False if the connection is over already."""
        if self.bound is None:
            return True
        step = self.bound.take_early(lambda s: "accept_then" in s)
        if step is None:
            return True
        how = step["accept_then"]
        request = Request(self.conn, "write")
        request.outcome = "accept_then " + how
        self.bound.register(request)
        if how == "reset":
            self.conn.reset()
        else:
            self.conn.close()
        return False

    def serve(self):
        """After TLS: answer_before_read, then request by request."""
        try:
            if self.bound is not None:
                self.pending = self.bound.take_early(self.is_blind)
                if self.pending and self.pending.get("answer_before_read"):
                    self.conn.send(self.render(
                        self.bound, self.pending, None,
                        self.compose(self.bound, self.pending, None)))
            while not self.conn.closed and self.one_request():
                pass
        finally:
            self.conn.close()

    def is_blind(self, step):
        """Must this step be chosen before the method can be known?"""
        if step.get("answer_before_read"):
            return True
        # Plain bytes can be looked at without reading them; TLS records cannot.
        limit = step.get("read_before")
        return bool(self.conn.tls) and isinstance(limit, int) and limit < SNIFFED

    # -- reading -----------------------------------------------------------

    def one_request(self):
        """Read and serve the next request; False when the connection is over."""
        if self.bound is not None:
            scenario, request, step = self.bound, *self.begin_bound()
            if request is None:
                return False
            scenario.register(request)
            rule = step.get("read_before")
            if isinstance(rule, int):
                return self.read_partly(scenario, request, step, rule)
            if not self.finish_head(scenario, request):
                return False
        else:
            request = Request(self.conn, "write")
            found = read_head(self.conn, request)
            if request.read_bytes == 0:
                return False
            scenario = self.provider.registry.get(scenario_name(request.path))
            if scenario.api.is_read(request.method, request.path):
                request.kind = "read"
            scenario.register(request)
            if not found:
                request.outcome = "head cut short"
                return False
            scenario.head_read(request)
            step = self.forced or scenario.take(request.kind)
        return self.read_rest(scenario, request, step)

    def begin_bound(self):
        """Choose the step of a port's own scenario before reading the request."""
        step, self.pending = self.pending, None
        if step is not None:
            return Request(self.conn, "write"), step
        start = self.conn.sniff(SNIFFED)
        if not start:
            return None, None
        next_write = self.bound.peek("write").get("read_before")
        if start.startswith(b"POST ") and not isinstance(next_write, int):
            # A search is a read, and only the path can tell.
            start = self.conn.sniff_line()
        method, path = (start.decode("latin-1").split(" ") + [""])[:2]
        kind = "read" if self.bound.api.is_read(method, path) else "write"
        return (Request(self.conn, kind),
                self.forced or self.bound.take(kind))

    def finish_head(self, scenario, request):
        if not read_head(self.conn, request):
            request.outcome = "head cut short"
            return False
        if scenario.api.is_read(request.method, request.path):
            request.kind = "read"
        scenario.head_read(request)
        return True

    def read_partly(self, scenario, request, step, limit):
        """Read only so many bytes; go on reading later if the step says so."""
        if limit:
            read_some(self.conn, request, limit)
            if b"\r\n\r\n" in self.conn.buf:
                total = request.read_bytes
                self.finish_head(scenario, request)
                request.body += self.conn.buf
                request.read_bytes = total
        if "read_after_s" not in step:
            return self.misbehave(scenario, request, step)
        scenario.gate().wait(seconds(step["read_after_s"]))
        if request.head_complete:
            request.read_bytes -= len(self.conn.buf)
            request.body.clear()
        elif not self.finish_head(scenario, request):
            return False
        return self.read_rest(scenario, request, dict(step, read_before=None))

    def read_rest(self, scenario, request, step):
        """Read the body unless the step forbids it, then do what it says."""
        needed = step.get("only_if_header")
        if needed and request.header(needed) is None:
            step = {}
        if step.get("read_before") != "head":
            expect = (request.header("expect") or "").lower()
            if expect == "100-continue" and not self.conn.buf:
                self.conn.send(b"HTTP/1.1 100 Continue\r\n\r\n")
            if not read_body(self.conn, request):
                request.outcome = "body cut short"
                request.ref = scenario.reference(request)
                return False
            scenario.request_read(request)
        else:
            request.ref = scenario.reference(request)
        self.provider.log("request", scenario=scenario.name, n=request.n,
                          method=request.method, path=request.path,
                          connection=self.conn.id)
        if request.kind == "read" and request.complete:
            step = scenario.page_fault(request) or step
        try:
            return self.misbehave(scenario, request, step)
        finally:
            scenario.trim(request)

    # -- the step ----------------------------------------------------------

    def misbehave(self, scenario, request, step):
        """Commit, hold and answer in the step's order; True to keep serving."""
        commit = commit_rule(step, request)
        if request.kind == "write" and request.complete:
            request.reply = scenario.admit(request)
            if request.reply is not None:
                commit = "never"
        lag = step.get("visibility_lag_s")
        delay = step.get("commit_delay_s")
        later = delay is not None and commit != "never"
        if later:
            scenario.commit_at((request.read_at or request.at) + delay,
                               request, lag)
            commit = "never"
        if commit == "before":
            scenario.execute(request, lag)
        if step.get("close_listener"):
            self.provider.listeners.close_bound(scenario)
        if "barrier" in step:
            scenario.wait({"complete_writes": step["barrier"]}, 10)
        if "hold_s" in step:
            scenario.gate().wait(seconds(step["hold_s"]))
        if commit == "after_hold":
            scenario.execute(request, lag)
        answer = self.compose(scenario, step, request)
        scenario.answered(request, answer, commit == "after", later)
        keep = self.act(scenario, request, step, answer)
        if commit == "after":
            scenario.execute(request, lag)
        return keep

    def act(self, scenario, request, step, answer):
        then = step.get("then", "raw" if "raw" in step else "answer")
        request.outcome = then
        if then in ("close", "reset", "hang"):
            return self.finish(scenario, step, then)
        if then == "raw":
            self.send_parts(scenario, request, step["raw"])
            return self.finish(scenario, step, step.get("finally", "close"))
        keep = step.get("keep_alive")
        if keep is None:
            keep = "close" not in (request.header("connection") or "").lower()
        if not step.get("answer_before_read"):
            request.answer_status = answer.status
            self.conn.send(self.render(scenario, step, request, answer, keep))
        if "stray_response_after_ms" in step:
            scenario.gate().wait(step["stray_response_after_ms"] / 1000)
            self.conn.send(stray())
        idle = step.get("close_idle_after_answer")
        if idle is not None and idle is not False:
            if idle is not True:
                scenario.gate().wait(idle / 1000, self.conn.sock)
            return self.finish(scenario, step, "close")
        default = "keep" if keep else "close"
        if not request.complete:
            default = "drain"
        return self.finish(scenario, step, step.get("finally", default))

    def finish(self, scenario, step, how):
        """End the connection the given way; True only for "keep"."""
        if how == "keep":
            return True
        if how == "hang":
            scenario.gate().wait(None, self.conn.sock)
        if how == "reset":
            self.conn.reset()
        elif how == "drain":
            self.conn.drain(step.get("drain_s", 5))
        else:
            self.conn.close(step.get("close_notify", True))
        return False

    def compose(self, scenario, step, request):
        """The answer: the API's own, as far as the step leaves it so."""
        status = step.get("status")
        scripted = "body" in step or "body_b64" in step or "body_bytes" in step
        own = None
        if request is not None and not scripted and (status or 0) < 300:
            own = scenario.api.read(request, step) if request.kind == "read" \
                else scenario.reply_of(request)
        if own is None:
            reads = request is not None and request.kind == "read"
            status = status or (200 if reads else 201)
            own = Reply(status, *self.step_body(scenario, step, request, status))
        elif status == 204:
            own = Reply(status, b"", own.headers, None)
        else:
            own = Reply(status or own.status, own.body, own.headers, own.kind)
        headers = step.get("headers") or []
        headers = [(name, self.fill_in(scenario, request, str(value))) for name, value
                   in (headers.items() if isinstance(headers, dict) else headers)]
        given = {name.lower() for name, _ in headers}
        own.headers = headers + [h for h in own.headers if h[0].lower() not in given]
        return own

    def render(self, scenario, step, request, answer, keep=True):
        """The bytes of a well-formed response."""
        given = {name.lower() for name, _ in answer.headers}
        lines = ["HTTP/1.1 %d %s" % (answer.status,
                                     step.get("reason", phrase(answer.status)))]
        lines += ["%s: %s" % header for header in answer.headers]
        if "content-type" not in given and answer.kind:
            lines.append("Content-Type: " + answer.kind)
        if "content-length" not in given and answer.status not in (204, 304):
            lines.append("Content-Length: %d" % len(answer.body))
        if "connection" not in given:
            lines.append("Connection: " + ("keep-alive" if keep else "close"))
        head = "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"
        if request is not None and request.method == "HEAD":
            return head
        return head + answer.body

    def step_body(self, scenario, step, request, status):
        """(bytes, headers, content type) of what the step scripts."""
        body = step.get("body")
        if "body_b64" in step:
            return base64.b64decode(step["body_b64"]), [], None
        if "body_bytes" in step:
            return b"x" * step["body_bytes"], [], "application/octet-stream"
        if isinstance(body, str):
            return (self.fill_in(scenario, request, body).encode(), [],
                    "text/html" if body.startswith("<") else "text/plain")
        if body is None and status == 204:
            return b"", [], None
        if body is None and status < 300:
            body = {"id": "{{id}}", "ref": request.ref if request else None}
        elif body is None:
            body = scenario.api.error_body(status)
        return (self.fill_in(scenario, request, json.dumps(body)).encode(), [],
                "application/json")

    def fill_in(self, scenario, request, text):
        """Replace the placeholders of a scripted text."""
        if "{{" not in text:
            return text
        base = "http://127.0.0.1:%d/s/%s" % (self.provider.http, scenario.name)
        known = {"id": request.effect_id if request else "ef_unsolicited",
                 "ref": (request.ref if request else None) or "",
                 "scenario": scenario.name, "self": base + "/effects",
                 "other": "http://localhost:%d/s/%s-target/effects"
                          % (self.provider.http, scenario.name)}
        for name, value in known.items():
            text = text.replace("{{%s}}" % name, value)
        return text

    # -- raw bytes ---------------------------------------------------------

    def send_parts(self, scenario, request, parts):
        """Send raw parts until the end, the peer's end, or a release."""
        gate = scenario.gate()
        for part in [parts] if isinstance(parts, str) else parts:
            if isinstance(part, str):
                part = {"send": part}
            if "pause_s" in part:
                gate.wait(seconds(part["pause_s"]), self.conn.sock)
                continue
            if "b64" in part:
                data = base64.b64decode(part["b64"])
            elif "gzip_zeros" in part:
                data = gzipped_zeros(part["gzip_zeros"])
            else:
                data = self.fill_in(scenario, request,
                                    part["send"]).encode("latin-1")
            rate = part.get("bytes_per_s")
            if not (self.drip(gate, data, rate) if rate
                    else self.pour(gate, data, part.get("times", 1))):
                return

    def pour(self, gate, data, times):
        """Send data so often, or endlessly if times is null."""
        if times is not None and len(data) * times <= 1 << 20:
            return self.conn.send(data * times)
        batch = max(1, 65536 // max(1, len(data)))
        while (times is None or times > 0) and not gate.fired:
            count = batch if times is None else min(batch, times)
            if not self.conn.send(data * count):
                return False
            if times is not None:
                times -= count
        return not gate.fired

    def drip(self, gate, data, rate):
        for at in range(len(data)):
            if not self.conn.send(data[at:at + 1]):
                return False
            if gate.wait(1 / rate, self.conn.sock) != "timeout":
                return False
        return True


def commit_rule(step, request):
    """When the write is executed: the step's word, or what its answer implies."""
    if request.kind == "read":
        return "never"
    if "commit" in step:
        return step["commit"]
    if not request.complete:
        return "never"
    if "commit_delay_s" in step:
        return "before"
    return "never" if step.get("status", 201) >= 300 else "before"


def scenario_name(path):
    parts = (path or "").split("?")[0].split("/")
    return parts[2] if len(parts) > 2 and parts[1] == "s" else "default"


@functools.lru_cache
def gzipped_zeros(count):
    return gzip.compress(bytes(count), 9)


def stray():
    body = b'{"id":"ef_stray","ref":"stray"}'
    return (b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
