"""GitHub REST, issues: https://docs.github.com/en/rest/issues/issues

    POST  /repos/OWNER/REPO/issues          201, Location
    GET   /repos/OWNER/REPO/issues/NUMBER
    PATCH /repos/OWNER/REPO/issues/NUMBER   {"state":"closed"} and the like
    GET   /repos/OWNER/REPO/issues?state&creator&labels&sort&direction&since
                                  &per_page&page      an array, Link header
    GET   /search/issues?q=WORDS  {"total_count","incomplete_results","items"},
                                  later by search_lag_s; step incomplete
No key: every POST is an issue.  The list holds pull requests too and open ones
only unless asked; since= looks at updated_at.  A repository that is not "visible"
to the credential is 404: one whose name is or begins with "secret".  Requests
without User-Agent are 403.  Preload {"title":..,"body":..,"pull_request":{}}.
"""

import re
import time
from urllib.parse import unquote_plus

from api import iso
from imitations.base import Imitation as Base
from replies import json_reply

REPO = r"/repos/([^/]+)/([^/]+)/issues"


class Imitation(Base):

    ROUTES = [
        ("POST", REPO, "issue"),
        ("GET", REPO, "list"),
        ("GET", REPO + r"/(\d+)", "issue"),
        ("PATCH", REPO + r"/(\d+)", "update"),
        ("GET", r"/search/issues", "search"),
    ]
    MARKER = re.compile(r"<!-- reference (\S+) -->")

    def __init__(self, scenario):
        super().__init__(scenario)
        self.numbers = scenario.kept.setdefault("github numbers", {})

    def reference(self, request):
        name, groups = self.route(request)
        if name == "update":
            return "PATCH " + "/".join(groups)
        found = self.MARKER.search(str((self.body(request) or {}).get("body"))
                                   if isinstance(self.body(request), dict) else "")
        return found.group(1) if found else None

    # -- writes ------------------------------------------------------------

    def forbidden(self, request, repo=""):
        if not request.header("user-agent"):
            return self.fail(403, "Request forbidden by administrative rules. Please make sure "
                             "your request has a User-Agent header")
        return self.fail(404) if repo.startswith("secret") else None

    def check_issue(self, request, owner, repo):
        refusal = self.forbidden(request, repo)
        if refusal:
            return refusal
        body = self.body(request)
        if not isinstance(body, dict):
            return self.fail(400, "Problems parsing JSON")
        if not isinstance(body.get("title"), str) or not body["title"]:
            return self.fail(422, "Validation Failed", [
                {"resource": "Issue", "code": "missing_field", "field": "title"}])
        return None

    def make_issue(self, request, owner, repo):
        body = self.body(request)
        collection = "%s/%s" % (owner, repo)
        shown = self.issue(collection, dict(body), time.time())
        self.record(request, collection, shown["html_url"], shown)
        return json_reply(201, shown, [("Location", shown["url"])])

    def issue(self, collection, body, created):
        number = self.numbers[collection] = self.numbers.get(collection, 0) + 1
        pull = "pull_request" in body
        url = "https://github.com/%s/%s/%d" % (collection, "pull" if pull else "issues", number)
        labels = [{"name": label} if isinstance(label, str) else label
                  for label in body.pop("labels", [])]
        assignees = [{"login": name} for name in body.pop("assignees", [])]
        return dict({"id": 10000 + number, "number": number, "state": "open", "html_url": url,
                     "url": "https://api.github.com/repos/%s/issues/%d" % (collection, number),
                     "user": {"login": "octocat"}, "labels": labels, "assignees": assignees,
                     "title": "", "body": None, "created_at": iso(created),
                     "updated_at": iso(created)}, **body)

    def by_number(self, collection, number):
        for effect in self.scenario.known():
            if effect["resource"] == collection and effect["object"] and \
                    self.shown(effect)["number"] == int(number):
                return effect
        return None

    def check_update(self, request, owner, repo, number):
        return self.forbidden(request, repo) or (
            None if self.by_number("%s/%s" % (owner, repo), number) else self.fail(404))

    def make_update(self, request, owner, repo, number):
        found = self.by_number("%s/%s" % (owner, repo), number)
        shown = dict(self.shown(found), **self.body(request))
        shown["updated_at"] = iso(time.time())

        def change(effect):
            found["object"]["shown"] = shown
        self.record(request, "changes", found["id"], shown, change)
        return json_reply(200, shown)

    # -- reads -------------------------------------------------------------

    def read_issue(self, request, _, owner, repo, number):
        collection = "%s/%s" % (owner, repo)
        for effect in self.objects(collection):
            if self.shown(effect)["number"] == int(number):
                return self.forbidden(request, repo) or json_reply(200, self.shown(effect))
        return self.forbidden(request, repo) or self.fail(404)

    def read_list(self, request, _, owner, repo):
        refusal = self.forbidden(request, repo)
        if refusal:
            return refusal
        query = self.parts(request)[1]
        rows = [self.shown(e) for e in self.objects("%s/%s" % (owner, repo))]
        state = query.get("state", "open")
        if state != "all":
            rows = [r for r in rows if r["state"] == state]
        if "creator" in query:
            rows = [r for r in rows if r["user"]["login"] == query["creator"]]
        if "since" in query:
            rows = [r for r in rows if r["updated_at"] >= query["since"]]
        if "labels" in query:
            wanted = set(query["labels"].split(","))
            rows = [r for r in rows if wanted <= {label["name"] for label in r["labels"]}]
        if query.get("sort") == "updated":
            rows.sort(key=lambda r: r["updated_at"], reverse=True)
        if query.get("direction") == "asc":
            rows.reverse()
        return self.paged(request, query, rows, lambda page: page)

    def paged(self, request, query, rows, wrap):
        size = self.number(query, "per_page", 30, 100)
        number = self.number(query, "page", 1, 100000)
        page = self.cut(request, rows, (number - 1) * size, size)
        last = max(1, -(-len(rows) // size))
        links = []
        for rel, target in (("prev", number - 1), ("next", number + 1), ("last", last), ("first", 1)):
            if 1 <= target <= last and (number > 1 if rel in ("prev", "first") else number < last):
                links.append('<%s>; rel="%s"' % (
                    self.url(request, **dict(query, page=target)), rel))
        headers = [("X-RateLimit-Remaining", "4999")]
        if links:
            headers.append(("Link", ", ".join(links)))
        return json_reply(200, wrap(page), headers)

    def read_search(self, request, step):
        refusal = self.forbidden(request)
        if refusal:
            return refusal
        query = self.parts(request)[1]
        words = [w for w in unquote_plus(query.get("q", "")).split() if ":" not in w]
        found = [self.shown(e) for e in self.searchable(self.scenario.known())
                 if e["object"] and e["resource"] != "changes"]
        rows = [r for r in found if all(w.strip('"') in "%s %s" % (r["title"], r["body"])
                                        for w in words)]
        return self.paged(request, query, rows, lambda page: {
            "total_count": len(rows), "incomplete_results": bool(step.get("incomplete")),
            "items": page})

    def theirs(self, item, serial, created):
        collection = item.pop("resource", "octocat/hello-world")
        item.setdefault("title", "theirs %d" % serial)
        shown = self.issue(collection, {k: v for k, v in item.items() if k not in ("ref", "id")}, created)
        return collection, shown["html_url"], shown

    def error(self, status, message=None, errors=None):
        messages = {403: "Forbidden", 404: "Not Found", 401: "Bad credentials",
                    429: "API rate limit exceeded", 500: "Server Error", 502: "Server Error"}
        body = {"message": message or messages.get(status, "Error"), "status": str(status),
                "documentation_url": "https://docs.github.com/rest"}
        return dict(body, errors=errors) if errors else body
