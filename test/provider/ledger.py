"""What really happened at the provider: requests seen, effects committed.

A test asserts on this and not on the tables of the extension alone: the ledger
cannot be persuaded by anything the client believes.
"""

import itertools
import json
import random
import re
import secrets
import threading
import time
from urllib.parse import unquote_to_bytes

import imitations
from jobs import Jobs
from keys import Keys, sha256
from waiting import Gate, Timers

BODY_KEPT = 64 * 1024           # bytes of a request body kept for the ledger


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
        self.key = self.key_outcome = self.body_sha256 = None
        self.answer_status = None
        self.reply = None           # what the API answers, once that is known
        self.entry = None           # of the key this request was the first with
        self.job_id = self.page_number = None
        self.executing = False      # no longer only planned
        self.object = None          # what an imitation makes of a write,
        self.change = None          # and what else it changes
        self._parsed = None

    def header(self, name):
        for key, value in self.headers:
            if key.lower() == name.lower():
                return value
        return None

    def parsed(self):
        """The body as JSON, or as text; kept."""
        if self._parsed is None:
            text = bytes(self.body).decode("utf-8", "replace")
            try:
                self._parsed = json.loads(text)
            except ValueError:
                self._parsed = text
        return self._parsed

    def forget_parsed(self):
        self._parsed = None

    def prefix(self):
        """/s/SCENARIO, if the client said so."""
        parts = (self.path or "").split("?")[0].split("/")
        return "/".join(parts[:3]) if parts[1:2] == ["s"] else ""

    def base(self):
        """The server as the client calls it."""
        return "%s://%s" % ("https" if self.tls else "http",
                            self.header("host") or "127.0.0.1:%d" % self.port)

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
                "answer_status": self.answer_status, "key": self.key,
                "key_outcome": self.key_outcome, "body_sha256": self.body_sha256,
                "effect_id": self.effect_id if self.kind == "write" else None}


class Scenario:
    """The behaviour and the ledger of one name; every method is thread-safe."""

    def __init__(self, name, timers):
        self.name = name
        self.timers = timers
        self.changed = threading.Condition()
        self.spec = {}
        self.ports = {}
        self._gate = None
        self.keys, self.jobs = Keys(), Jobs(self)
        self.foreign, self.page_faults = [], []
        self.serial = itertools.count()
        self._clear()

    def _clear(self):
        self.requests, self.effects = [], []
        self.by_ref, self.by_id = {}, {}
        self.kept = {}              # what an imitation wants to remember
        self.keys.forget()
        self.jobs.forget()
        self.counts = {"requests": 0, "deliveries": 0, "complete_writes": 0,
                       "reads": 0, "effects": 0}
        self.taken = {"write": 0, "read": 0}

    # -- behaviour ---------------------------------------------------------

    def define(self, spec):
        with self.changed:
            self.spec = spec
            self.api = imitations.load(self)
            self.taken = {"write": 0, "read": 0}
            self._begin()

    def _begin(self):
        self.dice = random.Random(self.spec.get("seed", 0))
        self.this_second = (0, 0)
        self.page_faults = [[fault["page"], fault.get("times", 1), fault["step"]]
                            for fault in self.spec.get("page_faults") or []]
        if "preload" in self.spec:
            self.foreign = []
            self.preload(self.spec["preload"])

    def preload(self, objects, age_s=60):
        """Objects of other people: so many, or a list of descriptions."""
        if isinstance(objects, int):
            objects = [{}] * objects
        with self.changed:
            now = time.time()
            for item in objects:
                self.foreign.append(self.api.foreign(
                    dict({"age_s": age_s}, **item), next(self.serial), now))

    def shift(self, count):
        """Others make so many objects, or take their newest ones away."""
        if count > 0:
            self.preload(count, 0)
        elif count < 0:
            with self.changed:
                del self.foreign[count:]

    def expire_keys(self):
        with self.changed:
            self.keys.age()

    def set_job(self, state, ident=None):
        with self.changed:
            return self.jobs.set(state, ident)

    def page_fault(self, request):
        """The step of a page that is to fail, if this is one."""
        with self.changed:
            page = self.api.page(request) if self.page_faults else None
            for fault in self.page_faults:
                if page is not None and fault[0] == page and fault[1] != 0:
                    fault[1] = fault[1] and fault[1] - 1
                    return fault[2]
        return None

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
            if kind == "write" and self.over_limit():
                return self.spec["write_limit"]["step"]
            return step

    def over_limit(self):
        """Is this one more write than there may be in a second?"""
        limit = self.spec.get("write_limit")
        if limit is None:
            return False
        now = int(time.time())
        second, count = self.this_second
        self.this_second = (now, count + 1 if second == now else 1)
        return self.this_second[1] > limit["per_s"]

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
            self._begin()

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
        request.body_sha256 = sha256(request.body)
        request.ref = self.reference(request)
        request.key = self.api.key(request)
        request.read_at = time.time()
        with self.changed:
            request.complete = True
            self._count("complete_writes" if request.kind == "write"
                        else "reads")

    def trim(self, request):
        """Give back the memory of a large body once nothing needs it."""
        if request.body_bytes > BODY_KEPT:
            del request.body[BODY_KEPT:]
            request.forget_parsed()

    def _count(self, name):
        self.counts[name] += 1
        self.changed.notify_all()

    def resource(self, path):
        """Split a request path: (resource, natural id or None, query)."""
        path, _, query = (path or "").partition("?")
        parts = [p for p in path.split("/") if p]
        if parts[:1] == ["s"]:
            parts = parts[2:]
        name = None if parts[1:] == ["search"] else "/".join(parts[1:]) or None
        suffix = self.spec.get("ref_suffix")
        if name and suffix and name.endswith(suffix):
            name = name[:-len(suffix)]
        return (parts[0] if parts else ""), unquote(name), query

    def reference(self, request):
        """The client's reference of a write, wherever this scenario keeps it."""
        if self.spec.get("ref_header"):
            return request.header(self.spec["ref_header"])
        if self.spec.get("ref_regex"):
            text = bytes(request.body).decode("utf-8", "replace")
            found = re.search(self.spec["ref_regex"], text, re.M)
            return found.group(1).strip() if found else None
        return self.api.reference(request)

    # -- executing ---------------------------------------------------------

    def admit(self, request):
        """Before a write is executed: the answer, if it is not to be at all."""
        with self.changed:
            deduped = request.key is not None and self.api.dedupes()
            if deduped:
                scoped = (self.api.key_scope(request), request.key)
                entry = self.keys.find(scoped, self.api.key_lifetime())
                if entry is not None:
                    return self.api.repeat(entry, request)
            refused = self.api.check(request)
            if deduped and (refused is None or refused.stored):
                request.key_outcome = "new"
                self.keys.reserve(scoped, request, self.api.fingerprint(request))
                if refused is not None:
                    self.keys.refused(request, refused)
            return refused

    def answered(self, request, reply, executed, later):
        """What the first request with a key is told, whether it arrives or not."""
        with self.changed:
            if request.entry is not None:
                self.keys.answered(request, reply, executed, later,
                                   self.api.keeps_failures())

    def execute(self, request, lag=None):
        """Do what a write asks for, or take it on as a job."""
        with self.changed:
            request.executing = True
            self.reply_of(request)
            if not self.api.effective(request):
                self.keys.drop(request)
            elif self.api.defers(request):
                self.jobs.start(request, lag)
                if request.entry is not None:
                    self.keys.committed(request)
            else:
                self.commit(request, lag)

    def reply_of(self, request):
        """The API's own answer to a write; always the same for one request."""
        with self.changed:
            if request.reply is None:
                request.reply = self.api.build(request)
            return request.reply

    def commit(self, request, lag=None):
        """From here on a write is an effect, once per call."""
        now = time.time()
        body = request.parsed()
        if request.body_bytes > BODY_KEPT:
            body = bytes(request.body[:BODY_KEPT]).decode("utf-8", "replace")
        if lag is None:
            lag = self.spec.get("visibility_lag_s", 0)
        effect = {"id": request.effect_id, "ref": request.ref, "body": body,
                  "method": request.method, "request": request.n,
                  "resource": self.api.collection(request),
                  "natural": self.api.is_natural(request),
                  "content_type": request.header("content-type"),
                  "received_at": request.read_at or request.at,
                  "committed_at": now, "visible_at": now + lag, "created": now,
                  "key": request.key, "object": request.object}
        with self.changed:
            effect["seq"] = next(self.serial)
            self.effects.append(effect)
            self.by_ref.setdefault(request.ref, []).append(effect)
            self.by_id.setdefault(request.effect_id, []).append(effect)
            self.api.committed(effect, request)
            if request.entry is not None:
                self.keys.committed(request)
            self._count("effects")

    def commit_at(self, when, request, lag=None):
        effects = self.effects

        def run():
            # A reset in between threw that ledger away: nothing to record.
            if self.effects is effects:
                self.execute(request, lag)
        self.timers.at(when, run)

    def known(self, ident=None):
        """Everything, or what has this reference or id; in order of making."""
        with self.changed:
            if ident is None:
                return self.foreign + self.effects
            found = self.by_ref.get(ident, []) + [
                e for e in self.by_id.get(ident, []) if e["ref"] != ident]
            return [f for f in self.foreign if ident in (f["ref"], f["id"])] + found

    def visible(self, resource, ident=None, deleted=False):
        """What a reader sees now.  Without a "delete" in the specification a
        DELETE of a natural id hides what was there before; with one the API
        marks what is gone, and only who asks for deleted objects sees it."""
        now = time.time()
        marks = "delete" in self.spec
        seen = []
        for effect in self.known(ident):
            if effect["visible_at"] > now or effect["resource"] != resource:
                continue
            if effect["method"] == "DELETE" and (marks or effect["natural"]):
                if not marks:
                    seen = [e for e in seen if e["ref"] != effect["ref"]]
            elif deleted or effect.get("gone_at", now + 1) > now:
                seen.append(effect)
        return seen

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
                    effects=effects, jobs=self.jobs.as_json())

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
    return unquote_to_bytes(text).decode("utf-8", "replace") if text else text


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
