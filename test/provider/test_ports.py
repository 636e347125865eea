#!/usr/bin/env python3
"""The ports of the hostile provider: TLS, refusals, what curl sees, very many.

    python3 test/provider/test_ports.py
"""

import concurrent.futures
import os
import resource
import shutil
import socket
import ssl
import subprocess
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from raw_client import NAMES, ProviderTest, write  # noqa: E402

CURL = shutil.which("curl")


class Ports(ProviderTest):

    def listener(self, kind, **more):
        return self.call("POST", "/listener", dict(more, kind=kind))["port"]

    def test_tls_refusals(self):
        for kind, error in (("tls-untrusted-ca", "unable to get local issuer"),
                            ("tls-wrong-name", "ostname mismatch"),
                            ("tls-expired", "certificate has expired"),
                            ("tls-plaintext", "WRONG_VERSION_NUMBER|wrong version"),
                            ("tls-close", "EOF"),
                            ("tls-reset-in-handshake", "reset"),
                            ("tls-client-cert-12", "handshake failure|alert")):
            port = self.listener(kind)
            with self.assertRaisesRegex(OSError, error, msg=kind):
                self.client(port, "https")
            self.assertEqual(self.call("GET", "/listener/%d" % port)["accepted"], 1)
        sock = socket.create_connection(
            ("127.0.0.1", self.listener("tls-hang")), 0.3)
        with self.assertRaises(TimeoutError):
            self.tls.wrap_socket(sock, server_hostname="localhost")
        sock.close()

    def test_tls13_failures_after_the_handshake(self):
        for kind in ("tls-client-cert-13", "tls-close-after-handshake"):
            client = self.client(self.listener(kind, scenario=self.name), "https")
            try:
                client.send(write("r", self.name))
                data, _ = client.to_end()
            except OSError:
                data = b""
            self.assertEqual(data, b"")
        self.counts(0, 0, 0)

    def test_h2(self):
        port = self.listener("tls-h2-offered", scenario=self.name)
        both = ssl.create_default_context(cafile=self.ports["ca_file"])
        both.set_alpn_protocols(["h2", "http/1.1"])
        sock = both.wrap_socket(socket.create_connection(("127.0.0.1", port)),
                                server_hostname="localhost")
        self.assertEqual(sock.selected_alpn_protocol(), "h2")
        sock.close()
        self.tls.set_alpn_protocols(["http/1.1"])
        client = self.client(port, "https")
        self.assertEqual(client.send(write("r", self.name)).response()[0], 201)
        self.assertEqual(self.ledger()["requests"][0]["alpn"], "http/1.1")
        port = self.listener("tls-h2-only", scenario=self.name)
        data, end = self.client(port, "https").send(
            write("r", self.name)).to_end()
        self.assertEqual((data[:5], end), (b"\x00\x00\x00\x04\x00", "close"))
        self.counts(2, 1)

    def test_tcp(self):
        with self.assertRaises(ConnectionRefusedError):
            self.client(self.listener("closed-port"))
        with self.assertRaises(TimeoutError):
            socket.create_connection(
                ("127.0.0.1", self.listener("full-backlog")), 0.5)
        for kind, ending in (("accept-close", "close"),
                             ("accept-reset", "reset")):
            self.assertEqual(self.client(self.listener(kind)).to_end(),
                             (b"", ending))

    @unittest.skipUnless(CURL, "needs curl")
    def test_curl_sees_what_it_should(self):
        def curl(scheme="http"):
            return subprocess.run(
                [CURL, "-s", "-m", "2", "--cacert", self.ports["ca_file"],
                 "-d", '{"ref":"r"}', "%s://localhost:%d/s/%s/effects"
                 % (scheme, self.mine[scheme], self.name)],
                stdout=subprocess.DEVNULL).returncode
        for preset, code in (("ok", 0), ("10-close", 52), ("10-reset", 56),
                             ("10-hang", 28), ("17-garbage", 1),
                             ("18-cut-head-close", 0), ("19-short-body-close", 18),
                             ("19-bad-chunk", 56), ("21-negative-length", 8)):
            self.name = "t%d" % next(NAMES)
            self.preset(preset)
            self.assertEqual(curl(), code, preset)
            self.counts(1, 1, 1)
        self.name = "t%d" % next(NAMES)
        self.preset("ok")
        self.assertEqual(curl("https"), 0)

    @unittest.skipUnless(CURL, "needs curl")
    def test_curl_resends_on_a_reused_connection(self):
        """The hazard itself: one command, two executions, success reported."""
        self.preset("11-keepalive-close")
        url = "http://127.0.0.1:%d/s/%s/effects" % (self.mine["http"], self.name)
        status = subprocess.run(
            [CURL, "-s", "-d", '{"ref":"a"}', url, "--next",
             "-s", "-d", '{"ref":"b"}', url], stdout=subprocess.DEVNULL)
        self.assertEqual(status.returncode, 0)
        self.assertEqual(self.counts(3, 3, 3)["duplicates"], {"b": 2})

    def test_two_thousand_connections(self):
        self.preset("10-held")
        self.define(preset="10-held", always=True)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            clients = list(pool.map(lambda n: self.client().send(
                write("c%d" % n, self.name)), range(2000)))
        self.assertTrue(self.wait("writes=2000", 20)["reached"])
        self.call("POST", "/release/" + self.name)
        self.assertEqual({c.response()[0] for c in clients}, {201})
        self.assertEqual(self.counts(2000, 2000)["refs"], 2000)


if __name__ == "__main__":
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 8192:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    unittest.main()
