"""A client that shows every byte, and a test case with a provider of its own."""

import http.client
import itertools
import json
import os
import socket
import ssl
import subprocess
import sys
import unittest

NAMES = itertools.count()


def write(ref, name, method="POST", headers="", body=None):
    body = body if body is not None else json.dumps({"ref": ref})
    return ("%s /s/%s/effects HTTP/1.1\r\nHost: x\r\n%s"
            "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
            % (method, name, headers, len(body), body)).encode()


def read(ref, name):
    return ("GET /s/%s/effects?ref=%s HTTP/1.1\r\nHost: x\r\n\r\n"
            % (name, ref)).encode()


class Client:
    """A raw client: sends bytes, receives bytes, says how the end came."""

    def __init__(self, port, tls=None, rcvbuf=None):
        self.sock = socket.socket()
        if rcvbuf:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
        self.sock.settimeout(10)
        self.reset = False
        try:
            self.sock.connect(("127.0.0.1", port))
            if tls:
                self.sock = tls.wrap_socket(
                    self.sock, server_hostname="localhost",
                    suppress_ragged_eofs=False)
        except ConnectionResetError:
            # An RST right at accept may overtake the end of connect().
            if tls:
                self.sock.close()
                raise
            self.reset = True
        except OSError:
            self.sock.close()
            raise

    def send(self, data):
        self.sock.sendall(data)
        return self

    def to_end(self, limit=1 << 26):
        """(bytes, "close" | "reset" | "hang" | "more" | "cut": no close_notify)"""
        data = bytearray()
        if self.reset:
            return b"", "reset"
        while len(data) < limit:
            try:
                piece = self.sock.recv(65536)
            except ConnectionResetError:
                return bytes(data), "reset"
            except TimeoutError:
                return bytes(data), "hang"
            except ssl.SSLError as error:
                # Older versions of Python have no SSLEOFError for this.
                if error.reason != "UNEXPECTED_EOF_WHILE_READING" \
                        and not isinstance(error, ssl.SSLEOFError):
                    raise
                return bytes(data), "cut"
            if not piece:
                return bytes(data), "close"
            data += piece
        return bytes(data), "more"

    def response(self):
        """One well-formed response: (status, headers, body)."""
        answer = http.client.HTTPResponse(self.sock)
        answer.begin()
        return answer.status, answer.headers, answer.read()

    def close(self):
        self.sock.close()


class ProviderTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.process = subprocess.Popen(
            [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                          "hostile_provider.py")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        cls.ports = json.loads(cls.process.stdout.readline())
        cls.tls = ssl.create_default_context(cafile=cls.ports["ca_file"])
        # Python before 3.11.4 takes an end without close_notify for a proper one.
        cls.tls.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF

    @classmethod
    def tearDownClass(cls):
        cls.process.stdin.close()
        status = cls.process.wait(30)
        cls.process.stdout.close()
        assert status == 0 and not os.path.exists(cls.ports["ca_file"])

    def setUp(self):
        self.clients = []
        self.name = "t%d" % next(NAMES)

    def tearDown(self):
        for client in self.clients:
            client.close()

    # -- helpers -----------------------------------------------------------

    def call(self, method, path, body=None):
        link = http.client.HTTPConnection("127.0.0.1", self.ports["control"])
        link.request(method, path, json.dumps(body) if body is not None else None)
        answer = link.getresponse()
        data = json.loads(answer.read())
        link.close()
        return data if answer.status == 200 else (answer.status, data)

    def define(self, **spec):
        self.mine = self.call("PUT", "/scenario/" + self.name, spec)
        self.assertIsInstance(self.mine, dict, self.mine)
        return self.mine

    def preset(self, name, **override):
        return self.define(preset=name, override=override)

    def client(self, port=None, kind="http", **options):
        client = Client(port or self.mine[kind],
                        self.tls if kind == "https" else None, **options)
        self.clients.append(client)
        return client

    def ask(self, method, path, body=None, headers=None):
        """One request to the scenario: (status, headers, body read as JSON).

        path is relative to the scenario, or what the provider gave as a URL;
        a body that is no text is written as JSON.
        """
        if path.startswith("http:"):
            path = "/" + path.split("/", 3)[3]
        elif not path.startswith("/s/"):
            path = "/s/%s%s" % (self.name, path)
        if body is not None and not isinstance(body, str):
            body = json.dumps(body)
        link = http.client.HTTPConnection("127.0.0.1", self.mine["http"], timeout=10)
        try:
            link.request(method, path, body, headers or {})
            answer = link.getresponse()
            data = answer.read()
        finally:
            link.close()
        text = data.decode("utf-8")
        if answer.headers.get_content_type() == "application/json" and text:
            text = json.loads(text)
        return answer.status, answer.headers, None if text == "" else text

    def ledger(self):
        return self.call("GET", "/ledger/" + self.name)

    def wait(self, query, timeout=5):
        return self.call("GET", "/wait/%s?%s&timeout=%s"
                         % (self.name, query, timeout))

    def counts(self, deliveries, effects, complete=None):
        ledger = self.ledger()
        self.assertEqual(ledger["deliveries"], deliveries)
        self.assertEqual(ledger["effect_count"], effects)
        self.assertEqual(len(ledger["effects"]), effects)
        if complete is not None:
            self.assertEqual(ledger["complete_writes"], complete)
        return ledger

    def exchange(self, preset, ending, kind="http", **override):
        """Write once under a preset; the bytes that came before the ending."""
        self.preset(preset, **override)
        data, end = self.client(kind=kind).send(
            write("r", self.name)).to_end()
        # Some versions of Python's TLS show an RST as an end without close_notify.
        if kind == "https" and ending == "reset" and end == "cut":
            ending = "cut"
        self.assertEqual(end, ending, preset)
        return data
