"""A real server behind the steps: what it answers is the API."""

import http.client
from urllib.parse import unquote, urlsplit

from api import Api, dig
from imitations.stripe import form
from replies import Reply, error, json_reply

HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "te",
              "trailer", "upgrade", "host", "expect", "date"}


class Relay(Api):
    """Passes on what a step lets through; a write is executed by being passed on."""

    TIMEOUT_S = 30

    def is_read(self, method, path):
        return method in ("GET", "HEAD", "OPTIONS", "PROPFIND", "REPORT")

    def path(self, request):
        """The path at the server behind."""
        return urlsplit(self.spec["upstream"]).path + request.path[len(request.prefix()):]

    def dedupes(self):
        return False

    def reference(self, request):
        if request.method in ("PUT", "DELETE"):
            name = unquote(request.path.partition("?")[0].rsplit("/", 1)[-1])
            suffix = self.spec.get("ref_suffix")
            return name[:-len(suffix)] if suffix and name.endswith(suffix) else name
        kind = request.header("content-type") or ""
        body = form(request.body) if "x-www-form-urlencoded" in kind else request.parsed()
        return dig(body, self.spec.get("ref_key", "ref").split("."))

    def build(self, request):
        if not request.executing:
            return json_reply(502, error("not_passed_on"))
        return self.ask(request)

    def effective(self, request):
        return request.reply.status < 300

    def read(self, request, step):
        return self.ask(request)

    def ask(self, request):
        server = urlsplit(self.spec["upstream"]).netloc
        headers = {name: value for name, value in request.headers
                   if name.lower() not in HOP_BY_HOP}
        link = http.client.HTTPConnection(server, timeout=self.TIMEOUT_S)
        try:
            link.request(request.method, self.path(request), bytes(request.body) or None,
                         dict(headers, Connection="close"))
            answer = link.getresponse()
            body = answer.read()
        except OSError as problem:
            return json_reply(502, error("no_answer_from_behind", str(problem)))
        finally:
            link.close()
        return Reply(answer.status, body, [h for h in answer.getheaders()
                                           if h[0].lower() not in HOP_BY_HOP], None)
