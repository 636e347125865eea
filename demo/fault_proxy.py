#!/usr/bin/env python3
"""A proxy that loses answers, for the demo.

It stands in front of a provider that it does not change.  Two things go wrong
here that go wrong in any network, and they go wrong on demand:

  --lose-answers N   the answers to the first N objects written in a collection are lost: the
                     PUT is delivered and carried out, then the client's
                     connection is reset; a second PUT to the same path is
                     answered normally
  --hide-seconds S   an object created less than S seconds ago is not visible
                     yet: a read of its path answers 404

Prints {"port": N} when it listens, and writes one line for each event to --log.
"""

import argparse
import asyncio
import json
import random
import socket
import struct
import sys
import time

MAX_HEAD = 64 * 1024
MAX_BODY = 4 * 1024 * 1024
READS = ("GET", "HEAD", "PROPFIND", "REPORT")


class Malformed(Exception):
    pass


async def read_message(reader, bodiless=False):
    """Reads one HTTP/1.1 message: its first line, its headers, its body."""
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    headers = []
    for line in lines[1:]:
        if not line:
            continue
        name, colon, value = line.partition(":")
        if not colon:
            raise Malformed("a header without colon")
        headers.append((name.strip(), value.strip()))
    fields = {name.lower(): value for name, value in headers}
    if bodiless:
        body = b""
    elif "chunked" in fields.get("transfer-encoding", "").lower():
        body = await read_chunks(reader)
    elif "content-length" in fields:
        length = int(fields["content-length"])
        if not 0 <= length <= MAX_BODY:
            raise Malformed("a body of %d bytes" % length)
        body = await reader.readexactly(length)
    elif lines[0].startswith("HTTP/"):
        body = await reader.read(MAX_BODY)
    else:
        body = b""
    return lines[0], headers, body


async def read_chunks(reader):
    body = b""
    while True:
        size = int((await reader.readuntil(b"\r\n")).split(b";")[0], 16)
        if len(body) + size > MAX_BODY:
            raise Malformed("a body that is too large")
        if size == 0:
            while (await reader.readuntil(b"\r\n")) != b"\r\n":
                pass
            return body
        body += await reader.readexactly(size)
        await reader.readexactly(2)


def format_message(first_line, headers, body, keep_length=False):
    """Writes a message back, with a plain length and one request a connection."""
    dropped = {"transfer-encoding", "connection", "keep-alive"}
    if not keep_length:
        dropped.add("content-length")
    lines = [first_line]
    lines += ["%s: %s" % item for item in headers if item[0].lower() not in dropped]
    if not keep_length:
        lines.append("Content-Length: %d" % len(body))
    lines.append("Connection: close")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body


def reset(writer):
    """Ends the connection with a reset, so that the client sees no answer at all."""
    sock = writer.get_extra_info("socket")
    if sock is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


class FaultProxy:
    def __init__(self, upstream, lose_answers, hide_seconds, log):
        self.upstream = upstream
        self.lose_answers = lose_answers
        self.hide_seconds = hide_seconds
        self.log = log
        self.created = {}       # path -> when the provider created it
        self.written = set()    # paths that were written at least once
        self.lost = {}          # collection -> answers lost in it
        self.started = time.monotonic()

    def note(self, event, method, path, detail=""):
        elapsed = time.monotonic() - self.started
        line = "%8.3f %-9s %s %s %s" % (elapsed, event, method, path, detail)
        self.log.write(line.rstrip() + "\n")
        self.log.flush()

    async def serve(self, reader, writer):
        method = path = "-"
        try:
            first_line, headers, body = await read_message(reader)
            method, path, _ = first_line.split(" ", 2)
            await self.handle(writer, method, path, first_line, headers, body)
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError) as error:
            self.note("broken", method, path, type(error).__name__)
        except (Malformed, ValueError) as error:
            self.note("malformed", method, path, str(error))
            writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        finally:
            try:
                writer.close()
                await writer.wait_closed()
            except (ConnectionError, OSError):
                pass

    async def handle(self, writer, method, path, first_line, headers, body):
        created = self.created.get(path)
        if method in READS and created is not None:
            age = time.monotonic() - created
            if age < self.hide_seconds:
                self.note("hidden", method, path, "404, created %.1f s ago" % age)
                writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\n"
                             b"Content-Length: 0\r\nConnection: close\r\n\r\n")
                await writer.drain()
                return
        status, answer = await self.forward(method, first_line, headers, body)
        if method == "PUT":
            first_write = path not in self.written
            self.written.add(path)
            if status == 201:
                self.created[path] = time.monotonic()
            collection = path.rpartition("/")[0]
            if first_write and self.lost.get(collection, 0) < self.lose_answers:
                self.lost[collection] = self.lost.get(collection, 0) + 1
                self.note("lost", method, path, "the provider answered %d, the client gets a reset" % status)
                reset(writer)
                return
        self.note("answered", method, path, str(status))
        writer.write(answer)
        await writer.drain()

    async def forward(self, method, first_line, headers, body):
        """Delivers a request to the provider and returns its whole answer."""
        reader, writer = await asyncio.open_connection(*self.upstream, limit=MAX_HEAD)
        try:
            request = [item for item in headers if item[0].lower() != "expect"]
            writer.write(format_message(first_line, request, body))
            await writer.drain()
            status_line, answer_headers, answer_body = await read_message(reader, bodiless=method == "HEAD")
            status = int(status_line.split(" ", 2)[1])
            without_body = method == "HEAD" or status in (204, 304)
            return status, format_message(status_line, answer_headers, answer_body, keep_length=without_body)
        finally:
            writer.close()


def bind_listener(address):
    """A free port below the range that outgoing connections take theirs from."""
    for _ in range(200):
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((address, random.randrange(20000, 32000)))
            sock.listen(64)
            return sock
        except OSError:
            sock.close()
    raise SystemExit("fault_proxy: found no free port on %s" % address)


async def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--upstream", required=True, metavar="HOST:PORT")
    parser.add_argument("--lose-answers", type=int, default=0, metavar="N")
    parser.add_argument("--hide-seconds", type=float, default=0.0, metavar="S")
    parser.add_argument("--log", type=argparse.FileType("a"), default=sys.stderr, metavar="FILE")
    options = parser.parse_args()
    host, _, port = options.upstream.rpartition(":")
    proxy = FaultProxy((host, int(port)), options.lose_answers, options.hide_seconds, options.log)
    listener = bind_listener("127.0.0.1")
    server = await asyncio.start_server(proxy.serve, sock=listener, limit=MAX_HEAD)
    print(json.dumps({"port": listener.getsockname()[1]}), flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except KeyboardInterrupt:
        pass
