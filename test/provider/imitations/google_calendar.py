"""Google Calendar v3, events: https://developers.google.com/workspace/calendar/api

    POST   [/calendar/v3]/calendars/CALENDAR/events         200
    GET    .../events/ID                                    deleted: status cancelled
    PUT    .../events/ID                                    403 on a deleted one
    DELETE .../events/ID                                    204, again 410
    GET    .../events?privateExtendedProperty=K=V&iCalUID&showDeleted&maxResults
                     &pageToken&updatedMin                  nextPageToken
There is no key: the client may choose the id ([a-v0-9]{5,1024}); one that is or
was taken, also by an event deleted since, is 409 duplicate.  Without an id the
server makes one up.  Preload {"id":..,"summary":..,"deleted":true}.
"""

import re
import time
from urllib.parse import parse_qsl, unquote

from api import dig, iso
from imitations.base import Imitation as Base, token
from replies import empty_reply, json_reply

ID = re.compile(r"[a-v0-9]{5,1024}")
BASE32HEX = "0123456789abcdefghijklmnopqrstuv"
REASONS = {400: "invalid", 401: "authError", 403: "forbidden", 404: "notFound", 409: "duplicate",
           410: "deleted", 429: "rateLimitExceeded", 500: "backendError", 503: "backendError"}
MESSAGES = {404: "Not Found", 409: "The requested identifier already exists.",
            410: "Resource has been deleted"}


class Imitation(Base):

    PREFIX = "/calendar/v3"
    ROUTES = [
        ("POST", r"/calendars/([^/]+)/events", "event"),
        ("GET", r"/calendars/([^/]+)/events", "list"),
        ("GET", r"/calendars/([^/]+)/events/([^/]+)", "event"),
        ("PUT", r"/calendars/([^/]+)/events/([^/]+)", "update"),
        ("DELETE", r"/calendars/([^/]+)/events/([^/]+)", "delete"),
    ]
    REF_KEY = "extendedProperties.private.client_reference"

    def key(self, request):
        body = self.body(request)
        return body.get("id") if isinstance(body, dict) else None

    def reference(self, request):
        name, groups = self.route(request)
        if name in ("update", "delete"):
            return "%s %s" % (request.method, unquote(groups[1]))
        return super().reference(request)

    # -- writes ------------------------------------------------------------

    def check_event(self, request, calendar):
        body = self.body(request)
        if not isinstance(body, dict):
            return self.fail(400, "parseError", "Parse Error")
        for name in ("start", "end"):
            if not isinstance(body.get(name), dict):
                return self.fail(400, "required", "Missing %s time." % name)
        if "id" in body:
            if not isinstance(body["id"], str) or not ID.fullmatch(body["id"]):
                return self.fail(400, "invalid", "Invalid resource id value.")
            if self.one(calendar, body["id"], written=True):
                return self.fail(409)
        return None

    def make_event(self, request, calendar):
        body = self.body(request)
        ident = body.get("id") or token(26, BASE32HEX)
        self.record(request, calendar, ident, self.event(ident, body, time.time()))
        return json_reply(200, self.shown({"object": request.object}))

    def event(self, ident, body, created):
        return dict({"kind": "calendar#event", "status": "confirmed", "id": ident,
                     "iCalUID": ident + "@google.com", "etag": '"%s"' % token(16, "0123456789"),
                     "created": iso(created), "updated": iso(created), "sequence": 0,
                     "htmlLink": "https://www.google.com/calendar/event?eid=" + ident},
                    **{k: v for k, v in body.items() if k != "id"})

    def living(self, calendar, ident):
        """(the event as the write side knows it, or the refusal)"""
        found = self.one(calendar, unquote(ident), written=True)
        return found, None if found else self.fail(404)

    def check_update(self, request, calendar, ident):
        found, refusal = self.living(calendar, ident)
        if found and "gone_at" in found:
            return self.fail(403, "forbidden", "Forbidden")
        return refusal

    def make_update(self, request, calendar, ident):
        found, _ = self.living(calendar, ident)
        shown = dict(self.event(found["id"], self.body(request), time.time()),
                     created=self.shown(found)["created"])

        def change(effect):
            found["object"]["shown"] = shown
        self.record(request, "changes of " + calendar, found["id"], shown, change)
        return json_reply(200, shown)

    def check_delete(self, request, calendar, ident):
        found, refusal = self.living(calendar, ident)
        return self.fail(410) if found and "gone_at" in found else refusal

    def make_delete(self, request, calendar, ident):
        found, _ = self.living(calendar, ident)

        def change(effect):
            found.setdefault("gone_at", effect["visible_at"])
        self.record(request, "changes of " + calendar, found["id"], {}, change)
        return empty_reply(204)

    # -- reads -------------------------------------------------------------

    def shown(self, effect):
        event = super().shown(effect)
        return dict(event, status="cancelled") if "gone_at" in effect and self.gone(effect) \
            else event

    def read_event(self, request, _, calendar, ident):
        found = self.one(calendar, unquote(ident))
        return json_reply(200, self.shown(found)) if found else self.fail(404)

    def read_list(self, request, _, calendar):
        query = self.parts(request)[1]
        pairs = parse_qsl(request.path.partition("?")[2], keep_blank_values=True)
        rows = self.objects(calendar, newest_first=False)
        if query.get("showDeleted") != "true":
            rows = [r for r in rows if not self.gone(r)]
        for name, value in pairs:
            if name == "privateExtendedProperty":
                key, _, wanted = value.partition("=")
                rows = [r for r in rows if dig(
                    self.shown(r), ["extendedProperties", "private", key]) == wanted]
            elif name == "iCalUID":
                rows = [r for r in rows if self.shown(r)["iCalUID"] == value]
            elif name == "updatedMin":
                rows = [r for r in rows if self.shown(r)["updated"] >= value]
        size = self.number(query, "maxResults", 250, 2500)
        start = int(query.get("pageToken") or 0)
        page = self.cut(request, rows, start, size)
        body = {"kind": "calendar#events", "items": [self.shown(r) for r in page]}
        if len(rows) > start + size:
            body["nextPageToken"] = str(start + size)
        return json_reply(200, body)

    def theirs(self, item, serial, created):
        calendar = item.pop("resource", "primary")
        ident = item.pop("id", token(26, BASE32HEX))
        return calendar, ident, self.event(ident, dict({"summary": "theirs"}, **item), created)

    def error(self, status, reason=None, message=None):
        reason = reason or REASONS.get(status, "invalid")
        message = message or MESSAGES.get(status, reason)
        return {"error": {"code": status, "message": message, "errors": [
            {"domain": "global", "reason": reason, "message": message}]}}
