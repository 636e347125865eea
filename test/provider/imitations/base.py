"""What imitations have in common: routes, objects, pages, keys.

An imitation plays one real API as its documentation describes it.  The scenario
goes on to count effects and its steps, lags and keys go on to work on top; the
scenario keys of lists, jobs and deletes belong to our own API and mean nothing
here, but for preload, page_faults, shift_per_page, search_lag_s, key_lifetime_s
and key_mismatch.
"""

import json
import re
import secrets
import string
from urllib.parse import parse_qs, urlencode

from api import Api, dig
from replies import json_reply

ALNUM = string.ascii_letters + string.digits


def token(count, alphabet=ALNUM):
    return "".join(secrets.choice(alphabet) for _ in range(count))


class Imitation(Api):
    """One real API; the class attributes are what its documentation promises."""

    ROUTES = []                 # (method, pattern of the path, method of ours)
    PREFIX = ""                 # a pattern of what may precede the paths
    REF_KEY = "ref"             # where the profile writes our reference
    KEY_HEADER = None           # where a key is expected
    KEY_LIFETIME_S = None
    KEEPS_FAILURES = False      # a 5xx is the outcome of a key
    MISMATCH = "refuse"

    # -- requests ----------------------------------------------------------

    def parts(self, request):
        """(path below the scenario, {query})"""
        path, _, query = (request.path or "").partition("?")
        path = re.sub(r"^/s/[^/]*", "", path)
        path = re.sub("^" + self.PREFIX, "", path) if self.PREFIX else path
        return path, {k: v[-1] for k, v in parse_qs(query, keep_blank_values=True).items()}

    def route(self, request):
        """(method of ours, groups of the pattern), or (None, None)"""
        path = self.parts(request)[0]
        for method, pattern, name in self.ROUTES:
            found = re.fullmatch(pattern, path)
            if found and method == request.method:
                return name, found.groups()
        return None, None

    def body(self, request):
        """The body as the API understands it."""
        return request.parsed()

    def reference(self, request):
        ref = dig(self.body(request), self.spec.get("ref_key", self.REF_KEY).split("."))
        return ref if ref is None or isinstance(ref, str) else json.dumps(ref)

    def is_natural(self, request):
        return False

    def collection(self, request):
        """Set by the method that builds the object."""
        return request.object["collection"] if request.object else "other"

    # -- keys --------------------------------------------------------------

    def key(self, request):
        return request.header(self.KEY_HEADER or "Idempotency-Key")

    def dedupes(self):
        return self.KEY_HEADER is not None

    def key_lifetime(self):
        return self.spec.get("key_lifetime_s", self.KEY_LIFETIME_S)

    def keeps_failures(self):
        return self.KEEPS_FAILURES

    def same_request(self, entry, request):
        if self.spec.get("key_mismatch", self.MISMATCH) == "replay_anyway":
            return True
        return entry.fingerprint == self.fingerprint(request)

    def repeat(self, entry, request):
        if not self.same_request(entry, request):
            request.key_outcome = "mismatch"
            return self.mismatched(request)
        if not entry.finished:
            request.key_outcome = "in_progress"
            return self.in_progress(request)
        request.key_outcome = "replayed"
        return self.replayed(entry, request)

    def mismatched(self, request):
        raise NotImplementedError

    def in_progress(self, request):
        raise NotImplementedError

    def replayed(self, entry, request):
        raise NotImplementedError

    # -- writes ------------------------------------------------------------

    def check(self, request):
        """A method check_NAME(request, groups) refuses by a reply."""
        name, groups = self.route(request)
        if name is None:
            return self.no_route(request)
        check = getattr(self, "check_" + name, None)
        return check(request, *groups) if check else None

    def build(self, request):
        """A method make_NAME(request, groups) makes the object and the reply."""
        name, groups = self.route(request)
        if name is None:
            return self.no_route(request)
        return getattr(self, "make_" + name)(request, *groups)

    def defers(self, request):
        return False

    def committed(self, effect, request):
        if request.change:
            request.change(effect)

    def record(self, request, collection, ident, shown, change=None):
        """What a write makes: shown is the object as the API shows it; change is
        called with the effect and does what else there is to do."""
        request.effect_id, request.change = ident, change
        request.object = {"collection": collection, "shown": shown}

    # -- reads -------------------------------------------------------------

    def read(self, request, step):
        reply = self.answer(request, step)
        if request.page_number is not None:
            self.scenario.shift(self.spec.get("shift_per_page", 0))
        return reply

    def answer(self, request, step):
        """A method read_NAME(request, step, groups)."""
        name, groups = self.route(request)
        method = getattr(self, "read_" + name, None) if name else None
        return method(request, step, *groups) if method else self.no_route(request)

    def page(self, request):
        self.answer(request, {})
        return request.page_number

    def objects(self, collection, newest_first=True):
        """Effects of a collection as a reader sees them, deleted ones too."""
        found = [e for e in self.scenario.visible(collection, deleted=True) if e["object"]]
        return sorted(found, key=lambda e: (e["created"], e["seq"]), reverse=newest_first)

    def one(self, collection, ident, written=False):
        """The object with this id; written: as the write side knows it."""
        if ident is None:
            return None
        pool = self.scenario.known(ident) if written else \
            self.scenario.visible(collection, ident, deleted=True)
        for effect in pool:
            if effect["resource"] == collection and effect["id"] == ident and effect["object"]:
                return effect
        return None

    def shown(self, effect):
        return effect["object"]["shown"]

    def cut(self, request, rows, start, size):
        """The rows of a page; the request remembers which one it is."""
        request.page_number = start // size + 1
        return rows[start:start + size]

    def number(self, query, name, default, most):
        try:
            return max(1, min(int(query.get(name, default)), most))
        except ValueError:
            return default

    def url(self, request, **query):
        """The request's own address with another query."""
        path = request.path.partition("?")[0]
        return "%s%s?%s" % (request.base(), path, urlencode(query))

    def foreign(self, item, serial, now):
        """An object of somebody else's: theirs() makes it from the description."""
        created = now - item.pop("age_s")
        gone = item.pop("deleted", False)
        collection, ident, shown = self.theirs(item, serial, created)
        made = {"id": ident, "ref": item.pop("ref", "foreign-%d" % serial), "body": None,
                "resource": collection, "method": "POST", "natural": False,
                "visible_at": created, "created": created, "seq": serial,
                "object": {"collection": collection, "shown": shown}}
        if gone:
            made["gone_at"] = created
        return made

    def theirs(self, item, serial, created):
        raise ValueError("nothing can be preloaded here")

    # -- errors ------------------------------------------------------------

    def fail(self, status, *facts, headers=()):
        """A refusal in the words of the API."""
        return json_reply(status, self.error(status, *facts), headers)

    def error(self, status, *facts):
        raise NotImplementedError

    def error_body(self, status):
        return self.error(status)

    def no_route(self, request):
        return self.fail(404)

