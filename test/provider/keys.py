"""De-duplication by an idempotency key, in the four ways that providers do it."""

import hashlib
import time
from urllib.parse import parse_qs

from replies import error, json_reply

KEY_SPEC = {"key_header", "key_body", "key_query", "key_lifetime_s", "key_replay",
            "key_mismatch"}
REPLAYS = {"stored_reply", "current_state", "error_with_id", "reattempt"}
REPLAYED = ("Idempotent-Replayed", "true")


class Entry:
    """The first request with a key, and what became of it."""

    def __init__(self, key, request, fingerprint):
        self.scoped, self.key = key, key[1]
        self.request, self.fingerprint = request, fingerprint
        self.first_at = time.time()
        self.effect_id = request.effect_id
        self.executed = self.finished = False
        self.reply = None           # as answered; None while it runs


class Keys:
    """The keys of one scenario; the caller holds the scenario's lock."""

    def __init__(self):
        self.entries = {}

    def forget(self):
        self.entries = {}

    def age(self):
        """From now on every key is past its lifetime."""
        for entry in self.entries.values():
            entry.first_at = float("-inf")

    def find(self, key, lifetime):
        entry = self.entries.get(key)
        if entry is not None and lifetime is not None and \
                time.time() >= entry.first_at + lifetime:
            del self.entries[key]
            return None
        return entry

    def reserve(self, key, request, fingerprint):
        """The request becomes the first with this key."""
        request.entry = self.entries[key] = Entry(key, request, fingerprint)

    def drop(self, request):
        """The request was not executed, and the key is as good as new."""
        entry = request.entry
        if entry is not None and self.entries.get(entry.scoped) is entry:
            del self.entries[entry.scoped]

    def answered(self, request, reply, executed, later, keeps_failures):
        """A step has decided what the first request is told."""
        entry = request.entry
        if entry.finished and not entry.executed:
            return              # refused, and that is what is remembered
        entry.reply = reply
        entry.executed = entry.executed or executed
        if entry.executed or (reply.status >= 500 and keeps_failures and not later):
            entry.finished = True
        elif not later:
            self.drop(request)

    def refused(self, request, reply):
        """A refusal that counts as the outcome of the key."""
        request.entry.reply = reply
        request.entry.finished = True

    def committed(self, request):
        entry = request.entry
        entry.executed = True
        entry.effect_id = request.effect_id
        entry.finished = entry.finished or entry.reply is not None


def sha256(data):
    return hashlib.sha256(bytes(data)).hexdigest()


def written_key(spec, request, dig):
    """The key of a request, where the specification says that it is."""
    if "key_body" in spec:
        found = dig(request.parsed(), spec["key_body"].split("."))
    elif "key_query" in spec:
        query = (request.path or "").partition("?")[2]
        found = parse_qs(query).get(spec["key_query"], [None])[0]
    else:
        found = request.header(spec.get("key_header", "Idempotency-Key"))
    return found if found is None or isinstance(found, str) else str(found)


def repeated(api, spec, entry, request):
    """The answer to a key that is known already."""
    replay = spec.get("key_replay", "stored_reply")
    if entry.fingerprint != api.fingerprint(request) and \
            spec.get("key_mismatch", "refuse") == "refuse":
        request.key_outcome = "mismatch"
        return json_reply(422, error("key_mismatch", "key used with another request",
                                     type="idempotency_error"))
    if not entry.finished:
        request.key_outcome = "in_progress"
        return json_reply(409, error("in_progress", "the first request is still running"))
    request.key_outcome = "replayed"
    if replay == "error_with_id":
        links = {"conflicting_resource_id": entry.effect_id}
        return json_reply(409, error("idempotent_creation_conflict", links=links))
    if replay == "current_state":
        return api.current(entry.effect_id, 200)
    if replay == "reattempt":
        return api.current(entry.effect_id, 201)
    return entry.reply.again(REPLAYED)
