"""What an API answers when no step interferes."""

import json
from http import HTTPStatus

JSON = "application/json"


class Reply:
    """A whole answer: status, body, headers [(name, value)], content type."""

    def __init__(self, status, body=b"", headers=(), kind=JSON):
        self.status, self.body = status, body
        self.headers, self.kind = list(headers), kind
        self.stored = False         # a refusal that is kept for the key

    def again(self, *headers):
        """The same reply with more headers."""
        return Reply(self.status, self.body, self.headers + list(headers), self.kind)


def json_reply(status, value, headers=()):
    return Reply(status, json.dumps(value).encode(), headers)


def page_reply(status):
    """What a gateway says in the place of the API."""
    text = "<html><body><h1>%d %s</h1></body></html>" % (status, phrase(status))
    return Reply(status, text.encode(), kind="text/html")


def empty_reply(status, headers=()):
    return Reply(status, b"", headers, None)


def phrase(status):
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"


def error(code, message=None, **more):
    """The body of a refusal, with its code where a rule can read it."""
    return {"code": code, "error": dict({"code": code, "message": message or code}, **more)}
