"""What really happened at the provider: requests seen, effects committed.

A test asserts on this and not on the tables of the extension alone: the ledger
cannot be persuaded by anything the client believes.
"""

import heapq
import itertools
import json
import random
import re
import secrets
import select
import socket
import threading
import time

READ_METHODS = ("GET", "HEAD", "OPTIONS")
BODY_KEPT = 64 * 1024           # bytes of a request body kept for the ledger


class Gate:
    """A broadcast a thread can wait for together with a socket."""

    def __init__(self):
        self.reader, self.writer = socket.socketpair()
        self.fired = False

    def fire(self):
        self.fired = True
        self.writer.close()

    def wait(self, seconds, sock=None):
        """Wait; return "released", "timeout" or "gone" (peer of sock closed)."""
        poller = select.poll()
        poller.register(self.reader, select.POLLIN)
        if sock is not None:
            try:
                poller.register(sock, select.POLLRDHUP)
            except (OSError, ValueError):
                return "gone"
        timeout = None if seconds is None else max(0, int(seconds * 1000))
        ready = poller.poll(timeout)
        if self.fired:
            return "released"
        return "gone" if ready else "timeout"


class Timers:
    """Runs callables later, on one thread; for effects that commit late."""

    def __init__(self):
        self.heap = []
        self.order = itertools.count()
        self.changed = threading.Condition()
        threading.Thread(target=self._run, daemon=True).start()

    def at(self, when, call):
        with self.changed:
            heapq.heappush(self.heap, (when, next(self.order), call))
            self.changed.notify()

    def _run(self):
        while True:
            with self.changed:
                while not self.heap or self.heap[0][0] > time.time():
                    self.changed.wait(self.heap[0][0] - time.time()
                                      if self.heap else None)
                call = heapq.heappop(self.heap)[2]
            call()


class Request:
    """One request as far as it was read; filled in while it is being read."""

    def __init__(self, connection, kind):
        self.n = None
        self.kind = kind
        self.method = self.path = self.http_version = None
        self.headers = []
        self.body = bytearray()
        self.body_bytes = 0
        self.read_bytes = 0
        self.head_complete = self.complete = False
        self.connection_id = connection.id
        self.port = connection.port
        self.tls, self.alpn = connection.tls, connection.alpn
        self.at = time.time()
        self.read_at = None
        self.effect_id = "ef_" + secrets.token_hex(8)
        self.ref = None
        self.outcome = None

    def header(self, name):
        for key, value in self.headers:
            if key.lower() == name.lower():
                return value
        return None

    def as_json(self):
        return {"n": self.n, "kind": self.kind, "method": self.method,
                "path": self.path, "http_version": self.http_version,
                "headers": self.headers, "ref": self.ref,
                "body": bytes(self.body[:BODY_KEPT]).decode("utf-8", "replace"),
                "body_bytes": self.body_bytes, "read_bytes": self.read_bytes,
                "head_complete": self.head_complete, "complete": self.complete,
                "connection_id": self.connection_id, "port": self.port,
                "tls": self.tls, "alpn": self.alpn, "at": self.at,
                "read_at": self.read_at, "outcome": self.outcome,
                "effect_id": self.effect_id if self.kind == "write" else None}


def _dig(value, path):
    for key in path:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


class Scenario:
    """The behaviour and the ledger of one name; every method is thread-safe."""

    def __init__(self, name, timers):
        self.name = name
        self.timers = timers
        self.changed = threading.Condition()
        self.spec = {}
        self.ports = {}
        self._gate = None
        self._clear()

    def _clear(self):
        self.requests, self.effects = [], []
        self.by_ref = {}
        self.counts = {"requests": 0, "deliveries": 0, "complete_writes": 0,
                       "reads": 0, "effects": 0}
        self.taken = {"write": 0, "read": 0}

    # -- behaviour ---------------------------------------------------------

    def define(self, spec):
        with self.changed:
            self.spec = spec
            self.taken = {"write": 0, "read": 0}
            self.dice = random.Random(spec.get("seed", 0))

    def peek(self, kind):
        """The step the next request of this kind will get, not used up."""
        steps = self.spec.get(kind) or []
        if self.taken[kind] < len(steps):
            return steps[self.taken[kind]]
        return self.spec.get(kind + "_default") or {}

    def take(self, kind):
        with self.changed:
            step = self.peek(kind)
            steps = self.spec.get(kind) or []
            mix = self.spec.get(kind + "_mix")
            if mix and self.taken[kind] >= len(steps):
                step = self.dice.choices([s for _, s in mix],
                                         [w for w, _ in mix])[0]
            self.taken[kind] += 1
            return step

    def take_early(self, wanted):
        """The next write's step, taken now if it is wanted; else None."""
        with self.changed:
            return self.take("write") if wanted(self.peek("write")) else None

    def gate(self):
        with self.changed:
            if self._gate is None:
                self._gate = Gate()
            return self._gate

    def release(self):
        with self.changed:
            gate, self._gate = self._gate, None
        if gate is not None:
            gate.fire()

    def reset(self):
        self.release()
        with self.changed:
            self._clear()
            self.dice = random.Random(self.spec.get("seed", 0))

    # -- ledger ------------------------------------------------------------

    def register(self, request):
        with self.changed:
            self.requests.append(request)
            request.n = len(self.requests)
            self._count("requests")

    def head_read(self, request):
        request.head_complete = True
        if request.kind == "write":
            with self.changed:
                self._count("deliveries")

    def request_read(self, request):
        request.ref = self.reference(request)
        request.read_at = time.time()
        with self.changed:
            request.complete = True
            self._count("complete_writes" if request.kind == "write"
                        else "reads")

    def trim(self, request):
        """Give back the memory of a large body once nothing needs it."""
        del request.body[BODY_KEPT:]

    def _count(self, name):
        self.counts[name] += 1
        self.changed.notify_all()

    def resource(self, path):
        """Split a request path: (resource, natural id or None, query)."""
        path, _, query = (path or "").partition("?")
        parts = [p for p in path.split("/") if p]
        if parts[:1] == ["s"]:
            parts = parts[2:]
        name = "/".join(parts[1:]) or None
        suffix = self.spec.get("ref_suffix")
        if name and suffix and name.endswith(suffix):
            name = name[:-len(suffix)]
        return (parts[0] if parts else ""), unquote(name), query

    def reference(self, request):
        """The client's reference of a write, wherever this scenario keeps it."""
        natural = self.resource(request.path)[1]
        if natural is not None:
            return natural
        if self.spec.get("ref_header"):
            return request.header(self.spec["ref_header"])
        text = bytes(request.body).decode("utf-8", "replace")
        if self.spec.get("ref_regex"):
            found = re.search(self.spec["ref_regex"], text, re.M)
            return found.group(1).strip() if found else None
        try:
            ref = _dig(json.loads(text),
                       self.spec.get("ref_key", "ref").split("."))
        except ValueError:
            return None
        return ref if ref is None or isinstance(ref, str) else json.dumps(ref)

    def commit(self, request, lag=None):
        """Execute a write: from here on it is an effect, once per call."""
        now = time.time()
        text = bytes(request.body).decode("utf-8", "replace")
        try:
            body = json.loads(text)
        except ValueError:
            body = text
        if request.body_bytes > BODY_KEPT:
            body = text[:BODY_KEPT]
        if lag is None:
            lag = self.spec.get("visibility_lag_s", 0)
        effect = {"id": request.effect_id, "ref": request.ref, "body": body,
                  "method": request.method, "request": request.n,
                  "resource": self.resource(request.path)[0],
                  "natural": self.resource(request.path)[1] is not None,
                  "content_type": request.header("content-type"),
                  "received_at": request.read_at or request.at,
                  "committed_at": now, "visible_at": now + lag}
        with self.changed:
            self.effects.append(effect)
            self.by_ref.setdefault(request.ref, []).append(effect)
            self._count("effects")

    def commit_at(self, when, request, lag=None):
        effects = self.effects

        def run():
            # A reset in between threw that ledger away: nothing to record.
            if self.effects is effects:
                self.commit(request, lag)
        self.timers.at(when, run)

    def visible(self, resource, ref=None):
        """Effects a reader sees now; DELETE of a natural id hides the ones before."""
        now = time.time()
        with self.changed:
            pool = list(self.effects if ref is None
                        else self.by_ref.get(ref, []))
        seen = []
        for effect in pool:
            if effect["visible_at"] > now or effect["resource"] != resource:
                continue
            if effect["method"] == "DELETE" and effect["natural"]:
                seen = [e for e in seen if e["ref"] != effect["ref"]]
            else:
                seen.append(effect)
        return seen

    def by_id(self, resource, ident):
        return [e for e in self.visible(resource) if e["id"] == ident]

    # -- what the control port shows ---------------------------------------

    def summary(self):
        with self.changed:
            repeated = {str(ref): len(found)
                        for ref, found in self.by_ref.items() if len(found) > 1}
            return dict(self.counts, name=self.name, duplicates=repeated,
                        refs=len(self.by_ref), ports=self.ports,
                        connections=len({r.connection_id
                                         for r in self.requests}))

    def as_json(self):
        with self.changed:
            requests, effects = list(self.requests), list(self.effects)
        counts = self.summary()
        counts["effect_count"] = counts.pop("effects")
        counts["request_count"] = counts.pop("requests")
        return dict(counts, requests=[r.as_json() for r in requests],
                    effects=effects)

    def wait(self, wanted, seconds):
        """Until every wanted count is reached; True if it was."""
        deadline = time.monotonic() + seconds
        with self.changed:
            while True:
                if all(self.counts[k] >= n for k, n in wanted.items()):
                    return True
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                self.changed.wait(left)


def unquote(text):
    if not text or "%" not in text:
        return text
    return re.sub(rb"%([0-9A-Fa-f]{2})", lambda m: bytes([int(m.group(1), 16)]),
                  text.encode("utf-8", "surrogateescape")).decode("utf-8", "replace")


class Registry:
    """All scenarios by name; an unknown name is an honest provider."""

    def __init__(self):
        self.timers = Timers()
        self.lock = threading.Lock()
        self.scenarios = {}

    def get(self, name):
        with self.lock:
            if name not in self.scenarios:
                scenario = Scenario(name, self.timers)
                scenario.define({})
                self.scenarios[name] = scenario
            return self.scenarios[name]

    def all(self):
        with self.lock:
            return list(self.scenarios.values())
