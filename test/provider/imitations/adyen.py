"""Adyen Checkout, payments: https://docs.adyen.com/development-resources/api-idempotency

    POST [/vN]/payments     200 {"pspReference","resultCode","merchantReference"}
Nothing can be asked: what became of a request is told by the key or by webhook.
Idempotency-Key (at most 64 characters), 7 days: the first reply again, with the
key in a reply header as with every reply.  While the first one runs: 422, errorCode
704, transient-error: true.  Another body with a known key: nothing is published;
the first reply, unless key_mismatch is refuse (422).  paymentMethod.holderName
DECLINED is Refused with status 200, and PENDING waits for the shopper.
"""

import string

from imitations.base import Imitation as Base, token
from replies import json_reply


class Imitation(Base):

    PREFIX = r"(?:/checkout)?(?:/v\d+)?"
    ROUTES = [("POST", r"/payments", "payment")]
    REF_KEY = "reference"
    KEY_HEADER = "Idempotency-Key"
    KEY_LIFETIME_S = 7 * 24 * 3600
    MISMATCH = "replay_anyway"

    def mismatched(self, request):
        return self.fail(422, "704", "key used with another request", headers=self.echo(request))

    def in_progress(self, request):
        return self.fail(422, "704", "request already processed or in progress",
                         headers=self.echo(request) + [("transient-error", "true")])

    def replayed(self, entry, request):
        return entry.reply

    def echo(self, request):
        return [("Idempotency-Key", request.key)] if request.key is not None else []

    def check_payment(self, request):
        body = self.body(request)
        if not isinstance(body, dict):
            return self.fail(400, "702", "Invalid JSON")
        if request.key is not None and len(request.key) > 64:
            return self.fail(400, "705", "Invalid idempotency key")
        for name in ("merchantAccount", "amount", "reference", "paymentMethod"):
            if not body.get(name):
                return self.fail(422, "14_000", "Required field '%s' is not provided." % name)
        if len(body["reference"]) > 80:
            return self.fail(422, "14_001", "reference is too long")
        if self.holder(body) == "DECLINED":
            refused = json_reply(200, dict(self.result(body, "Refused"), refusalReason="Refused",
                                           refusalReasonCode="2"), self.echo(request))
            refused.stored = True
            return refused
        return None

    def holder(self, body):
        return body["paymentMethod"].get("holderName")

    def result(self, body, code):
        return {"pspReference": token(16, string.ascii_uppercase + string.digits),
                "resultCode": code, "amount": body["amount"],
                "merchantReference": body["reference"]}

    def make_payment(self, request):
        body = self.body(request)
        pending = self.holder(body) == "PENDING"
        shown = self.result(body, "Pending" if pending else "Authorised")
        self.record(request, "payments", shown["pspReference"], shown)
        return json_reply(200, shown, self.echo(request))

    def error(self, status, code=None, message=""):
        kinds = {401: "security", 403: "security", 422: "validation", 400: "validation"}
        return {"status": status, "errorCode": code or ("703" if status == 503 else "000"),
                "message": message, "errorType": kinds.get(status, "internal")}
