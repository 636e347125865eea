"""Bytes: one accepted connection, and reading a request no further than told."""

import itertools
import os
import select
import socket
import struct
import time

HEAD_MAX = 16 * 1024 * 1024
NUMBERS = itertools.count(1)


class Connection:
    """A client's connection, plain or TLS.  No method raises on a dead peer."""

    def __init__(self, sock, port):
        self.id = next(NUMBERS)
        self.sock, self.port = sock, port
        self.tls = self.alpn = None
        self.buf = bytearray()
        self.eof = False
        self.closed = False

    def start_tls(self, context, seconds=10):
        """Handshake; the reason for a failure is raised as OSError."""
        self.sock.settimeout(seconds)
        self.sock = context.wrap_socket(self.sock, server_side=True)
        self.sock.settimeout(None)
        self.tls = self.sock.version()
        self.alpn = self.sock.selected_alpn_protocol()

    def fill(self, limit=65536):
        """Read some bytes into buf; False at the end of the stream."""
        try:
            data = self.sock.recv(limit)
        except (OSError, ValueError):
            data = b""
        if not data:
            self.eof = True
            return False
        self.buf += data
        return True

    def sniff(self, count):
        """The first bytes of the next request, left in the kernel if plain."""
        if self.tls:
            while len(self.buf) < count and self.fill(count - len(self.buf)):
                pass
            return bytes(self.buf[:count])
        if self.buf:
            return bytes(self.buf[:count])
        data = b""
        deadline = time.monotonic() + 10
        while len(data) < count and time.monotonic() < deadline:
            try:
                fresh = self.sock.recv(count, socket.MSG_PEEK)
            except OSError:
                return data
            if not fresh:
                return data
            if len(fresh) == len(data):
                # Readable already, so poll cannot tell when more arrives.
                time.sleep(0.002)
                if self.peer_gone():
                    return data
            data = fresh
        return data

    def sniff_line(self, most=4096):
        """As much of the next request as shows its first line whole."""
        count, line = 16, b""
        while count <= most and b"\r\n" not in line:
            line = self.sniff(count)
            if len(line) < count:
                break
            count *= 2
        return line

    def peer_gone(self):
        poller = select.poll()
        poller.register(self.sock, select.POLLRDHUP)
        return bool(poller.poll(0))

    def send(self, data):
        try:
            self.sock.sendall(data)
            return True
        except (OSError, ValueError):
            return False

    def _say_goodbye(self):
        """TLS close_notify, without waiting for the peer's."""
        if not self.tls:
            return
        try:
            self.sock.settimeout(0)
            self.sock.unwrap()
        except (OSError, ValueError):
            pass

    def close(self, notify=True):
        if self.closed:
            return
        self.closed = True
        if notify:
            self._say_goodbye()
        self.sock.close()

    def reset(self):
        """Close with an RST."""
        if self.closed:
            return
        self.closed = True
        try:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                 struct.pack("ii", 1, 0))
        except OSError:
            pass
        self.sock.close()

    def drain(self, seconds):
        """Half-close, then swallow what still comes, so that no RST is sent."""
        deadline = time.monotonic() + seconds
        if self.tls:
            self._say_goodbye()
            try:
                self.sock = socket.socket(fileno=self.sock.detach())
            except OSError:
                self.closed = True
                return
        try:
            self.sock.shutdown(socket.SHUT_WR)
            while time.monotonic() < deadline:
                self.sock.settimeout(max(0.01, deadline - time.monotonic()))
                if not self.sock.recv(65536):
                    break
        except OSError:
            pass
        self.closed = True
        self.sock.close()


def read_some(conn, request, limit):
    """Read at most limit bytes in all; the head is parsed if they hold it."""
    while len(conn.buf) < limit and conn.fill(limit - len(conn.buf)):
        pass
    request.read_bytes = len(conn.buf)
    return True


def read_head(conn, request):
    """Read up to the blank line and parse it; False if it never came."""
    start = 0
    while True:
        end = conn.buf.find(b"\r\n\r\n", max(0, start - 3))
        if end >= 0:
            break
        start = len(conn.buf)
        if start > HEAD_MAX or not conn.fill():
            request.read_bytes = len(conn.buf)
            parse_request_line(bytes(conn.buf), request)
            return False
    head = bytes(conn.buf[:end])
    del conn.buf[:end + 4]
    request.read_bytes = end + 4
    parse_request_line(head, request)
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        request.headers.append([name.decode("latin-1"),
                                value.strip().decode("latin-1")])
    return True


def parse_request_line(data, request):
    """Fill in as much of the first line as has arrived whole."""
    line, cr, _ = data.partition(b"\r\n")
    words = line.decode("latin-1").split(" ")
    if len(words) > 1 or cr:
        request.method = words[0]
    if len(words) > 2 or (cr and len(words) > 1):
        request.path = words[1]
    if cr and len(words) > 2:
        request.http_version = words[2]


def read_body(conn, request):
    """Read the body by its framing; False if the client stopped before its end."""
    if "chunked" in (request.header("transfer-encoding") or "").lower():
        return _read_chunked(conn, request)
    try:
        length = int(request.header("content-length") or 0)
    except ValueError:
        length = 0
    return _take(conn, request, length, request.body)


def _take(conn, request, count, into):
    """Move count bytes of the stream to into, counting as they arrive."""
    left = count
    while left > 0:
        if not conn.buf and not conn.fill():
            return False
        piece = conn.buf[:left]
        del conn.buf[:left]
        left -= len(piece)
        request.read_bytes += len(piece)
        if into is not None:
            into += piece
            if into is request.body:
                request.body_bytes = len(into)
    return True


def _read_line(conn, request):
    while b"\n" not in conn.buf:
        if not conn.fill():
            return None
    line = bytearray()
    _take(conn, request, conn.buf.index(b"\n") + 1, line)
    return bytes(line).strip()


def _read_chunked(conn, request):
    while True:
        line = _read_line(conn, request)
        if line is None:
            return False
        try:
            size = int(line.split(b";")[0], 16)
        except ValueError:
            return False
        if size == 0:
            break
        if not _take(conn, request, size, request.body):
            return False
        if _read_line(conn, request) is None:
            return False
    while True:
        line = _read_line(conn, request)
        if line is None:
            return False
        if not line:
            return True


def small_receive_buffer(sock, size):
    """Before listen: the window is announced from it in the handshake.

    Small segments too, for the client's kernel makes its send buffer after them:
    on loopback it would take megabytes off the client's hands otherwise.
    """
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)


def bound_socket(port=None):
    """A socket bound to loopback on the given or a free port of our range."""
    first = 20000 + int.from_bytes(os.urandom(2), "big") % 12000
    candidates = [port] if port else [20000 + (first + i - 20000) % 12000
                                      for i in range(12000)]
    for number in candidates:
        sock = socket.socket()
        # A chosen number must be nobody's, not even half-open; a given one is
        # our own from before, with connections still on it.
        if port:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind(("127.0.0.1", number))
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            return sock
        except OSError:
            sock.close()
    raise OSError("no free port on loopback between 20000 and 31999")

