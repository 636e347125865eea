"""Waiting: for a broadcast together with a socket, and for a moment in time."""

import heapq
import itertools
import select
import socket
import threading
import time


class Gate:
    """A broadcast a thread can wait for together with a socket."""

    def __init__(self):
        self.reader, self.writer = socket.socketpair()
        self.fired = False

    def fire(self):
        self.fired = True
        self.writer.close()

    def wait(self, seconds, sock=None):
        """Wait; return "released", "timeout" or "gone" (peer of sock closed)."""
        poller = select.poll()
        poller.register(self.reader, select.POLLIN)
        if sock is not None:
            try:
                poller.register(sock, select.POLLRDHUP)
            except (OSError, ValueError):
                return "gone"
        timeout = None if seconds is None else max(0, int(seconds * 1000))
        ready = poller.poll(timeout)
        if self.fired:
            return "released"
        return "gone" if ready else "timeout"


class Timers:
    """Runs callables later, on one thread; for effects that commit late."""

    def __init__(self):
        self.heap = []
        self.order = itertools.count()
        self.changed = threading.Condition()
        threading.Thread(target=self._run, daemon=True).start()

    def at(self, when, call):
        with self.changed:
            heapq.heappush(self.heap, (when, next(self.order), call))
            self.changed.notify()

    def _run(self):
        while True:
            with self.changed:
                while not self.heap or self.heap[0][0] > time.time():
                    self.changed.wait(self.heap[0][0] - time.time()
                                      if self.heap else None)
                call = heapq.heappop(self.heap)[2]
            call()
