"""The control port: scripting and reading the ledger, JSON over plain HTTP."""

import json
import threading
from urllib.parse import parse_qs, unquote

from ledger import Request
from presets import PRESETS, expand, needs_own_port
from wire import read_body, read_head

WAITABLE = {"writes": "complete_writes", "deliveries": "deliveries",
            "effects": "effects", "reads": "reads", "requests": "requests"}


class Refused(Exception):
    """The caller's mistake; becomes a 400 or 404."""

    def __init__(self, message, status=400):
        super().__init__(message)
        self.status = status


class Control:
    """Answers the test; one call is one method named after verb and word."""

    def __init__(self, provider):
        self.provider = provider

    def handle(self, _, conn):
        while not conn.closed:
            request = Request(conn, "read")
            if not read_head(conn, request) or not read_body(conn, request):
                return
            status, answer = self.dispatch(request)
            body = json.dumps(answer).encode()
            head = ("HTTP/1.1 %d x\r\nContent-Type: application/json\r\n"
                    "Content-Length: %d\r\n\r\n" % (status, len(body)))
            if not conn.send(head.encode() + body):
                return
            if "close" in (request.header("connection") or "").lower():
                return

    def dispatch(self, request):
        path, _, query = request.path.partition("?")
        word, _, name = path.strip("/").partition("/")
        call = getattr(self, "%s_%s" % (request.method.lower(), word), None)
        if call is None:
            return 404, {"error": "no such call: %s %s" % (request.method, path)}
        try:
            body = json.loads(bytes(request.body)) if request.body else {}
            return 200, call(unquote(name), body,
                             {k: v[0] for k, v in parse_qs(query).items()})
        except Refused as error:
            return error.status, {"error": str(error)}
        except (ValueError, TypeError, KeyError, AttributeError, OSError) as error:
            return 400, {"error": "%s: %s" % (type(error).__name__, error)}

    def scenario(self, name):
        if not name:
            raise Refused("a scenario name is needed")
        return self.provider.registry.get(name)

    def put_scenario(self, name, body, _):
        scenario = self.scenario(name)
        spec = expand(body)
        scenario.define(spec)
        if needs_own_port(spec):
            self.provider.listeners.bind(scenario)
        ports = scenario.ports or {"http": self.provider.http,
                                   "https": self.provider.https}
        return dict(ports, name=name, own_port=bool(scenario.ports))

    def get_ledger(self, name, _, query):
        show = (lambda s: s.summary()) if query.get("summary") else \
            (lambda s: s.as_json())
        if name:
            return show(self.scenario(name))
        return {s.name: show(s) for s in self.provider.registry.all()}

    def get_wait(self, name, _, query):
        unknown = set(query) - set(WAITABLE) - {"timeout"}
        if unknown:
            raise Refused("cannot wait for %s" % sorted(unknown))
        wanted = {WAITABLE[k]: int(v) for k, v in query.items() if k in WAITABLE}
        scenario = self.scenario(name)
        reached = scenario.wait(wanted, float(query.get("timeout", 10)))
        return dict(scenario.summary(), reached=reached)

    def post_release(self, name, *_):
        self.scenario(name).release()
        return {}

    def post_reset(self, name, *_):
        self.scenario(name).reset()
        return {}

    def post_preload(self, name, body, _):
        self.scenario(name).preload(body["objects"], 0)
        return {}

    def post_expire(self, name, *_):
        self.scenario(name).expire_keys()
        return {}

    def post_job(self, name, body, _):
        return self.scenario(name).set_job(body["state"], body.get("id"))

    def post_open(self, name, *_):
        self.provider.listeners.reopen_bound(self.scenario(name))
        return self.scenario(name).ports

    def post_close(self, name, *_):
        self.provider.listeners.close_bound(self.scenario(name))
        return {}

    def post_listener(self, _, body, __):
        bound = self.scenario(body["scenario"]) if "scenario" in body else None
        return self.provider.listeners.special(body["kind"], bound).as_json()

    def get_listener(self, name, *_):
        found = self.provider.listeners.by_port.get(int(name))
        if found is None:
            raise Refused("no listener on port %s" % name, 404)
        return found.as_json()

    def get_presets(self, *_):
        return {name: what for name, (what, _) in PRESETS.items()}

    def get_stats(self, *_):
        ports = list(self.provider.listeners.by_port.values())
        return {"open": sum(p.open for p in ports),
                "accepted": sum(p.accepted for p in ports),
                "threads": threading.active_count()}
