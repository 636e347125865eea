"""Ports: the shared ones, a scenario's own, and the special kinds of a test."""

import socket
import ssl
import threading
import time

from steps import Session
from wire import Connection, bound_socket, small_receive_buffer

BACKLOG = 4096
H2_SETTINGS = "\u0000\u0000\u0000\u0004\u0000\u0000\u0000\u0000\u0000"
H2_GOAWAY = ("\u0000\u0000\u0008\u0007\u0000\u0000\u0000\u0000\u0000"
             "\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0001")
H2_ONLY_STEP = {"raw": [H2_SETTINGS + H2_GOAWAY], "commit": "never"}

# kind: (certificate, keywords of Certificates.context), all end in a session
TLS_KINDS = {
    "tls-good": ("good", {}),
    "tls-untrusted-ca": ("untrusted", {}),
    "tls-wrong-name": ("wrong-name", {}),
    "tls-expired": ("expired", {}),
    "tls-h2-offered": ("good", {"alpn": ("h2", "http/1.1")}),
    "tls-h2-only": ("good", {"alpn": ("h2",)}),
    "tls-client-cert-12": ("good", {"client_cert": True,
                                    "maximum": ssl.TLSVersion.TLSv1_2}),
    "tls-client-cert-13": ("good", {"client_cert": True}),
    "tls-close-after-handshake": ("good", {}),
}
# kinds that never speak TLS: what happens after the first bytes have come
RAW_KINDS = {
    "tls-plaintext": "answer", "tls-hang": "hang", "tls-close": "close",
    "tls-reset-in-handshake": "reset", "accept-close": "close-unread",
    "accept-reset": "reset-unread", "accept-hang": "hang",
}
KINDS = sorted(list(TLS_KINDS) + list(RAW_KINDS) +
               ["http", "closed-port", "full-backlog"])


class Listener:
    """One listening port and the thread that accepts on it."""

    def __init__(self, kind, handle, port=None, rcvbuf=None, backlog=BACKLOG):
        self.kind, self.handle = kind, handle
        self.lock = threading.Lock()
        self.accepted = self.open = self.handshakes = 0
        self.errors, self.bytes_read = [], 0
        while True:
            self.sock = bound_socket(port)
            try:
                if rcvbuf:
                    small_receive_buffer(self.sock, rcvbuf)
                if backlog is not None:
                    self.sock.listen(backlog)
                break
            except OSError:
                # Somebody else began to listen there between bind and now.
                self.sock.close()
                if port:
                    raise
        self.port = self.sock.getsockname()[1]
        if backlog:
            threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                sock, _ = self.sock.accept()
            except OSError:
                return
            try:
                threading.Thread(target=self._serve, args=(sock,),
                                 daemon=True).start()
            except RuntimeError:
                sock.close()

    def _serve(self, sock):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        conn = Connection(sock, self.port)
        with self.lock:
            self.accepted += 1
            self.open += 1
        try:
            self.handle(self, conn)
        except OSError as error:
            with self.lock:
                self.errors.append(str(error))
        finally:
            conn.close()
            with self.lock:
                self.open -= 1

    def close(self):
        """Refuse from now on; connections already accepted live on."""
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.sock.close()

    def as_json(self):
        with self.lock:
            return {"kind": self.kind, "port": self.port, "open": self.open,
                    "accepted": self.accepted, "handshakes": self.handshakes,
                    "errors": self.errors[-20:], "bytes_read": self.bytes_read}


class Listeners:
    """Every port of the provider."""

    def __init__(self, provider, certificates):
        self.provider, self.certificates = provider, certificates
        self.by_port, self.prefilled = {}, []
        self.lock = threading.Lock()
        self.good = certificates.context()

    def add(self, listener):
        with self.lock:
            self.by_port[listener.port] = listener
        return listener

    def plain(self, bound=None, **options):
        def handle(_, conn):
            session = Session(self.provider, conn, bound)
            if session.at_accept():
                session.serve()
        return self.add(Listener("http", handle, **options))

    def tls(self, context=None, kind="https", bound=None, forced=None,
            then=None, **options):
        context = context or self.good

        def handle(listener, conn):
            session = Session(self.provider, conn, bound, forced)
            if not session.at_accept():
                return
            conn.start_tls(context)
            with listener.lock:
                listener.handshakes += 1
            if then != "close":
                session.serve()
        return self.add(Listener(kind, handle, **options))

    # -- a scenario's own ports --------------------------------------------

    def bind(self, scenario):
        """Give a scenario its own http and https port, or keep those it has."""
        rcvbuf = scenario.spec.get("rcvbuf")
        if not scenario.ports:
            scenario.ports = {
                "http": self.plain(scenario, rcvbuf=rcvbuf).port,
                "https": self.tls(bound=scenario, rcvbuf=rcvbuf).port}
        elif rcvbuf:
            for port in scenario.ports.values():
                small_receive_buffer(self.by_port[port].sock, rcvbuf)

    def close_bound(self, scenario):
        for port in scenario.ports.values():
            self.by_port[port].close()

    def reopen_bound(self, scenario):
        """Listen again on the ports closed before."""
        self.close_bound(scenario)
        rcvbuf = scenario.spec.get("rcvbuf")
        for kind, port in scenario.ports.items():
            make = self.plain if kind == "http" else self.tls
            make(bound=scenario, port=port, rcvbuf=rcvbuf)

    # -- special kinds -----------------------------------------------------

    def special(self, kind, bound=None):
        if kind in TLS_KINDS:
            name, options = TLS_KINDS[kind]
            return self.tls(
                self.certificates.context(name, **options), kind, bound,
                H2_ONLY_STEP if kind == "tls-h2-only" else None,
                "close" if kind == "tls-close-after-handshake" else None)
        if kind in RAW_KINDS:
            return self.add(Listener(kind, self.raw_handler(RAW_KINDS[kind])))
        if kind == "http":
            return self.plain(bound)
        if kind == "closed-port":
            return self.add(Listener(kind, None, backlog=None))
        if kind == "full-backlog":
            return self.full_backlog()
        raise ValueError("no listener kind %r; one of %s"
                         % (kind, ", ".join(KINDS)))

    def raw_handler(self, how):
        """Speak no TLS and no HTTP: end or keep the connection as told."""
        hangs = self.provider.registry.get("listeners")

        def handle(listener, conn):
            if how == "reset-unread":
                conn.reset()
            elif how == "close-unread":
                conn.close()
            elif how == "hang":
                hangs.gate().wait(None, conn.sock)
            elif conn.fill():
                with listener.lock:
                    listener.bytes_read += len(conn.buf)
                if how == "reset":
                    conn.reset()
                elif how == "answer":
                    conn.send(b"HTTP/1.1 400 Bad Request\r\n"
                              b"Content-Length: 0\r\n\r\n")
        return handle

    def full_backlog(self):
        """A port whose accept queue is full, so that the kernel drops each SYN."""
        listener = self.add(Listener("full-backlog", None, backlog=0))
        for _ in range(16):
            sock = socket.socket()
            sock.setblocking(False)
            sock.connect_ex(("127.0.0.1", listener.port))
            self.prefilled.append(sock)
        # Connections beyond the queue stay in SYN-SENT and retry for ever;
        # the kernel answers none of them while nobody accepts.
        time.sleep(0.05)
        return listener
