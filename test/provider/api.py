"""The API of a scenario when no step interferes: effects, lists, keys, jobs, deletes.

Imitations of real APIs are classes with the same methods; see imitations/.
"""

import json
import time
from datetime import datetime, timezone

from jobs import JOB_SPEC
from keys import KEY_SPEC, repeated, written_key
from lists import LIST_SPEC, asked_reference, list_reply, page_number
from replies import Reply, empty_reply, json_reply, page_reply, phrase

READ_METHODS = ("GET", "HEAD", "OPTIONS", "PROPFIND", "REPORT")
DELETE_SPEC = {"delete", "not_found"}
API_SPEC = KEY_SPEC | LIST_SPEC | JOB_SPEC | DELETE_SPEC | {"search_lag_s"}


def dig(value, path):
    for key in path:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def iso(at):
    """A point in time as most APIs write it."""
    return datetime.fromtimestamp(at, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class Api:
    """What the scenario's requests mean.  Its methods are told of whole requests."""

    def __init__(self, scenario):
        self.scenario, self.spec = scenario, scenario.spec

    # -- what a request is -------------------------------------------------

    def is_read(self, method, path):
        if method == "POST":
            return (path or "").partition("?")[0].rstrip("/").endswith("/search")
        return method in READ_METHODS

    def key(self, request):
        """The key a request carries, whether it is used here or not."""
        return written_key(self.spec, request, dig)

    def dedupes(self):
        return any(name in self.spec for name in KEY_SPEC)

    def fingerprint(self, request):
        """What must be the same for a key to be used again."""
        return (request.method, request.path, request.body_sha256)

    def key_scope(self, request):
        """Keys are the same only within this."""
        return None

    def key_lifetime(self):
        return self.spec.get("key_lifetime_s")

    def keeps_failures(self):
        """Is a 5xx kept for the key, although nothing was executed?"""
        return self.spec.get("key_replay", "stored_reply") == "stored_reply"

    def reference(self, request):
        """The client's reference of a request."""
        natural = self.scenario.resource(request.path)[1]
        if natural is not None:
            return natural
        ref = dig(request.parsed(), self.spec.get("ref_key", "ref").split("."))
        return ref if ref is None or isinstance(ref, str) else json.dumps(ref)

    def collection(self, request):
        """Where the object of a write belongs."""
        return self.scenario.resource(request.path)[0]

    def is_natural(self, request):
        """Does the path name one object?"""
        return self.scenario.resource(request.path)[1] is not None

    # -- writes ------------------------------------------------------------

    def repeat(self, entry, request):
        """The answer to a key that is known already."""
        return repeated(self, self.spec, entry, request)

    def check(self, request):
        """A refusal that is no execution, or None."""
        if request.method != "DELETE" or "delete" not in self.spec:
            return None
        found = self.find(request)
        if not found:
            return self.missing()
        if self.gone(found[-1]):
            return self.missing(self.spec["delete"].get("again", 404))
        return None

    def build(self, request):
        """The answer to the write once it is executed."""
        if self.defers(request):
            return self.scenario.jobs.accepted_reply(request)
        if request.method == "DELETE" and "delete" in self.spec:
            status = self.spec["delete"].get("status", 204)
            return empty_reply(status) if status == 204 else \
                json_reply(status, {"id": request.ref, "status": "deleted"})
        return json_reply(201, {"id": request.effect_id, "ref": request.ref})

    def defers(self, request):
        return "accept" in self.spec

    def effective(self, request):
        """Did the execution change anything?"""
        return True

    def committed(self, effect, request):
        """A write was executed: what else changes by it."""
        if effect["method"] == "DELETE" and "delete" in self.spec:
            for other in self.scenario.known(effect["ref"]):
                if other["resource"] == effect["resource"]:
                    other.setdefault("gone_at", effect["visible_at"])

    def current(self, effect_id, status):
        """The object of an earlier write, as it is now."""
        for effect in self.scenario.effects:
            if effect["id"] == effect_id:
                return json_reply(status, self.shown(effect))
        return json_reply(status, {"id": effect_id})

    # -- reads -------------------------------------------------------------

    def gone(self, effect):
        return effect.get("gone_at", float("inf")) <= time.time()

    def find(self, request):
        """What the path names by reference or by id, deleted or not."""
        resource, ident, _ = self.scenario.resource(request.path)
        return [] if ident is None else \
            self.scenario.visible(resource, ident, deleted=True)

    def missing(self, status=404):
        if self.spec.get("not_found") == "html":
            return page_reply(status)
        return json_reply(status, {"error": phrase(status).lower()})

    def read(self, request, step):
        resource, ident, _ = self.scenario.resource(request.path)
        if ident is None:
            found = self.scenario.visible(resource, asked_reference(request))
            if request.method == "POST":
                found = self.searchable(found)
            reply = list_reply(self.spec, request, found, self.shown,
                               step.get("incomplete"))
            self.scenario.shift(self.spec.get("shift_per_page", 0))
            return reply
        if resource == "jobs" and "accept" in self.spec:
            return self.scenario.jobs.ask(ident)
        found = self.find(request)
        if not found:
            return self.missing()
        last = found[-1]
        if self.gone(last):
            how = self.spec["delete"].get("get", 404)
            return json_reply(200, dict(self.shown(last), status="cancelled")) \
                if how == "cancelled" else self.missing(how)
        if self.spec.get("echo_body"):
            body = last["body"]
            text = body if isinstance(body, str) else json.dumps(body)
            return Reply(200, text.encode(), kind=last["content_type"] or "text/plain")
        return json_reply(200, self.shown(last))

    def searchable(self, effects):
        """What a search shows of what lists show: its index may lag behind."""
        at = time.time() - self.spec.get("search_lag_s", 0)
        return [e for e in effects if e["visible_at"] <= at]

    def page(self, request):
        """The number of the page a read asks for, or None."""
        return page_number(self.spec, request)

    def foreign(self, item, serial, now):
        """An object that somebody else made, from its description."""
        created = now - item.pop("age_s")
        made = {"id": item.pop("id", "ex_%d" % serial),
                "ref": item.pop("ref", "foreign-%d" % serial),
                "body": item.pop("body", None), "resource": item.pop("resource", "effects"),
                "method": "POST", "natural": False, "content_type": None,
                "visible_at": created, "created": created, "seq": serial}
        if item.pop("deleted", False):
            made["gone_at"] = created
        return dict(made, extra=item)

    def shown(self, effect):
        return dict(effect.get("extra") or {}, id=effect["id"], ref=effect["ref"],
                    body=effect["body"], created=int(effect["created"]),
                    created_at=iso(effect["created"]))

    def error_body(self, status):
        """The body of a status that a step has chosen."""
        return {"error": phrase(status) if phrase(status) != "Unknown" else "error"}

