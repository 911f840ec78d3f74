"""Stages that ask a model server over HTTP, as a user would with a client library."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import fanfold as ff


class StatusError(Exception):
    """An answer that is none, as HTTP clients raise it."""

    def __init__(self, status: int, headers: Mapping[str, str], text: str) -> None:
        super().__init__(f"the server answered {status}: {text}")
        self.response = SimpleNamespace(status_code=status, headers=headers)


async def complete(port: int, text: str) -> str:
    """One chat completion."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        asked = {"model": "made-up", "messages": [{"role": "user", "content": text}]}
        body = json.dumps(asked).encode()
        head = f"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode() + body)
        first, _, rest = (await reader.read()).partition(b"\r\n\r\n")
    finally:
        writer.close()
    if not first:
        raise ConnectionError("the server has gone")
    status, *lines = first.decode("latin-1").split("\r\n")
    code = int(status.split()[1])
    headers = {n.strip().lower(): v.strip() for n, _, v in (line.partition(":") for line in lines)}
    if code >= 400:
        raise StatusError(code, headers, rest.decode())
    answer = json.loads(rest)
    return str(answer["choices"][0]["message"]["content"])


def words(document: str) -> Iterator[str]:
    yield from document.split()


async def ask(text: str, *, port: int) -> str:
    return await complete(port, text)


async def ask_politely(text: str, *, port: int) -> str:
    """Says itself when it is to be asked again."""
    try:
        return await complete(port, text)
    except StatusError as error:
        raise ff.RetryLater(float(error.response.headers["retry-after"]), error) from error


async def ask_all(texts: list[str], *, port: int) -> list[Any]:
    """A batch at a time; exceptions stay in the places of their items."""
    return list(
        await asyncio.gather(
            *(ask_politely(text, port=port) for text in texts), return_exceptions=True
        )
    )
