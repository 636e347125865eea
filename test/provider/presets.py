"""Named behaviours: the first write (or first few) is made to suffer, all else is honest.

PRESETS maps a name to (what it is, scenario specification).  The leading number
is the scenario of the transport test list; case-NN is a reported incident.
"""

import copy

from api import API_SPEC
from jobs import ACCEPTS
from keys import REPLAYS
from lists import PAGINGS
from steps import UNTIL_RELEASE

STEP_KEYS = {
    "accept_then", "answer_before_read", "read_before", "read_after_s",
    "only_if_header", "commit", "commit_delay_s", "visibility_lag_s",
    "close_listener", "barrier", "hold_s", "then", "status", "reason",
    "headers", "body", "body_bytes", "body_b64", "keep_alive", "raw",
    "finally", "drain_s", "close_notify", "close_idle_after_answer",
    "stray_response_after_ms", "incomplete"}
SCENARIO_KEYS = {
    "visibility_lag_s", "write", "write_default", "write_mix", "write_limit", "read",
    "read_default", "read_mix", "seed", "own_port", "rcvbuf", "ref_key",
    "ref_header", "ref_regex", "ref_suffix", "echo_body", "imitate", "upstream"} | API_SPEC
CHOICES = {
    "accept_then": {"close", "reset"}, "commit": {"before", "after_hold", "after", "never"},
    "then": {"answer", "close", "reset", "hang", "raw"},
    "finally": {"keep", "close", "reset", "hang", "drain"}}
SCENARIO_CHOICES = {
    "accept": ACCEPTS, "job_commit": {"accept", "success"}, "key_replay": REPLAYS,
    "key_mismatch": {"refuse", "replay_anyway"}, "paging": PAGINGS,
    "next_url": {"absolute", "relative"}, "order": {"oldest", "newest"},
    "not_found": {"json", "html"}}
DELETE_KEYS = {"status", "get", "again"}

JSON = "Content-Type: application/json\r\n"
OK = "HTTP/1.1 201 Created\r\n" + JSON
CREATED = '{"id":"{{id}}","ref":"{{ref}}"}'
PAGE = "<html><body><h1>%d %s</h1></body></html>"


def first(step, **scenario):
    return dict(scenario, write=[step])


def raw(*parts, **step):
    return first(dict(step, raw=list(parts)))


def gateway(status, text, **step):
    return first(dict({"status": status, "commit_delay_s": 2,
                       "headers": {"Connection": "close", "Server": "edge"},
                       "body": PAGE % (status, text)}, **step))


PRESETS = {
    "ok": ("honest in everything", {}),
    "5-normal": ("honest; for a client that refuses at the last instant", {}),
    # 6: over before anything was read
    "6-accept-close": ("closed at accept", first({"accept_then": "close"})),
    "6-accept-reset": ("RST at accept", first({"accept_then": "reset"})),
    # 8: nobody reads
    "8-never-read": ("tiny receive buffer, never read, hangs",
                     first({"read_before": 0, "then": "hang"}, rcvbuf=4096)),
    "8-read-late": ("tiny receive buffer, reads after 3 s, commits, closes",
                    first({"read_before": 0, "read_after_s": 3,
                           "then": "close"}, rcvbuf=4096)),
    # 9: part of the request read
    "9-ten-bytes-reset": ("reads 10 bytes, RST",
                          first({"read_before": 10, "then": "reset"})),
    "9-head-reset": ("reads the head, RST",
                     first({"read_before": "head", "then": "reset"})),
    "9-head-hang": ("reads the head, hangs",
                    first({"read_before": "head", "then": "hang"})),
    "9-head-commit-hang": ("acts on the head alone, hangs",
                           first({"read_before": "head", "commit": "before",
                                  "then": "hang"})),
    # 10: all of it read
    "10-close": ("commits, closes", first({"then": "close"})),
    "10-reset": ("commits, RST", first({"then": "reset"})),
    "10-hang": ("commits, hangs", first({"then": "hang"})),
    "10-close-uncommitted": ("reads all, closes, never executes",
                             first({"then": "close", "commit": "never"})),
    "10-hang-uncommitted": ("reads all, hangs, never executes",
                            first({"then": "hang", "commit": "never"})),
    "10-answer-late": ("commits, answers after 2 s", first({"hold_s": 2})),
    "10-held": ("commits, answers on release",
                first({"hold_s": UNTIL_RELEASE})),
    "10-late-execution": ("hangs, commits 2 s after reading, client or not",
                          first({"then": "hang", "commit_delay_s": 2})),
    "10-commit-after-close": ("closes, then commits",
                              first({"then": "close", "commit": "after"})),
    # 11-14: what connection reuse invites
    "11-keepalive-close": ("answers one write, commits the next and closes",
                           {"write": [{"keep_alive": True},
                                      {"then": "close"}]}),
    "11-keepalive-reset": ("answers one write, commits the next, RST",
                           {"write": [{"keep_alive": True},
                                      {"then": "reset"}]}),
    "11-keepalive-listener-down": (
        "as 11-keepalive-close, and the port refuses connections afterwards",
        {"own_port": True,
         "write": [{"keep_alive": True},
                   {"then": "close", "close_listener": True}]}),
    "12-eight-idle": ("8 writes answered together, the next 8 committed, closed",
                      {"write": [{"keep_alive": True, "barrier": 8}] * 8 +
                       [{"then": "close"}] * 8}),
    "13-keepalive-lie": ("promises keep-alive, closes at once",
                         first({"keep_alive": True,
                                "close_idle_after_answer": True})),
    "14-stray-response": ("a second response 80 ms after the first",
                          first({"keep_alive": True,
                                 "stray_response_after_ms": 80})),
    # 15: an answer to nothing
    "15-unsolicited-201": ("201 without an id before reading; never executed",
                           first({"answer_before_read": True, "status": 201,
                                  "body": {"status": "ok"},
                                  "commit": "never"})),
    "15-unsolicited-executed": ("201 without an id before reading; executed",
                                first({"answer_before_read": True,
                                       "body": {"status": "ok"}})),
    # 16: interim answers only
    "16-100-hang": ("100 Continue, hangs",
                    raw("HTTP/1.1 100 Continue\r\n\r\n", **{"finally": "hang"})),
    "16-100-close": ("100 Continue, closes",
                     raw("HTTP/1.1 100 Continue\r\n\r\n")),
    "16-103-close": ("103 Early Hints, closes",
                     raw("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")),
    "16-endless-1xx": ("102 Processing for ever",
                       raw({"send": "HTTP/1.1 102 Processing\r\n\r\n",
                            "times": None})),
    # 17: not quite HTTP
    "17-htt-close": ("HTT, closes", raw("HTT")),
    "17-garbage": ("bytes that are no HTTP",
                   raw("\u0000\u00ff\u0016\u0003garbage\n\n")),
    "17-http09": ("a body without a head", raw(CREATED)),
    "17-http5": ("HTTP/5.0 201",
                 raw("HTTP/5.0 201 Created\r\nContent-Length: 2\r\n\r\nok")),
    "17-status-9999": ("status 9999",
                       raw("HTTP/1.1 9999 Odd\r\nContent-Length: 2\r\n\r\nok")),
    "17-final-101": ("101 Switching Protocols, closes",
                     raw("HTTP/1.1 101 Switching Protocols\r\n"
                         "Upgrade: x\r\nConnection: Upgrade\r\n\r\n")),
    # 18: head cut
    "18-cut-head-close": ("half a header line, closes",
                          raw("HTTP/1.1 200 OK\r\nContent-Le")),
    "18-cut-head-reset": ("half a header line, RST",
                          raw("HTTP/1.1 200 OK\r\nContent-Le",
                              {"pause_s": 0.2}, **{"finally": "reset"})),
    # 20: length by close
    "20-no-length-close": ("no length, body cut by close",
                           raw(OK + "\r\n" + CREATED[:7])),
    "20-no-length-abrupt": ("the same; on TLS without close_notify",
                            raw(OK + "\r\n" + CREATED[:7],
                                close_notify=False)),
    "20-no-length-whole": ("no length, whole body, closed",
                           raw(OK + "\r\n" + CREATED)),
    # 21: framing that contradicts itself
    "21-negative-length": ("Content-Length: -5",
                           raw(OK + "Content-Length: -5\r\n\r\n" + CREATED)),
    "21-huge-length": ("Content-Length: 2^64 + 1, closes",
                       raw(OK + "Content-Length: 18446744073709551617\r\n\r\n"
                           + CREATED)),
    "21-duplicate-length": ("two different lengths",
                            raw(OK + "Content-Length: 2\r\n"
                                "Content-Length: 40\r\n\r\n" + CREATED)),
    "21-length-and-chunked": ("a length and chunked",
                              raw(OK + "Content-Length: 3\r\n"
                                  "Transfer-Encoding: chunked\r\n\r\n"
                                  "2\r\nok\r\n0\r\n\r\n")),
    "21-nul-in-header": ("a NUL inside a header line",
                         raw(OK + "X-Odd: a\u0000b\r\n"
                             "Content-Length: 2\r\n\r\nok")),
    "21-204-with-body": ("204 followed by a body",
                         raw("HTTP/1.1 204 No Content\r\n"
                             "Content-Length: 5\r\n\r\nhello")),
    # 22: heads without measure
    "22-megabyte-header": ("one header line of 1 MB",
                           raw(OK + "X-Long: ", {"send": "a", "times": 1000000},
                               "\r\nContent-Length: 2\r\n\r\nok")),
    "22-endless-headers": ("headers for ever",
                           raw(OK, {"send": "X-More: 0123456789\r\n",
                                    "times": None})),
    "22-many-headers": ("100 000 small headers",
                        raw(OK, {"send": "X-N: 1\r\n", "times": 100000},
                            "Content-Length: 2\r\n\r\nok")),
    # 23: bodies without measure
    "23-endless-body": ("a body for ever",
                        raw(OK + "\r\n", {"send": "0123456789abcdef",
                                          "times": None})),
    "23-large-body": ("Content-Length of 10 MB, sent in full",
                      raw(OK + "Content-Length: 10485760\r\n\r\n",
                          {"send": "x" * 1024, "times": 10240})),
    "23-gzip-bomb": ("50 MB of zeros, gzipped, asked for or not",
                     raw(OK + "Content-Encoding: gzip\r\n\r\n",
                         {"gzip_zeros": 50 * 1024 * 1024})),
    # 24: drop by drop
    "24-slow-body": ("body at 2 bytes/s",
                     raw(OK + "Content-Length: 200\r\n\r\n",
                         {"send": "x" * 200, "bytes_per_s": 2})),
    "24-slow-headers": ("head at 2 bytes/s",
                        raw({"send": OK + "Content-Length: 2\r\n\r\nok",
                             "bytes_per_s": 2})),
    # 25, 26
    "25-417-always": ("417", first({"status": 417})),
    "25-417-on-expect": ("417 if an Expect header is there, else honest",
                         {"write_default": {"only_if_header": "Expect",
                                            "read_before": "head",
                                            "status": 417}}),
    "26-407": ("407 with a Basic challenge",
               first({"status": 407, "headers":
                      {"Proxy-Authenticate": 'Basic realm="p"'}})),
    # 29: the answer overtakes the request
    "29-early-403-close": ("403 after the head, then no more sending",
                           first({"read_before": "head", "status": 403,
                                  "headers": {"Connection": "close"}},
                                 rcvbuf=4096)),
    "29-early-413-close": ("413 after the head, then no more sending",
                           first({"read_before": "head", "status": 413,
                                  "headers": {"Connection": "close"}},
                                 rcvbuf=4096)),
    "29-early-403-reset": ("403 after the head, then RST",
                           first({"read_before": "head", "status": 403,
                                  "finally": "reset"}, rcvbuf=4096)),
    "29-early-200-stall": ("200 after the head, then reads no more",
                           first({"read_before": "head", "status": 200,
                                  "commit": "never", "finally": "hang"},
                                 rcvbuf=4096)),
    # reported incidents
    "case-01-slow-success": ("commits and answers after 3 s",
                             first({"hold_s": 3, "commit": "after_hold"})),
    "case-02-reply-lost": ("commits 2 s after reading, never answers",
                           first({"then": "hang", "commit_delay_s": 2})),
    "case-03-silent-resend": ("see 11-keepalive-reset",
                              {"write": [{"keep_alive": True},
                                         {"then": "reset"}]}),
    "case-05-500-json": ("500 with JSON at once, commits after 2 s",
                         gateway(500, "", body={"error": "internal"})),
    "case-13-lagging-index": ("commits, never answers, visible after 2 s",
                              first({"then": "hang"}, visibility_lag_s=2)),
    "case-29-held-reply": ("commits, answers after 3 s: time for a kill",
                           first({"hold_s": 3})),
    "case-29-half-reply": ("half the answer, the rest after 3 s",
                           raw(OK + "Content-Length: 40\r\n\r\n" + "{" + " " * 19,
                               {"pause_s": 3}, " " * 19 + "}")),
    "case-30-one-endless-of-20": ("write 13 gets an endless body",
                                  {"write": [{}] * 12 + [
                                      {"raw": [OK + "\r\n",
                                               {"send": "0123456789abcdef",
                                                "times": None}]}]}),
    "case-32-held-reply": ("commits, answers on release: time for a SIGSTOP",
                           first({"hold_s": UNTIL_RELEASE})),
}


def _families():
    """The presets that differ in one word only."""
    short = OK + "Content-Length: 100\r\n\r\n" + '{"id":"abc'
    chunked = OK + "Transfer-Encoding: chunked\r\n\r\n"
    for end in ("close", "reset", "hang"):
        yield ("19-short-body-" + end, "Content-Length 100, 10 bytes, then " + end,
               raw(short, {"pause_s": 0.2}, **{"finally": end}))
    yield ("19-bad-chunk", "a chunk size that is no number",
           raw(chunked + "5\r\nhello\r\nZZ\r\n"))
    yield ("19-no-last-chunk", "the last chunk missing, closes",
           raw(chunked + "5\r\nhello\r\n"))
    challenges = {"basic": 'Basic realm="p"', "negotiate": "Negotiate",
                  "ntlm": "NTLM",
                  "digest": 'Digest realm="p", nonce="abc", qop="auth"'}
    for kind, value in challenges.items():
        yield ("26-401-" + kind, "401 with a challenge",
               first({"status": 401, "headers": {"WWW-Authenticate": value}}))
    targets = {"self": "{{self}}", "other": "{{other}}",
               "file": "file:///etc/passwd"}
    for status in (301, 302, 303, 307, 308):
        for where, url in targets.items():
            yield ("27-%d-%s" % (status, where), "redirect to " + where,
                   first({"status": status, "headers": {"Location": url}}))
    for status in (408, 421, 425, 429, 500, 502, 503, 504):
        yield ("28-%d" % status, "the status, Retry-After: 0, closed",
               first({"status": status, "keep_alive": False, "headers":
                      {"Retry-After": "0"}}))
    for status, text in ((502, "Bad Gateway"), (503, "Service Unavailable"),
                         (504, "Gateway Time-out"), (524, "Timeout")):
        yield ("case-05-%d-html" % status,
               "a gateway's page at once, commits after 2 s",
               gateway(status, text))


PRESETS.update((name, (what, spec)) for name, what, spec in _families())


def preset_step(name):
    """The step that makes a preset what it is, for use inside a script."""
    spec = _preset(name)
    return copy.deepcopy((spec.get("write") or [spec.get("write_default", {})])[-1])


def _preset(name):
    if name not in PRESETS:
        raise ValueError("no preset named %r" % name)
    return PRESETS[name][1]


def expand(spec):
    """Resolve presets in a scenario specification and refuse unknown keys."""
    spec = copy.deepcopy(spec)
    override, always = spec.pop("override", {}), spec.pop("always", False)
    if "preset" in spec:
        base = copy.deepcopy(_preset(spec.pop("preset")))
        base.update(spec)
        spec = base
    for kind in ("write", "read"):
        if kind in spec:
            spec[kind] = [_step(s, override) for s in spec[kind]]
        if kind + "_default" in spec:
            spec[kind + "_default"] = _step(spec[kind + "_default"], override)
        if kind + "_mix" in spec:
            spec[kind + "_mix"] = [[w, _step(s, {})]
                                   for w, s in spec[kind + "_mix"]]
    if always and spec.get("write"):
        spec["write_default"] = spec["write"][-1]
    if "write_limit" in spec:
        limit = spec["write_limit"]
        if set(limit) - {"per_s", "step"}:
            raise ValueError("write_limit knows per_s and step")
        limit["step"] = _step(limit.get("step", {"status": 429}), override)
    for _, step in spec.get("write_mix") or []:
        if "accept_then" in step or "answer_before_read" in step:
            raise ValueError("a mix is drawn when a request is read: "
                             "too late for accept_then, answer_before_read")
    unknown = set(spec) - SCENARIO_KEYS
    if unknown:
        raise ValueError("unknown scenario keys: %s" % sorted(unknown))
    if "page_faults" in spec:
        spec["page_faults"] = [_fault(dict(f)) for f in spec["page_faults"]]
    if set(spec.get("delete", {})) - DELETE_KEYS:
        raise ValueError("delete knows %s" % sorted(DELETE_KEYS))
    check_choices(spec, SCENARIO_CHOICES)
    return spec


def _fault(fault):
    """A page that fails: its number, how often, and the step it gets."""
    return {"page": fault.pop("page"), "times": fault.pop("times", 1),
            "step": _step(fault, {})}


def check_choices(spec, choices):
    for key, allowed in choices.items():
        if key in spec and spec[key] not in allowed:
            raise ValueError("%s must be one of %s" % (key, sorted(allowed)))


def _step(step, override):
    step = dict(step)
    if "preset" in step:
        step = dict(preset_step(step.pop("preset")), **step)
    if step:
        step.update(override)
    unknown = set(step) - STEP_KEYS
    if unknown:
        raise ValueError("unknown step keys: %s" % sorted(unknown))
    check_choices(step, CHOICES)
    return step


def needs_own_port(spec):
    """Does anything here happen before a shared port could know the scenario?"""
    if spec.get("own_port") or spec.get("rcvbuf"):
        return True
    steps = list(spec.get("write") or []) + [spec.get("write_default") or {}]
    steps += [step for _, step in spec.get("write_mix") or []]
    return any("accept_then" in s or s.get("answer_before_read") or
               s.get("close_listener") or isinstance(s.get("read_before"), int)
               for s in steps)
