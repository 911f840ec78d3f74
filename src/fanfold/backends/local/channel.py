"""Messages over a socket pair: length-prefixed pickles, one end never blocking.

Owns the framing. The driver's end (:class:`DriverChannel`) reads what is there and queues what cannot be
sent; the worker's end (:class:`WorkerChannel`) simply waits, since a worker has nothing else to do.
"""

from __future__ import annotations

import pickle
import socket
import struct
from collections import deque
from typing import Any, Final

_HEAD: Final = struct.Struct("<Q")
_CHUNK_BYTES: Final = 1 << 18


def _frame(message: Any) -> bytes:
    body = pickle.dumps(message, protocol=5)
    return _HEAD.pack(len(body)) + body


class _Frames:
    """Bytes in, whole messages out."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> list[Any]:
        self._data += data
        messages = []
        start = 0
        available = len(self._data)
        while available - start >= _HEAD.size:
            (size,) = _HEAD.unpack_from(self._data, start)
            stop = start + _HEAD.size + size
            if stop > available:
                break
            with memoryview(self._data) as view:
                messages.append(pickle.loads(view[start + _HEAD.size : stop]))
            start = stop
        if start:
            del self._data[:start]
        return messages


class DriverChannel:
    """The driver's end. Nothing here waits."""

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(False)
        self.socket = end
        self.closed: bool = False
        self._frames = _Frames()
        self._outbox: deque[memoryview] = deque()
        self._refused = False

    def post(self, message: Any) -> None:
        """Queue a message for the next :meth:`flush`."""
        self._outbox.append(memoryview(_frame(message)))

    def flush(self) -> None:
        """Send as much of the queue as the socket takes; what was posted together goes together."""
        if len(self._outbox) > 1:
            joined = memoryview(b"".join(self._outbox))
            self._outbox.clear()
            self._outbox.append(joined)
        while self.waiting:
            head = self._outbox[0]
            try:
                sent = self.socket.send(head)
            except BlockingIOError:
                return
            except OSError:
                # Its death is told by who watches processes; what it said before is still to be read.
                self._refused = True
                return
            if sent == len(head):
                self._outbox.popleft()
            else:
                self._outbox[0] = head[sent:]

    @property
    def waiting(self) -> bool:
        """Whether something is queued for when the socket can take it."""
        return bool(self._outbox) and not self.closed and not self._refused

    def receive(self) -> list[Any]:
        """All messages that have arrived; notes in ``closed`` when there will be no more."""
        messages: list[Any] = []
        while not self.closed:
            try:
                data = self.socket.recv(_CHUNK_BYTES)
            except BlockingIOError:
                break
            except OSError:
                data = b""
            if not data:
                self.closed = True
                break
            messages += self._frames.feed(data)
            if len(data) < _CHUNK_BYTES:
                break
        return messages

    def close(self) -> None:
        self.closed = True
        self.socket.close()


class WorkerChannel:
    """The worker's end: waits for messages, and until they are sent."""

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(True)
        self._socket = end
        self._frames = _Frames()
        self._ready: deque[Any] = deque()

    def send(self, message: Any) -> None:
        """Send a message.

        Raises:
            OSError: The driver is gone.
        """
        self._socket.sendall(_frame(message))

    def receive(self) -> Any:
        """The next message; None when the driver has closed its end."""
        while not self._ready:
            if not self._hear():
                return None
        return self._ready.popleft()

    def receive_some(self) -> list[Any] | None:
        """What has arrived, for one who knows that something has; None when the driver has closed its end."""
        heard = self._hear()
        messages = list(self._ready)
        self._ready.clear()
        return messages if heard or messages else None

    def arrived(self) -> list[Any]:
        """The messages that have arrived, without waiting; the end of the driver is left for later."""
        while True:
            try:
                data = self._socket.recv(_CHUNK_BYTES, socket.MSG_DONTWAIT)
            except BlockingIOError:
                break
            if not data:
                break
            self._ready.extend(self._frames.feed(data))
        messages = list(self._ready)
        self._ready.clear()
        return messages

    def fileno(self) -> int:
        """The descriptor by which it is known that something has arrived."""
        return self._socket.fileno()

    def _hear(self) -> bool:
        data = self._socket.recv(_CHUNK_BYTES)
        self._ready.extend(self._frames.feed(data))
        return bool(data)
