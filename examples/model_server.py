"""A model server with limits: a rate, and a pause whenever the server asks for one.

Run it with ``python examples/model_server.py``; it starts its own small server on the loopback interface.
It prints each document with its answers, and how often the server said "later".
"""

import itertools
import json
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import fanfold as ff


class FakeModelServer(BaseHTTPRequestHandler):
    """Stands in for vLLM or SGLang: chat completions, and every fifth request is put off."""

    numbers = itertools.count(1)

    def do_POST(self) -> None:  # the name that http.server looks for
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        busy = next(self.numbers) % 5 == 0
        text = asked["messages"][-1]["content"].upper()
        answer = {"choices": [{"message": {"role": "assistant", "content": text}}]}
        self.send_response_only(429 if busy else 200)
        self.send_header("Retry-After", "0.1")
        self.end_headers()
        self.wfile.write(b"" if busy else json.dumps(answer).encode())


@ff.stage
def pages(document: str) -> Iterator[str]:
    """Take a document apart."""
    yield from document.split("|")


@ff.stage(replicas=2, rate_limit="100/s")  # an async def stage with max_in_flight does it too
def summary(page: str, *, port: int) -> str:
    """Urllib's exception carries the server's Retry-After, so nothing is to be done about it here."""
    body = json.dumps({"messages": [{"role": "user", "content": page}]}).encode()
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/chat/completions", body) as answer:
        return str(json.load(answer)["choices"][0]["message"]["content"])


@ff.pipeline(level="document")
def summaries(document: ff.Port[str], *, port: int) -> ff.Port[list[str]]:
    """The answers to a document's pages."""
    return ff.gather(summary(ff.expand(pages(document), "page"), port=port))


if __name__ == "__main__":
    with ThreadingHTTPServer(("127.0.0.1", 0), FakeModelServer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        asking = summaries.using({"port": server.server_port})
        for result in asking.stream(["one|two|three", "four|five|six"]):
            print(result.key, result.value, len(result.failures))
        server.shutdown()
    print("asked", next(FakeModelServer.numbers) - 1, "times for 6 pages")
