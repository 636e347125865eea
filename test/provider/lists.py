"""Lists of objects, a page at a time, in the ways that providers page them."""

import base64
import json
from datetime import datetime
from urllib.parse import parse_qs, urlencode

from replies import Reply, error, json_reply

LIST_SPEC = {"page_size", "paging", "next_url", "has_more", "order", "preload",
             "page_faults", "shift_per_page"}
PAGINGS = {"link", "next_url", "cursor", "offset", "page"}


class BadPage(Exception):
    """The client asks for a page that cannot be."""


class Query:
    """What a reader asks for: in the query, or in the body of a search."""

    def __init__(self, request):
        self.path, _, query = (request.path or "").partition("?")
        self.asked = {k: v[-1] for k, v in parse_qs(query, keep_blank_values=True).items()}
        if request.method == "POST":
            body = request.parsed()
            if not isinstance(body, dict):
                raise BadPage("a search needs a JSON object")
            self.asked.update({k: v for k, v in body.items() if k != "filter"})
            self.asked.update(body.get("filter") or {})

    def get(self, name):
        return self.asked.get(name)

    def number(self, name, default):
        try:
            return int(self.asked.get(name, default))
        except (TypeError, ValueError):
            raise BadPage("%s is no number" % name)

    def since(self, name):
        """A point in time, in seconds or in ISO 8601."""
        value = self.asked.get(name)
        if value is None:
            return None
        try:
            return float(value)
        except ValueError:
            try:
                return datetime.fromisoformat(value.replace("Z", "+00:00")).timestamp()
            except ValueError:
                raise BadPage("%s is no time" % name)

    def cursor(self):
        """(sort key of the last row seen, number of this page)"""
        if not self.asked.get("cursor"):
            return None, 1
        try:
            at, seq, page = json.loads(base64.urlsafe_b64decode(str(self.asked["cursor"])))
            return (at, seq), page
        except ValueError:
            raise BadPage("no such cursor")

    def next_path(self, **changed):
        asked = {k: v for k, v in self.asked.items() if v is not None}
        return self.path + "?" + urlencode(dict(asked, **changed))


def rank(effect):
    return (effect["created"], effect["seq"])


def cursor_after(effect, page):
    token = json.dumps([*rank(effect), page + 1])
    return base64.urlsafe_b64encode(token.encode()).decode()


class Page:
    """One page cut out of all rows."""

    def __init__(self, spec, query, rows):
        self.query, self.paging = query, spec.get("paging")
        newest_first = spec.get("order", "oldest") == "newest"
        rows = sorted(rows, key=rank, reverse=newest_first)
        most = spec.get("page_size") or max(1, len(rows))
        self.size = max(1, min(query.number("limit", most), most))
        self.number, start = 1, 0
        if self.paging in ("link", "next_url", "cursor"):
            after, self.number = query.cursor()
            if after is not None:
                rows = [r for r in rows if
                        (rank(r) < after if newest_first else rank(r) > after)]
        elif self.paging == "offset":
            start = max(0, query.number("offset", 0))
            self.number = start // self.size + 1
        elif self.paging == "page":
            self.number = max(1, query.number("page", 1))
            start = (self.number - 1) * self.size
        self.rows = rows[start:start + self.size]
        self.more = len(rows) > start + self.size

    def cursor(self):
        return cursor_after(self.rows[-1], self.number) if self.more else None


def page_number(spec, request):
    """Which page a read asks for; None if it cannot be told."""
    try:
        return Page(spec, Query(request), []).number
    except (BadPage, AttributeError):
        return None


def asked_reference(request):
    """The reference that a list or a search is filtered by, if any."""
    try:
        return Query(request).get("ref")
    except BadPage:
        return None


def list_reply(spec, request, rows, show, incomplete=None):
    """The answer to a list or a search."""
    try:
        query = Query(request)
        ref = query.get("ref")
        since, until = query.since("since"), query.since("until")
        rows = [r for r in rows if (ref is None or r["ref"] == ref) and
                (since is None or r["created"] >= since) and
                (until is None or r["created"] <= until)]
        page = Page(spec, query, rows)
    except BadPage as problem:
        return json_reply(400, error("bad_page", str(problem)))
    body, headers = {"data": [show(r) for r in page.rows]}, []
    if incomplete:
        body["incomplete"] = True
        if incomplete == "empty":
            body["data"] = []
    if spec.get("has_more"):
        body["has_more"] = page.more
    following = query.next_path(cursor=page.cursor()) if page.more else None
    if page.paging == "cursor":
        body["next_cursor"] = page.cursor()
    elif page.paging == "next_url":
        absolute = spec.get("next_url", "absolute") == "absolute"
        body["next"] = following and (request.base() if absolute else "") + following
    elif page.paging == "link":
        links = ['<%s%s>; rel="first"' % (request.base(), query.path)]
        if following:
            links.append('<%s%s>; rel="next"' % (request.base(), following))
        headers.append(("Link", ", ".join(links)))
    return Reply(200, json.dumps(body).encode(), headers)
