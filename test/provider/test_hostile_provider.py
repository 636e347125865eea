#!/usr/bin/env python3
"""The provider must itself be trustworthy: exact bytes, exact counts.

    python3 test/provider/test_hostile_provider.py
"""

import http.client
import json
import os
import re
import socket
import ssl
import sys
import threading
import time
import unittest

sys.dont_write_bytecode = True
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import hostile_provider  # noqa: E402
from presets import PRESETS, SCENARIO_KEYS, STEP_KEYS  # noqa: E402
from listeners import KINDS  # noqa: E402
from raw_client import NAMES, Client, ProviderTest, read, write  # noqa: E402


class Honest(ProviderTest):

    def test_write_read_and_reuse(self):
        self.define()
        client = self.client()
        status, _, body = client.send(write("r1", self.name)).response()
        self.assertEqual(status, 201)
        made = json.loads(body)
        self.assertEqual(made["ref"], "r1")
        _, _, body = client.send(read("r1", self.name)).response()
        self.assertEqual([e["id"] for e in json.loads(body)["data"]], [made["id"]])
        _, _, body = client.send(read("r2", self.name)).response()
        self.assertEqual(json.loads(body), {"data": []})
        self.client().send(write("r2", self.name)).response()
        ledger = self.counts(2, 2, 2)
        self.assertEqual(ledger["reads"], 2)
        links = [r["connection_id"] for r in ledger["requests"]]
        self.assertEqual(len(set(links[:3])), 1)
        self.assertNotEqual(links[3], links[0])
        first = ledger["requests"][0]
        self.assertEqual(first["body"], '{"ref": "r1"}')
        self.assertEqual(first["read_bytes"], len(write("r1", self.name)))
        self.assertIn(["Host", "x"], first["headers"])
        self.assertEqual(first["http_version"], "HTTP/1.1")
        self.assertEqual(ledger["effects"][0]["id"], made["id"])

    def test_pipelined_requests_count(self):
        self.define()
        client = self.client().send(write("a", self.name) * 3)
        self.assertTrue(self.wait("effects=3")["reached"])
        self.assertEqual(self.counts(3, 3)["duplicates"], {"a": 3})
        client.close()

    def test_natural_id_and_delete(self):
        self.define(ref_suffix=".ics", echo_body=True)
        path = "/s/%s/cal/e1.ics" % self.name
        link = http.client.HTTPConnection("127.0.0.1", self.ports["http"])

        def ask(method, body=None):
            link.request(method, path, body, {"Content-Type": "text/calendar"})
            answer = link.getresponse()
            return answer.status, answer.read()
        self.assertEqual(ask("GET")[0], 404)
        self.assertEqual(ask("PUT", "UID:e1\r\n")[0], 201)
        self.assertEqual(ask("GET"), (200, b"UID:e1\r\n"))
        self.assertEqual(ask("DELETE")[0], 201)
        self.assertEqual(ask("GET")[0], 404)
        link.close()
        self.assertEqual([e["ref"] for e in self.ledger()["effects"]],
                         ["e1", "e1"])

    def test_visibility_lag(self):
        self.define(visibility_lag_s=0.5)
        self.client().send(write("r", self.name)).response()
        client = self.client()
        self.assertEqual(json.loads(client.send(
            read("r", self.name)).response()[2])["data"], [])
        deadline = time.time() + 5
        found = []
        while not found and time.time() < deadline:
            found = json.loads(client.send(
                read("r", self.name)).response()[2])["data"]
        effect = self.ledger()["effects"][0]
        self.assertEqual(found[0]["id"], effect["id"])
        self.assertGreaterEqual(time.time(), effect["visible_at"])

    def test_chunked_request(self):
        self.define()
        self.client().send(
            b"POST /s/%s/effects HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"8\r\n{\"ref\": \r\n4\r\n\"c\"}\r\n0\r\n\r\n"
            % self.name.encode()).response()
        self.assertEqual(self.counts(1, 1, 1)["effects"][0]["ref"], "c")

    def test_cut_requests_are_not_complete(self):
        self.define()
        whole = write("r", self.name)
        self.client().send(whole[:-5]).close()
        self.client().send(whole[:20]).close()
        self.client().send(whole).response()
        self.assertTrue(self.wait("writes=1&deliveries=2")["reached"])
        self.counts(2, 1, 1)

    def test_every_preset_can_be_defined(self):
        for preset in self.call("GET", "/presets"):
            self.define(preset=preset)

    def test_script_errors_are_refused(self):
        for bad in ({"wrte": []}, {"write": [{"thn": "close"}]},
                    {"write": [{"then": "clsoe"}]}, {"preset": "none"}):
            self.assertEqual(self.call("PUT", "/scenario/x", bad)[0], 400, bad)

    def test_write_limit(self):
        self.define(write_limit={"per_s": 3, "step": {"status": 429, "headers": {"Retry-After": "1"}}})
        client = self.client()
        statuses = [client.send(write("l%d" % n, self.name)).response()[0] for n in range(40)]
        self.assertEqual(statuses[:3], [201] * 3)
        self.assertEqual(set(statuses), {201, 429})
        self.counts(40, statuses.count(201))

    def test_mix_reset_and_scripted_read(self):
        self.define(write_mix=[[1, {}], [1, {"preset": "10-close"}]], seed=7,
                    read=[{"status": 503}, {"body": {"data": []}}, {}])
        answered = 0
        for n in range(20):
            try:
                self.client().send(write("m%d" % n, self.name)).response()
                answered += 1
            except http.client.RemoteDisconnected:
                pass
        self.assertTrue(0 < answered < 20)
        self.counts(20, 20)
        client = self.client()
        answers = [client.send(read("m1", self.name)).response()
                   for _ in range(3)]
        self.assertEqual([a[0] for a in answers], [503, 200, 200])
        self.assertEqual([b'"m1"' in a[2] for a in answers],
                         [False, False, True])
        self.call("POST", "/reset/" + self.name)
        self.counts(0, 0, 0)

    def test_documentation_is_complete(self):
        text = hostile_provider.__doc__

        def expand(word):
            found = re.search(r"\{([\w,-]+)\}", word)
            if not found:
                return [word]
            return [w for one in found.group(1).split(",")
                    for w in expand(word.replace(found.group(0), one, 1))]
        words = {w for word in re.findall(r"[\w{},-]+", text)
                 for w in expand(word.strip(","))}
        self.assertEqual(set(PRESETS) - words, set())
        self.assertEqual(set(KINDS) - words, set())
        self.assertEqual((STEP_KEYS | SCENARIO_KEYS) - words, set())
        listed = {w for w in words if re.match(r"(\d+|case-\d+)-[a-z0-9]", w)}
        self.assertEqual(listed - set(PRESETS), set())


class Ends(ProviderTest):

    def test_close_and_reset(self):
        for preset, ending, effects in (
                ("10-close", "close", 1), ("10-reset", "reset", 1),
                ("10-close-uncommitted", "close", 0)):
            for kind in ("http", "https"):
                self.name = "t%d" % next(NAMES)
                self.assertEqual(self.exchange(preset, ending, kind), b"")
                self.counts(1, effects, 1)

    def test_reset_under_tls_is_an_rst(self):
        self.preset("10-reset")
        sock = socket.create_connection(("127.0.0.1", self.mine["https"]), 5)
        received, sent = ssl.MemoryBIO(), ssl.MemoryBIO()
        link = self.tls.wrap_bio(received, sent, server_hostname="localhost")
        shaken = False
        while not shaken:
            try:
                link.do_handshake()
                shaken = True
            except ssl.SSLWantReadError:
                sock.sendall(sent.read())
                received.write(sock.recv(65536))
        link.write(write("r", self.name))
        sock.sendall(sent.read())
        with self.assertRaises(ConnectionResetError):
            while sock.recv(65536):
                pass
        sock.close()

    def test_hang_ends_with_the_client(self):
        self.preset("10-hang")
        before = self.call("GET", "/stats")["open"]
        client = self.client().send(write("r", self.name))
        self.assertTrue(self.wait("writes=1&effects=1")["reached"])
        client.close()
        deadline = time.time() + 5
        while self.call("GET", "/stats")["open"] > before:
            self.assertLess(time.time(), deadline, "the hang outlived the client")

    def test_release(self):
        self.preset("10-held")
        client = self.client().send(write("r", self.name))
        self.wait("writes=1")
        client.sock.settimeout(0.1)
        with self.assertRaises(TimeoutError):
            client.sock.recv(1, socket.MSG_PEEK)
        client.sock.settimeout(5)
        self.call("POST", "/release/" + self.name)
        self.assertEqual(client.response()[0], 201)
        self.name = "t%d" % next(NAMES)
        self.preset("10-hang")
        client = self.client().send(write("r", self.name))
        self.wait("writes=1")
        self.call("POST", "/release/" + self.name)
        self.assertEqual(client.to_end(), (b"", "close"))

    def test_late_execution_without_client(self):
        self.preset("10-late-execution", commit_delay_s=0.4)
        self.client().send(write("r", self.name)).close()
        self.assertTrue(self.wait("writes=1")["reached"])
        self.counts(1, 0, 1)
        self.assertTrue(self.wait("effects=1")["reached"])
        ledger = self.counts(1, 1, 1)
        effect, request = ledger["effects"][0], ledger["requests"][0]
        self.assertGreaterEqual(effect["committed_at"] - request["read_at"], 0.4)

    def test_gateway_error_then_commit(self):
        self.preset("case-05-504-html", commit_delay_s=0.3)
        status, headers, body = self.client().send(
            write("r", self.name)).response()
        self.assertEqual((status, headers["Server"]), (504, "edge"))
        self.assertIn(b"<h1>504", body)
        self.counts(1, 0, 1)
        self.assertTrue(self.wait("effects=1")["reached"])

    def test_accept(self):
        for preset, ending in (("6-accept-close", "close"),
                               ("6-accept-reset", "reset")):
            for kind in ("http", "https"):
                self.name = "t%d" % next(NAMES)
                self.preset(preset)
                client = Client(self.mine[kind])
                self.assertEqual(client.to_end(), (b"", ending))
                client.close()
                self.counts(0, 0, 0)
                status, _, _ = self.client(kind=kind).send(
                    write("r", self.name)).response()
                self.assertEqual(status, 201)
                self.counts(1, 1, 1)

    def test_part_of_a_request(self):
        for kind in ("http", "https"):
            self.name = "t%d" % next(NAMES)
            self.assertEqual(self.exchange("9-ten-bytes-reset", "reset", kind), b"")
            request = self.counts(0, 0, 0)["requests"][0]
            self.assertEqual(request["read_bytes"], 10)
            self.name = "t%d" % next(NAMES)
            self.assertEqual(self.exchange("9-head-reset", "reset", kind), b"")
            self.counts(1, 0, 0)
        # a read on the same port is not touched
        self.preset("9-ten-bytes-reset")
        self.assertEqual(self.client().send(
            read("r", self.name)).response()[0], 200)
        self.assertEqual(self.client().send(
            write("r", self.name)).to_end()[1], "reset")

    def test_never_read_and_read_late(self):
        big = write("r", self.name, body=json.dumps(
            {"ref": "r", "pad": "x" * 900000}))
        self.preset("8-never-read")
        client = self.client()
        client.sock.settimeout(0.3)
        with self.assertRaises(TimeoutError):
            client.send(big)
        self.assertEqual(self.counts(0, 0, 0)["requests"][0]["read_bytes"], 0)
        for kind in ("http", "https"):
            self.name = "t%d" % next(NAMES)
            self.preset("8-read-late", read_after_s=-1)
            self.client(kind=kind).send(write("late", self.name)).close()
            self.assertTrue(self.wait("requests=1")["reached"])
            self.counts(0, 0, 0)
            self.call("POST", "/release/" + self.name)
            self.assertTrue(self.wait("effects=1&writes=1")["reached"], kind)
            self.counts(1, 1, 1)


class Reuse(ProviderTest):

    def test_second_write_on_a_kept_connection(self):
        for preset, ending in (("11-keepalive-close", "close"),
                               ("11-keepalive-reset", "reset")):
            self.name = "t%d" % next(NAMES)
            self.preset(preset)
            client = self.client()
            self.assertEqual(client.send(
                write("a", self.name)).response()[0], 201)
            self.assertEqual(client.send(
                write("b", self.name)).to_end(), (b"", ending))
            self.counts(2, 2, 2)

    def test_listener_down_and_up(self):
        self.preset("11-keepalive-listener-down")
        client = self.client()
        client.send(write("a", self.name)).response()
        self.assertEqual(client.send(write("b", self.name)).to_end()[1], "close")
        with self.assertRaises(ConnectionRefusedError):
            self.client()
        self.counts(2, 2, 2)
        self.call("POST", "/open/" + self.name)
        self.assertEqual(self.client().send(
            read("b", self.name)).response()[0], 200)

    def test_eight_idle(self):
        self.preset("12-eight-idle")
        clients = [self.client() for _ in range(8)]
        for n, client in enumerate(clients):
            client.send(write("a%d" % n, self.name))
        for client in clients:
            self.assertEqual(client.response()[0], 201)
        for client in clients:
            self.assertEqual(client.send(
                write("b", self.name)).to_end(), (b"", "close"))
        self.assertEqual(self.counts(16, 16)["duplicates"], {"b": 8})

    def test_keepalive_lie_and_stray(self):
        data = self.exchange("13-keepalive-lie", "close")
        self.assertIn(b"Connection: keep-alive\r\n", data)
        self.counts(1, 1, 1)
        self.name = "t%d" % next(NAMES)
        self.preset("14-stray-response")
        client = self.client()
        self.assertEqual(json.loads(client.send(
            write("a", self.name)).response()[2])["ref"], "a")
        stray = json.loads(client.response()[2])
        self.assertEqual(stray["ref"], "stray")
        self.assertEqual(json.loads(client.send(
            write("b", self.name)).response()[2])["ref"], "b")
        self.counts(2, 2, 2)

    def test_unsolicited(self):
        for kind in ("http", "https"):
            self.name = "t%d" % next(NAMES)
            self.preset("15-unsolicited-201")
            client = self.client(kind=kind)
            status, _, body = client.response()
            self.assertEqual((status, json.loads(body)), (201, {"status": "ok"}))
            client.send(write("r", self.name))
            self.assertTrue(self.wait("writes=1")["reached"])
            self.counts(1, 0, 1)


class Bytes(ProviderTest):

    def test_exact_bytes(self):
        ok = b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\n"
        for preset, ending, expected in (
                ("16-100-close", "close", b"HTTP/1.1 100 Continue\r\n\r\n"),
                ("17-htt-close", "close", b"HTT"),
                ("17-garbage", "close", b"\x00\xff\x16\x03garbage\n\n"),
                ("17-http5", "close",
                 b"HTTP/5.0 201 Created\r\nContent-Length: 2\r\n\r\nok"),
                ("17-status-9999", "close",
                 b"HTTP/1.1 9999 Odd\r\nContent-Length: 2\r\n\r\nok"),
                ("18-cut-head-close", "close",
                 b"HTTP/1.1 200 OK\r\nContent-Le"),
                ("18-cut-head-reset", "reset",
                 b"HTTP/1.1 200 OK\r\nContent-Le"),
                ("19-short-body-close", "close",
                 ok + b'Content-Length: 100\r\n\r\n{"id":"abc'),
                ("19-short-body-reset", "reset",
                 ok + b'Content-Length: 100\r\n\r\n{"id":"abc'),
                ("19-bad-chunk", "close", ok + b"Transfer-Encoding: chunked\r\n"
                 b"\r\n5\r\nhello\r\nZZ\r\n"),
                ("19-no-last-chunk", "close", ok +
                 b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"),
                ("21-nul-in-header", "close",
                 ok + b"X-Odd: a\x00b\r\nContent-Length: 2\r\n\r\nok"),
                ("21-length-and-chunked", "close", ok + b"Content-Length: 3\r\n"
                 b"Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n")):
            self.name = "t%d" % next(NAMES)
            self.assertEqual(self.exchange(preset, ending), expected, preset)
            self.counts(1, 1, 1)

    def test_no_length_and_close_notify(self):
        for kind, preset, ending in (
                ("http", "20-no-length-close", "close"),
                ("https", "20-no-length-close", "close"),
                ("https", "20-no-length-abrupt", "cut")):
            self.name = "t%d" % next(NAMES)
            data = self.exchange(preset, ending, kind)
            self.assertTrue(data.endswith(b'\r\n\r\n{"id":"'), data)
            self.counts(1, 1, 1)

    def test_sizes(self):
        data = self.exchange("22-megabyte-header", "close")
        self.assertIn(b"X-Long: " + b"a" * 1000000 + b"\r\n", data)
        data = self.exchange("22-many-headers", "close")
        self.assertEqual(data.count(b"X-N: 1\r\n"), 100000)
        data = self.exchange("23-large-body", "close")
        self.assertEqual(len(data.split(b"\r\n\r\n", 1)[1]), 10485760)
        data = self.exchange("23-gzip-bomb", "close")
        self.assertLess(len(data), 100000)
        for preset in ("16-endless-1xx", "22-endless-headers", "23-endless-body"):
            self.preset(preset)
            client = self.client().send(write("r", self.name))
            data, end = client.to_end(3 << 20)
            self.assertEqual(end, "more")
            client.close()

    def test_slow(self):
        self.preset("24-slow-body")
        client = self.client().send(write("r", self.name))
        arrivals = []
        while len(arrivals) < 3:
            client.sock.recv(65536)
            arrivals.append(time.time())
        self.assertGreater(arrivals[2] - arrivals[1], 0.3)

    def test_statuses(self):
        for preset, status, header, value in (
                ("25-417-always", 417, None, None),
                ("26-401-digest", 401, "WWW-Authenticate",
                 'Digest realm="p", nonce="abc", qop="auth"'),
                ("26-407", 407, "Proxy-Authenticate", 'Basic realm="p"'),
                ("27-307-other", 307, "Location", None),
                ("27-301-file", 301, "Location", "file:///etc/passwd"),
                ("28-429", 429, "Retry-After", "0"),
                ("28-503", 503, "Connection", "close")):
            self.name = "t%d" % next(NAMES)
            self.preset(preset)
            got, headers, _ = self.client().send(
                write("r", self.name)).response()
            self.assertEqual(got, status, preset)
            if value:
                self.assertEqual(headers[header], value)
            self.counts(1, 0, 1)
        self.assertEqual(self.client().send(
            write("r", self.name)).response()[0], 201)

    def test_expect(self):
        self.preset("25-417-on-expect")
        self.assertEqual(self.client().send(
            write("r", self.name, headers="Expect: 100-continue\r\n")[:-12]
        ).response()[0], 417)
        self.assertEqual(self.client().send(
            write("r", self.name)).response()[0], 201)
        self.counts(2, 1, 1)

    def test_early_answer(self):
        head = write("r", self.name, body="x" * 900000)
        self.preset("29-early-403-close")
        client = self.client()
        sender = threading.Thread(target=lambda: client.send(head))
        sender.start()
        self.assertEqual(client.response()[0], 403)
        sender.join(10)
        self.counts(1, 0, 0)
        self.preset("29-early-200-stall")
        client = self.client()
        client.send(head[:300])
        self.assertEqual(client.response()[0], 200)
        client.sock.settimeout(0.3)
        with self.assertRaises(TimeoutError):
            client.send(head[300:])
        self.counts(2, 0, 0)


if __name__ == "__main__":
    unittest.main()
