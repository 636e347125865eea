"""Stripe API v1, as documented: https://docs.stripe.com/api

    POST /v1/payment_intents, /v1/refunds, /v1/customers    form bodies, 200
    GET  /v1/COLLECTION/ID
    GET  /v1/COLLECTION?limit&starting_after&created[gte]   newest first, has_more
    GET  /v1/payment_intents/search?query=metadata['K']:'V' next_page
Idempotency-Key (at most 255 characters), 24 hours from the first use: the same
status and body again, a 500 too, with Idempotent-Replayed: true; 400
idempotency_error with other parameters; 409 while the first one runs.  What the
validation refuses is not kept.  search_lag_s delays the search alone.
payment_method pm_card_chargeDeclined with confirm=true: 402, kept for the key.
A refund needs a payment intent that is there; preload {"id":"pi_..","amount":n}.
"""

import re
import time
from urllib.parse import parse_qsl

from api import dig
from imitations.base import Imitation as Base, token
from replies import json_reply

PREFIXES = {"payment_intents": "pi_", "refunds": "re_", "customers": "cus_"}
TYPES = {429: "rate_limit_error", 401: "invalid_request_error", 402: "card_error"}


def form(data):
    """A form with a[b][0]=c as nested dictionaries."""
    result = {}
    for name, value in parse_qsl(bytes(data).decode("utf-8", "replace"), keep_blank_values=True):
        head = name.partition("[")[0]
        keys = [head] + re.findall(r"\[([^\]]*)\]", name)
        into = result
        for key in keys[:-1]:
            into = into.setdefault(key, {})
            if not isinstance(into, dict):
                break
        else:
            into[keys[-1]] = value
    return result


class Imitation(Base):

    ROUTES = [
        ("POST", r"/v1/(payment_intents|refunds|customers)", "object"),
        ("GET", r"/v1/(payment_intents|customers)/search", "search"),
        ("GET", r"/v1/(payment_intents|refunds|customers)", "list"),
        ("GET", r"/v1/(payment_intents|refunds|customers)/(\w+)", "object"),
    ]
    REF_KEY = "metadata.client_reference"
    KEY_HEADER = "Idempotency-Key"
    KEY_LIFETIME_S = 24 * 3600
    KEEPS_FAILURES = True

    def body(self, request):
        return form(request.body)

    # -- keys --------------------------------------------------------------

    def fingerprint(self, request):
        """Stripe compares parameters, not bytes."""
        return (request.method, self.parts(request)[0], repr(sorted_deep(self.body(request))))

    def mismatched(self, request):
        return self.fail(400, "idempotency_error", None, "Keys for idempotent requests can only "
                         "be used with the same parameters they were first used with.")

    def in_progress(self, request):
        return self.fail(409, "idempotency_error", "idempotency_key_in_use",
                         "There is currently another in-progress request using this key.")

    def replayed(self, entry, request):
        return entry.reply.again(("Idempotent-Replayed", "true"), ("Idempotency-Key", entry.key))

    # -- writes ------------------------------------------------------------

    def check_object(self, request, collection):
        if request.key is not None and not 0 < len(request.key) <= 255:
            return self.fail(400, "invalid_request_error", None, "Keys have 1 to 255 characters.")
        body = self.body(request)
        required = {"payment_intents": ("amount", "currency"), "refunds": (), "customers": ()}
        for name in required[collection]:
            if not body.get(name):
                return self.fail(400, "invalid_request_error", "parameter_missing",
                                 "Missing required param: %s." % name, name)
        if "amount" in body and not str(body["amount"]).isdigit():
            return self.fail(400, "invalid_request_error", "parameter_invalid_integer",
                             "Invalid integer: %s" % body["amount"], "amount")
        if collection == "refunds":
            return self.check_refund(body)
        if body.get("confirm") == "true" and body.get("payment_method") == "pm_card_chargeDeclined":
            declined = self.fail(402, "card_error", "card_declined", "Your card was declined.")
            declined.stored = True
            return declined
        return None

    def check_refund(self, body):
        paid = body.get("payment_intent")
        if not paid and not body.get("charge"):
            return self.fail(400, "invalid_request_error", "parameter_missing", "One of the "
                             "following params should be provided: payment_intent or charge.")
        if paid and self.one("payment_intents", paid, written=True) is None:
            return self.fail(404, "invalid_request_error", "resource_missing",
                             "No such payment_intent: '%s'" % paid, "payment_intent")
        return None

    def make_object(self, request, collection):
        body = self.body(request)
        ident = PREFIXES[collection] + token(24)
        shown = {"id": ident, "object": collection[:-1], "created": int(time.time()),
                 "livemode": False, "metadata": body.get("metadata", {}),
                 "description": body.get("description")}
        if collection != "customers":
            paid = self.one("payment_intents", body.get("payment_intent"), written=True)
            amount = body.get("amount") or (self.shown(paid)["amount"] if paid else 0)
            shown["amount"] = int(amount)
            shown["currency"] = body.get("currency", "usd")
        if collection == "payment_intents":
            confirmed = body.get("confirm") == "true"
            shown.update(status="succeeded" if confirmed else "requires_payment_method",
                         customer=body.get("customer"), capture_method="automatic",
                         payment_method=body.get("payment_method"),
                         latest_charge="ch_" + token(24) if confirmed else None,
                         client_secret="%s_secret_%s" % (ident, token(25)))
        elif collection == "refunds":
            shown.update(status="succeeded", payment_intent=body.get("payment_intent"),
                         charge=body.get("charge"), reason=body.get("reason"))
        self.record(request, collection, ident, shown)
        headers = [("Request-Id", "req_" + token(14)), ("Stripe-Version", "2024-06-20")]
        if request.key is not None:
            headers.append(("Idempotency-Key", request.key))
        return json_reply(200, shown, headers)

    def theirs(self, item, serial, created):
        collection = item.pop("resource", "payment_intents")
        ident = item.pop("id", PREFIXES[collection] + token(24))
        return collection, ident, dict(
            {"id": ident, "object": collection[:-1], "created": int(created), "amount": 100,
             "currency": "eur", "status": "succeeded", "metadata": {}}, **item)

    # -- reads -------------------------------------------------------------

    def read_object(self, request, _, collection, ident):
        found = self.one(collection, ident)
        if found is None:
            return self.fail(404, "invalid_request_error", "resource_missing",
                             "No such %s: '%s'" % (collection[:-1], ident), "id")
        return json_reply(200, self.shown(found))

    def read_list(self, request, _, collection):
        query = self.parts(request)[1]
        rows = self.objects(collection)
        for name, keep in (("gte", lambda at, limit: at >= limit), ("gt", lambda at, limit: at > limit),
                           ("lte", lambda at, limit: at <= limit), ("lt", lambda at, limit: at < limit)):
            limit = query.get("created[%s]" % name)
            if limit is not None:
                rows = [r for r in rows if keep(self.shown(r)["created"], int(limit))]
        for name in ("customer", "payment_intent"):
            if name in query:
                rows = [r for r in rows if self.shown(r).get(name) == query[name]]
        start = 0
        if "starting_after" in query:
            idents = [r["id"] for r in rows]
            if query["starting_after"] not in idents:
                return self.fail(400, "invalid_request_error", "resource_missing",
                                 "No such object: '%s'" % query["starting_after"], "starting_after")
            start = idents.index(query["starting_after"]) + 1
        size = self.number(query, "limit", 10, 100)
        page = self.cut(request, rows, start, size)
        return json_reply(200, {"object": "list", "url": "/v1/" + collection,
                                "has_more": len(rows) > start + size,
                                "data": [self.shown(r) for r in page]})

    def read_search(self, request, _, collection):
        query = self.parts(request)[1]
        asked = re.fullmatch(r"""metadata\[(['"])(.*?)\1\]:(['"])(.*?)\3""", query.get("query", ""))
        if not asked:
            return self.fail(400, "invalid_request_error", None, "We were unable to parse your "
                             "search query.", "query")
        rows = [r for r in self.searchable(self.objects(collection))
                if dig(self.shown(r), ["metadata", asked.group(2)]) == asked.group(4)]
        size = self.number(query, "limit", 10, 100)
        start = int(query.get("page", 0))
        page = self.cut(request, rows, start, size)
        more = len(rows) > start + size
        return json_reply(200, {"object": "search_result", "has_more": more,
                                "url": "/v1/%s/search" % collection,
                                "next_page": str(start + size) if more else None,
                                "data": [self.shown(r) for r in page]})

    def error(self, status, kind=None, code=None, message="", param=None):
        kind = kind or TYPES.get(status, "api_error" if status >= 500 else "invalid_request_error")
        facts = {"type": kind, "message": message, "code": code, "param": param}
        return {"error": {k: v for k, v in facts.items() if v is not None}}


def sorted_deep(value):
    if isinstance(value, dict):
        return sorted((k, sorted_deep(v)) for k, v in value.items())
    return value
