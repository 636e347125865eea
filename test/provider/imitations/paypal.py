"""PayPal Orders v2 and Payouts, as documented: https://developer.paypal.com/api/rest/

    POST /v2/checkout/orders        201; Prefer: return=minimal|representation
    GET  /v2/checkout/orders/ID
    POST /v2/checkout/orders/ID/capture
    POST /v1/payments/payouts       201; a sender_batch_id used before: 400 with a
                                    link to the original
    GET  /v1/payments/payouts/ID
    GET  /v1/reporting/transactions?start_date&end_date&page&page_size
                                    captured orders, later by search_lag_s
PayPal-Request-Id (1 to 108 characters), 6 hours: 200 instead of 201 and the order
as it is now; with another body 422 DUPLICATE_REQUEST_ID; 409
PREVIOUS_REQUEST_IN_PROGRESS while the first one runs.
"""

import time
from datetime import datetime

from api import iso
from imitations.base import Imitation as Base, token
from replies import json_reply

LETTERS = "ABCDEFGHJKLMNPQRSTUVWXYZ0123456789"
NAMES = {400: "INVALID_REQUEST", 401: "AUTHENTICATION_FAILURE", 403: "NOT_AUTHORIZED",
         404: "RESOURCE_NOT_FOUND", 409: "RESOURCE_CONFLICT", 422: "UNPROCESSABLE_ENTITY",
         429: "RATE_LIMIT_REACHED", 503: "SERVICE_UNAVAILABLE"}


class Imitation(Base):

    ROUTES = [
        ("POST", r"/v2/checkout/orders", "order"),
        ("GET", r"/v2/checkout/orders/(\w+)", "order"),
        ("POST", r"/v2/checkout/orders/(\w+)/capture", "capture"),
        ("POST", r"/v1/payments/payouts", "payout"),
        ("GET", r"/v1/payments/payouts/(\w+)", "payout"),
        ("GET", r"/v1/reporting/transactions", "transactions"),
    ]
    KEY_HEADER = "PayPal-Request-Id"
    KEY_LIFETIME_S = 6 * 3600

    def reference(self, request):
        body = self.body(request)
        if not isinstance(body, dict):
            return None
        units = body.get("purchase_units") or [{}]
        if "sender_batch_header" in body:
            return body["sender_batch_header"].get("sender_batch_id")
        return units[0].get("custom_id") or units[0].get("invoice_id")

    # -- keys --------------------------------------------------------------

    def key_scope(self, request):
        return self.route(request)[0]

    def mismatched(self, request):
        return self.fail(422, "DUPLICATE_REQUEST_ID", "The request id was used before.")

    def in_progress(self, request):
        return self.fail(409, "PREVIOUS_REQUEST_IN_PROGRESS",
                         "A previous request on this resource is currently in progress.")

    def replayed(self, entry, request):
        found = self.one("orders", entry.effect_id, written=True)
        if found is None:
            return entry.reply
        return json_reply(200, self.told(request, self.shown(found)))

    # -- orders ------------------------------------------------------------

    def check_order(self, request):
        body = self.body(request)
        if request.key is not None and not 0 < len(request.key) <= 108:
            return self.fail(400, "INVALID_PARAMETER_VALUE", "PayPal-Request-Id")
        if not isinstance(body, dict):
            return self.fail(400, "MALFORMED_REQUEST_JSON")
        if body.get("intent") not in ("CAPTURE", "AUTHORIZE"):
            return self.fail(400, "MISSING_REQUIRED_PARAMETER", "/intent")
        units = body.get("purchase_units")
        if not isinstance(units, list) or not units:
            return self.fail(400, "MISSING_REQUIRED_PARAMETER", "/purchase_units")
        for unit in units:
            amount = unit.get("amount") or {}
            if not isinstance(amount.get("value"), str) or not amount.get("currency_code"):
                return self.fail(400, "INVALID_PARAMETER_SYNTAX", "/purchase_units/0/amount")
            if len(unit.get("custom_id") or "") > 127:
                return self.fail(400, "INVALID_STRING_LENGTH", "/purchase_units/0/custom_id")
        return None

    def make_order(self, request):
        body = self.body(request)
        ident = token(17, LETTERS)
        units = [dict(unit, reference_id=unit.get("reference_id", "default"))
                 for unit in body["purchase_units"]]
        shown = {"id": ident, "status": "CREATED", "intent": body["intent"],
                 "purchase_units": units, "create_time": iso(time.time()),
                 "links": [{"href": "%s%s/v2/checkout/orders/%s"
                            % (request.base(), request.prefix(), ident), "rel": "self",
                            "method": "GET"}]}
        self.record(request, "orders", ident, shown)
        return json_reply(201, self.told(request, shown))

    def told(self, request, shown):
        if request.header("prefer") == "return=representation":
            return shown
        return {name: shown[name] for name in ("id", "status", "links")}

    def read_order(self, request, _, ident):
        found = self.one("orders", ident)
        return json_reply(200, self.shown(found)) if found else self.fail(404, "INVALID_RESOURCE_ID")

    def check_capture(self, request, ident):
        found = self.one("orders", ident, written=True)
        if found is None:
            return self.fail(404, "INVALID_RESOURCE_ID")
        if self.shown(found)["status"] == "COMPLETED":
            return self.fail(422, "ORDER_ALREADY_CAPTURED")
        return None

    def make_capture(self, request, ident):
        order = self.one("orders", ident, written=True)
        capture = token(17, LETTERS)

        def change(effect):
            self.shown(order).update(status="COMPLETED", capture=capture)
        self.record(request, "captures", capture,
                    {"id": ident, "status": "COMPLETED"}, change)
        return json_reply(201, dict(self.shown(order), status="COMPLETED"))

    def read_transactions(self, request, _):
        query = self.parts(request)[1]
        try:
            first, last = (datetime.fromisoformat(query[name].replace("Z", "+00:00")).timestamp()
                           for name in ("start_date", "end_date"))
        except (KeyError, ValueError):
            return self.fail(400, "INVALID_REQUEST", "start_date, end_date")
        captures = [e for e in self.searchable(self.objects("captures", newest_first=False))
                    if first <= e["created"] <= last]
        size = self.number(query, "page_size", 100, 500)
        number = self.number(query, "page", 1, 10000)
        rows = self.cut(request, captures, (number - 1) * size, size)
        return json_reply(200, {
            "transaction_details": [self.transaction(e) for e in rows], "page": number,
            "total_items": len(captures), "total_pages": -(-len(captures) // size)})

    def transaction(self, capture):
        unit = self.shown(self.one("orders", self.shown(capture)["id"], written=True))[
            "purchase_units"][0]
        return {"transaction_info": {
            "transaction_id": capture["id"], "custom_field": unit.get("custom_id"),
            "invoice_id": unit.get("invoice_id"), "transaction_status": "S",
            "transaction_initiation_date": iso(capture["created"])}}

    # -- payouts -----------------------------------------------------------

    def check_payout(self, request):
        batch = self.reference(request)
        if not batch:
            return self.fail(400, "VALIDATION_ERROR", "sender_batch_header")
        for effect in self.scenario.known(batch):
            if effect["resource"] == "payouts":
                links = [{"rel": "self", "method": "GET", "href": "%s%s/v1/payments/payouts/%s"
                          % (request.base(), request.prefix(), effect["id"])}]
                return json_reply(400, dict(self.error(
                    400, "DUPLICATE_SENDER_BATCH_ID", batch), links=links))
        return None

    def make_payout(self, request):
        ident = token(13, LETTERS)
        shown = {"batch_header": {"payout_batch_id": ident, "batch_status": "PENDING",
                                  "sender_batch_header": self.body(request)["sender_batch_header"]}}
        self.record(request, "payouts", ident, shown)
        return json_reply(201, shown)

    def read_payout(self, request, _, ident):
        found = self.one("payouts", ident)
        return json_reply(200, self.shown(found)) if found else self.fail(404, "INVALID_RESOURCE_ID")

    def error(self, status, issue=None, description=None):
        body = {"name": NAMES.get(status, "INTERNAL_SERVER_ERROR"), "debug_id": token(13),
                "message": description or "An error occurred."}
        if issue:
            body["details"] = [{"issue": issue, "description": description or issue}]
        return body
