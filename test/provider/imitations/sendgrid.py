"""Twilio SendGrid v3, mail send: https://www.twilio.com/docs/sendgrid/api-reference

    POST /v3/mail/send      202, no body, the id in X-Message-Id
No key, and nothing to ask without an add-on: GET /v3/messages is 403.
"""

from imitations.base import Imitation as Base, token
from replies import empty_reply


class Imitation(Base):

    ROUTES = [("POST", r"/v3/mail/send", "mail"), ("GET", r"/v3/messages", "messages")]
    REF_KEY = "custom_args.client_reference"

    def check_mail(self, request):
        body = self.body(request)
        if not isinstance(body, dict):
            return self.fail(400, "Bad Request", None)
        for name in ("personalizations", "from", "subject"):
            if not body.get(name):
                return self.fail(400, "The %s is required." % name, name)
        if not body.get("content") and not body.get("template_id"):
            return self.fail(400, "The content is required.", "content")
        return None

    def make_mail(self, request):
        ident = token(22)
        self.record(request, "mails", ident, {"id": ident})
        return empty_reply(202, [("X-Message-Id", ident)])

    def read_messages(self, request, _):
        return self.fail(403, "authorization required", "authorization")

    def error(self, status, message="", field=None):
        return {"errors": [{"message": message or str(status), "field": field, "help": None}]}
