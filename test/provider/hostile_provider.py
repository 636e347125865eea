#!/usr/bin/env python3
"""A scriptable hostile HTTP/1.1 provider that keeps a ledger of effects.

    python3 hostile_provider.py [--log FILE]

Listens on loopback only, on ports from 20000 to 31999, and prints one line:
    {"control": PORT, "http": PORT, "https": PORT, "ca_file": PATH, "pid": PID}
It ends when its standard input closes, or on SIGTERM, and takes its throwaway
certificates with it.

The API it plays (X is any resource name, "effects" by convention)
    POST PUT PATCH DELETE /s/SCENARIO/X      one effect, 201 {"id":..,"ref":..}
    PUT DELETE ...        /s/SCENARIO/X/REF  likewise, REF is the natural id
    GET /s/SCENARIO/X?ref=REF                {"data":[{"id","ref","body","created"
                                             (unix),"created_at"(ISO)}]}
    GET /s/SCENARIO/X                        all of them; &since= and &until= (unix
                                             or ISO) and &limit= narrow both
    POST /s/SCENARIO/X/search                the same, a read: {"filter":{"ref":..},
                                             "limit":..,"cursor":..} in the body
    GET /s/SCENARIO/X/REF-or-id              that object, or 404
    GET /s/SCENARIO/jobs/ID                  see accept
The ledger counts executions: two PUTs of one REF are two effects.  To readers
a DELETE of a natural id hides what was there before; any other DELETE is an
effect like the rest.  A path without /s/SCENARIO belongs to "default".  On a
scenario's own port every path belongs to it.  An undefined scenario is honest.

Control calls (plain HTTP, JSON)
    PUT  /scenario/NAME     define; returns {"http":PORT,"https":PORT,"own_port":..}.
                            USE THESE PORTS.  Step counters restart, ledger stays.
    GET  /ledger/NAME       {"requests":[..],"effects":[..],"deliveries":n,
                            "complete_writes":n,"reads":n,"effect_count":n,
                            "request_count":n,"refs":n,"duplicates":{ref:n},
                            "connections":n}; ?summary=1 leaves out the lists
                            and calls the counts "effects" and "requests"
    GET  /ledger            all of them by name
    GET  /wait/NAME?writes=N&deliveries=N&effects=N&reads=N&requests=N&timeout=S
                            long poll; the summary plus "reached"
    POST /release/NAME      end all holds and hangs going on now
    POST /reset/NAME        forget the ledger, keys and jobs, restart the steps,
                            preload again, release
    POST /preload/NAME      {"objects": n or a list}: more of them, made just now
    POST /expire/NAME       every key known now is past its lifetime
    POST /job/NAME          {"state":S,"id":job or reference, default all}: from
                            now on in this state; returns the jobs
    POST /close/NAME, /open/NAME    the scenario's own ports refuse, listen again
    POST /listener          {"kind":KIND,"scenario":NAME?} -> {"port":PORT,..}
    GET  /listener/PORT     {"accepted","open","handshakes","errors","bytes_read"}
    GET  /presets, /stats
A request in the ledger: n kind method path http_version headers([[name,value]])
ref body body_bytes read_bytes head_complete complete connection_id port tls
alpn at read_at outcome effect_id answer_status body_sha256 key key_outcome (new
replayed mismatch in_progress; none if keys mean nothing).  "deliveries" are writes whose whole head was
read, "complete_writes" those read to their end.  Unread requests have no method.

Scenario keys
    visibility_lag_s    effects show in reads so long after their commit
    write, read         steps of the first, second, .. write (read)
    write_default, read_default     the step of all others; {} is honest
    write_mix, read_mix [[weight, step], ..] drawn instead of the default, by seed
    write_limit         {"per_s":n, "step":{..}}: so many writes in each second get
                        what they would, the others this step (429 by default)
    preset, override, always        take a preset; keys merged into its steps;
                        its last step also for all later writes
    own_port            ports for this scenario alone (implied where needed)
    rcvbuf              receive buffer of its own ports, in bytes; segments are
                        small then, so that the client's kernel takes little too
    ref_key             where the reference is in a JSON body ("a.b"; default ref)
    ref_header, ref_regex           or in this header, or group 1 in the body
    ref_suffix          cut off a natural id (".ics")
    echo_body           GET of one object answers the body it was written with
    upstream            http URL of a real server: requests are passed on to it,
                        "commit" says when; an effect is what it answers below
                        300.  ref_suffix and ref_key tell the reference
    imitate             play a real API instead: the name of a module in
                        imitations/, whose text is its manual
  Lists
    page_size           most rows of a page.  Without paging the rest is withheld
                        and nothing tells
    paging              link    Link: <URL>; rel="next" (and a rel="first")
                        next_url    "next" in the body, null at the end
                        cursor  "next_cursor" in the body, ?cursor= (in the body
                                of a search)
                        offset  ?offset=&limit=     page    ?page=&limit=
    next_url            absolute (default) | relative
    has_more            true: "has_more" in the body
    order               oldest (default) | newest, first
    search_lag_s        searches show effects so much later than lists do
    preload             objects of other people: so many, or a list of
                        {"id","ref","body","resource","age_s","deleted"}; further
                        keys are members of the object, as {"pull_request":{}}
    page_faults         [{"page":n,"times":n or null for ever, default 1, and a
                        step}]: what reading page n suffers
    shift_per_page      others make so many objects after each page that was
                        read; negative: their newest ones vanish
  Keys: any of these makes the provider remove duplicates
    key_header          default Idempotency-Key
    key_body key_query  or here: "a.b" in the JSON body, a query parameter
    key_lifetime_s      from the first use; later the key is a new one.  Default:
                        for ever
    key_replay          what a repetition is told:
                        stored_reply    (default) the same, also a 5xx, with
                                        Idempotent-Replayed: true
                        current_state   200 and the object
                        error_with_id   409, error.links.conflicting_resource_id
                        reattempt       201 and the object; what had failed is
                                        done anew
    key_mismatch        refuse (default): 422, code key_mismatch, unless method,
                        path and body are the same bytes | replay_anyway
    While the first request has no answer yet: 409, code in_progress.  What a
    step refuses below 500, or never executes, leaves the key unused.
  Accepted now, done later
    accept              location    202 with Location, no body | body    202 with
                        {"id","ref","status","status_url"}
    job_states          what one poll after the other sees, the last for ever;
                        default ["pending","succeeded"].  The poll answers
                        {"id","status","result":{"id","ref"} once it is done}
    job_success         the state that means it is done; default succeeded
    job_commit          success (default): the effect comes with that state |
                        accept: at once
  Deletes
    delete              {"status":204,"get":404|410|"cancelled","again":404|410}
                        (404 by default): a DELETE of what is there is an effect,
                        by reference or id, also of preloaded objects; of what is
                        gone, "again"; of what never was, 404.  cancelled: GET
                        still answers 200, "status":"cancelled"; lists do not
                        show it
    not_found           json (default) | html: a page in place of each 404 or 410

Step keys; a step may also be {"preset":NAME, ...}
    accept_then         close|reset at accept.  Takes the next connection,
                        whatever its method
    answer_before_read  the answer is sent at accept, then the request is read
    read_before         read so many bytes only, or "head", before going on.
                        On TLS fewer than 8 bytes: whatever the method
    read_after_s        wait (or release), then read all the rest after all
    only_if_header      without this request header the step is honest
    commit              before  as soon as it is read
                        after_hold  after hold_s, before the answer
                        after   after the answer or the misbehaviour
                        never
                        default: before, but never for a status >= 300 and for
                        a request not read to its end
    commit_delay_s      commit so long after the request was read, even with the
                        client gone (executes whatever the status says)
    visibility_lag_s    for the effect of this write only
    incomplete          true: a list says "incomplete": true; "empty": and shows
                        nothing
    close_listener      the scenario's own ports refuse from now on
    barrier             wait until so many writes have arrived (10 s at most)
    hold_s              wait before the answer; -1 until release
    then                answer (default) | close | reset | hang | raw.  hang ends
                        when the client closes, or on release
    status, reason, headers({} or [[name,value]]), body (object, text), body_bytes,
    body_b64            of the answer; default 201 {"id","ref"}, reads the truth
    keep_alive          true: promise and keep, whatever the client asked;
                        false: Connection: close; default: as the client asked
    close_idle_after_answer     true: close at once; number: after so many ms
    stray_response_after_ms     a second response (id ef_stray) on the connection
    raw                 text (latin-1) or a list of text | {"send":text,"times":n
                        or null for ever,"bytes_per_s":n} | {"b64":..} |
                        {"gzip_zeros":n} | {"pause_s":n or -1}
    finally             keep|close|reset|hang|drain afterwards.  Default: close
                        after raw, drain (half-close, swallow the rest for
                        drain_s) after answering a request not read to its end
    close_notify        false: cut TLS without it
Placeholders in body, headers and raw: {{id}} {{ref}} {{scenario}} {{self}}
(this scenario's /effects) {{other}} (another host name, scenario NAME-target).

Presets: only the first write (or as stated) suffers, all else is honest
    ok 5-normal                         honest
    6-accept-close 6-accept-reset
    8-never-read 8-read-late            tiny receive buffer
    9-ten-bytes-reset 9-head-reset 9-head-hang 9-head-commit-hang
    10-close 10-reset 10-hang           committed
    10-close-uncommitted 10-hang-uncommitted
    10-answer-late 10-held 10-late-execution 10-commit-after-close
    11-keepalive-close 11-keepalive-reset 11-keepalive-listener-down
                                        the second write suffers
    12-eight-idle                       8 answered together, the next 8 closed
    13-keepalive-lie
    14-stray-response                   after the first write's answer
    15-unsolicited-201 15-unsolicited-executed
    16-100-hang 16-100-close 16-103-close 16-endless-1xx
    17-htt-close 17-garbage 17-http09 17-http5 17-status-9999 17-final-101
    18-cut-head-close 18-cut-head-reset
    19-short-body-{close,reset,hang} 19-bad-chunk 19-no-last-chunk
    20-no-length-close 20-no-length-abrupt 20-no-length-whole
    21-negative-length 21-huge-length 21-duplicate-length 21-length-and-chunked
    21-nul-in-header 21-204-with-body
    22-megabyte-header 22-endless-headers 22-many-headers
    23-endless-body 23-large-body 23-gzip-bomb
    24-slow-body 24-slow-headers
    25-417-always 25-417-on-expect      the latter on every write
    26-401-{basic,digest,ntlm,negotiate} 26-407
    27-{301,302,303,307,308}-{self,other,file}
    28-{408,421,425,429,500,502,503,504}
    29-early-403-close 29-early-413-close 29-early-403-reset 29-early-200-stall
    case-01-slow-success case-02-reply-lost case-03-silent-resend
    case-05-{502,503,504,524}-html case-05-500-json     commit 2 s later
    case-13-lagging-index
    case-29-held-reply case-29-half-reply
    case-30-one-endless-of-20           write 13
    case-32-held-reply                  until release
Not a server's behaviour and so not here: 1 (use a name under .invalid), 4.
16 to 24 commit the write before they misbehave.

Listener kinds (2, 3, 6, 7, 30)
    closed-port full-backlog accept-close accept-reset accept-hang http
    tls-plaintext tls-hang tls-close tls-reset-in-handshake
    tls-good tls-untrusted-ca tls-wrong-name tls-expired
    tls-client-cert-12 tls-client-cert-13 tls-close-after-handshake
    tls-h2-offered tls-h2-only
"""

import argparse
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time

sys.dont_write_bytecode = True

from certificates import Certificates  # noqa: E402
from control import Control  # noqa: E402
from ledger import Registry  # noqa: E402
from listeners import Listener, Listeners  # noqa: E402


class Provider:
    """The parts, and the shared ports they are reached by."""

    def __init__(self, directory, log_file=None):
        self.log_file = log_file
        self.log_lock = threading.Lock()
        self.registry = Registry()
        certificates = Certificates(directory)
        self.ca_file = certificates.ca_file
        self.listeners = Listeners(self, certificates)
        self.http = self.listeners.plain().port
        self.https = self.listeners.tls().port
        self.control = Listener("control", Control(self).handle).port

    def log(self, event, **facts):
        if self.log_file is None:
            return
        line = json.dumps(dict(facts, event=event, at=time.time()))
        with self.log_lock:
            self.log_file.write(line + "\n")
            self.log_file.flush()


def main():
    parser = argparse.ArgumentParser(description="A hostile HTTP provider.")
    parser.add_argument("--log", help="append one JSON line per request here")
    options = parser.parse_args()

    # Thousands of connections: a thread each, so small stacks and many files.
    threading.stack_size(256 * 1024)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    wanted = 65536 if hard == resource.RLIM_INFINITY else min(hard, 65536)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)

    directory = tempfile.mkdtemp(prefix="hostile-provider-")
    done = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: done.set())
    signal.signal(signal.SIGINT, lambda *_: done.set())
    try:
        log_file = open(options.log, "a") if options.log else None
        provider = Provider(directory, log_file)
        print(json.dumps({"control": provider.control, "http": provider.http,
                          "https": provider.https, "pid": os.getpid(),
                          "ca_file": provider.ca_file}), flush=True)

        def until_stdin_closes():
            while os.read(0, 4096):
                pass
            done.set()
        threading.Thread(target=until_stdin_closes, daemon=True).start()
        done.wait()
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    # Threads hang on purpose here; nothing is left for them to tidy up.
    os._exit(0)


if __name__ == "__main__":
    main()
