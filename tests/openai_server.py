"""A model server on the loopback interface that speaks the chat-completions protocol, with continuous batching.

Owns what such a server does with the requests that it has: a fixed number of *slots*, each of which decodes
one token per tick; requests join and leave at every tick, and wait in a queue before. So throughput follows
from how many requests are in flight, and they complete in another order than they came in. It ticks as fast as
it can while a slot is taken. Knows nothing of Fanfold.

The answer to a request is its last message's text in capitals, one token for each character; what else a text
gets is said by :meth:`ModelServer.script` and :meth:`ModelServer.hold`.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

TURNS: Final = 20
"""Turns of the event loop in which all that it has begun has come to pass."""
PATH: Final = "/v1/chat/completions"


@dataclass(frozen=True)
class Refusal:
    """An answer that is none: a status, and headers such as ``Retry-After``."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    kind: str = "server_error"
    message: str = "not now"


@dataclass
class _Request:
    text: str
    tokens: int
    """Left to decode."""
    done: asyncio.Future[None]


class ModelServer:
    """The server; ``start`` it, ask it, ``stop`` it. All of it but these two runs in a thread of its own.

    Args:
        slots: Requests that decode at the same time.
        model: The name in its answers.
        port: Where to listen; by default anywhere.
    """

    def __init__(self, slots: int = 4, *, model: str = "made-up", port: int = 0) -> None:
        self.slots = slots
        self.model = model
        self.port = port
        self.arrived = Counter[str]()
        """By text: requests, refused ones too."""
        self.answered: list[str] = []
        """Texts in the order in which they were answered."""
        self.in_flight = 0
        self.most_in_flight = 0
        self.most_decoding = 0
        self.ticks = 0
        self._numbers = itertools.count()
        self._refusals: dict[str, deque[Refusal | None]] = {}
        self._gates: dict[str, asyncio.Event] = {}
        self._waiting: deque[_Request] = deque()
        self._decoding: list[_Request] = []
        self._wanted: asyncio.Event | None = None
        self._crowd: int = 0
        self._crowded: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._over: asyncio.Event | None = None
        self._thread: threading.Thread | None = None

    # ----------------------------------------------------------------------------- what it will do

    def script(self, text: str, *answers: Refusal | None) -> None:
        """What the next requests with a text get; None: what they would get anyway."""
        self._refusals[text] = deque(answers)

    def hold_until_in_flight(self, count: int) -> None:
        """Decode nothing before so many requests are in flight at once."""
        self._crowd = count

    def hold(self, text: str) -> None:
        """Requests with a text are not answered before :meth:`let_go`."""
        self._gates[text] = asyncio.Event()

    def let_go(self, text: str) -> None:
        """Answer what was held."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._gates[text].set)

    # ------------------------------------------------------------------------------ start and stop

    @property
    def url(self) -> str:
        """What clients call the base URL."""
        return f"http://127.0.0.1:{self.port}/v1"

    def start(self) -> ModelServer:
        """Listen."""
        ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(ready)))
        self._thread.start()
        ready.wait()
        return self

    def stop(self) -> None:
        """Close all connections and wait until nobody listens."""
        assert self._loop is not None and self._over is not None and self._thread is not None
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()

    async def _serve(self, ready: threading.Event) -> None:
        self._loop = asyncio.get_running_loop()
        self._over, self._wanted, self._crowded = asyncio.Event(), asyncio.Event(), asyncio.Event()
        connections: set[asyncio.Task[None]] = set()
        transports: set[asyncio.BaseTransport] = set()

        class Connection(asyncio.StreamReaderProtocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                transports.add(transport)
                super().connection_made(transport)

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            connections.add(task)
            try:
                await self._answer_all(reader, writer)
            except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                pass  # the client has gone, or the server stops
            finally:
                connections.discard(task)
                writer.close()

        server = await self._loop.create_server(
            lambda: Connection(asyncio.StreamReader(), connected), "127.0.0.1", self.port
        )
        self.port = server.sockets[0].getsockname()[1]
        ticking = asyncio.create_task(self._tick())
        ready.set()
        await self._over.wait()
        for listening in server.sockets:  # a server that is closed loses whom it has just let in
            self._loop.remove_reader(listening.fileno())
        ticking.cancel()
        while asyncio.all_tasks() - {asyncio.current_task()}:
            for task in list(connections):
                task.cancel()
            await asyncio.sleep(0)
        for transport in transports:
            assert isinstance(transport, asyncio.Transport)
            transport.abort()  # what was not sent yet is not waited for
        server.close()
        for _ in range(TURNS):  # sockets are closed a turn later
            await asyncio.sleep(0)
        self._waiting.clear()
        self._decoding.clear()
        self.in_flight = 0

    # ------------------------------------------------------------------------- continuous batching

    async def _tick(self) -> None:
        """One token for each slot that is taken, again and again."""
        assert self._wanted is not None
        while True:
            await self._wanted.wait()
            await asyncio.sleep(0)  # whoever has come meanwhile joins
            while self._waiting and len(self._decoding) < self.slots:
                self._decoding.append(self._waiting.popleft())
            self.most_decoding = max(self.most_decoding, len(self._decoding))
            self.ticks += 1
            for request in self._decoding:
                request.tokens -= 1
                if not request.tokens:
                    request.done.set_result(None)
            self._decoding = [request for request in self._decoding if request.tokens]
            if not (self._waiting or self._decoding):
                self._wanted.clear()

    async def _decoded(self, text: str) -> None:
        """Wait for a slot, and for all tokens."""
        assert self._loop is not None and self._wanted is not None and self._crowded is not None
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            if self._crowd:
                if self.in_flight >= self._crowd:
                    self._crowded.set()
                await self._crowded.wait()
            if text in self._gates:
                await self._gates[text].wait()
            request = _Request(text, max(1, len(text)), self._loop.create_future())
            self._waiting.append(request)
            self._wanted.set()
            await request.done
        finally:
            self.in_flight -= 1

    # ------------------------------------------------------------------------------- the protocol

    async def _answer_all(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Requests of one connection, until the client closes it or asks for that."""
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            first, *lines = head.split("\r\n")
            headers = {
                name.strip().lower(): value.strip()
                for name, _, value in (line.partition(":") for line in lines if line)
            }
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            method, path, _ = first.split(" ", 2)
            await self._answer(writer, method, path, body)
            await writer.drain()
            if headers.get("connection", "").lower() == "close":
                return

    async def _answer(
        self, writer: asyncio.StreamWriter, method: str, path: str, body: bytes
    ) -> None:
        if (method, path) != ("POST", PATH):
            _send_error(writer, Refusal(404, kind="invalid_request_error", message="no such path"))
            return
        try:
            asked = json.loads(body)
            text = str(asked["messages"][-1]["content"])
        except (ValueError, LookupError, TypeError) as error:
            told = f"{type(error).__name__}: {error}"
            _send_error(writer, Refusal(400, kind="invalid_request_error", message=told))
            return
        self.arrived[text] += 1
        script = self._refusals.get(text)
        refusal = script.popleft() if script else None
        if refusal is not None:
            _send_error(writer, refusal)
            return
        await self._decoded(text)
        self.answered.append(text)
        number = next(self._numbers)
        if asked.get("stream"):
            for event in self._chunks(number, text.upper()):
                writer.write(event)
            return
        _send(writer, 200, self._completion(number, text.upper()))

    def _completion(self, number: int, text: str) -> dict[str, Any]:
        message = {"role": "assistant", "content": text}
        return {
            "id": f"chatcmpl-{number}",
            "object": "chat.completion",
            "created": 0,
            "model": self.model,
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {
                "prompt_tokens": len(text),
                "completion_tokens": len(text),
                "total_tokens": 2 * len(text),
            },
        }

    def _chunks(self, number: int, text: str) -> Iterator[bytes]:
        """The answer as server-sent events, a token in each."""
        yield b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        deltas: list[dict[str, str]] = [{"role": "assistant", "content": ""}]
        deltas += [{"content": token} for token in text]
        for delta in [*deltas, None]:
            chunk = {
                "id": f"chatcmpl-{number}",
                "object": "chat.completion.chunk",
                "created": 0,
                "model": self.model,
                "choices": [
                    {"index": 0, "delta": delta or {}, "finish_reason": None if delta else "stop"}
                ],
            }
            yield _chunked(f"data: {json.dumps(chunk)}\n\n".encode())
        yield _chunked(b"data: [DONE]\n\n") + _chunked(b"")


def _send(
    writer: asyncio.StreamWriter, status: int, value: object, headers: Mapping[str, str] = {}
) -> None:
    body = json.dumps(value).encode()
    more = "".join(f"{name}: {text}\r\n" for name, text in headers.items())
    head = (
        f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    )
    writer.write(f"{head}{more}\r\n".encode() + body)


def _send_error(writer: asyncio.StreamWriter, refusal: Refusal) -> None:
    error = {"message": refusal.message, "type": refusal.kind, "param": None, "code": None}
    _send(writer, refusal.status, {"error": error}, refusal.headers)


def _chunked(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


@contextmanager
def serving(server: ModelServer) -> Iterator[ModelServer]:
    """The server, while the block runs."""
    server.start()
    try:
        yield server
    finally:
        server.stop()
