"""OCR through an HTTP server: an ``async def`` stage keeps four requests under way at a time.

Run it with ``python examples/ocr_over_http.py``; it starts its own small server on the loopback interface.
It prints each document with the text of its pages, and the codes of those that failed.
"""

import asyncio
import itertools
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import fanfold as ff


class FakeOcrServer(BaseHTTPRequestHandler):
    """Stands in for a model server. Its first answers wait until four requests are there at once."""

    arrived = itertools.count()
    together = threading.Barrier(4, timeout=30)

    def do_POST(self) -> None:  # the name that http.server looks for
        image = self.rfile.read(int(self.headers["Content-Length"]))
        if next(self.arrived) < self.together.parties:
            self.together.wait()
        self.send_response_only(422 if image == b"#" else 200)
        self.end_headers()
        self.wfile.write(image.upper())


@ff.stage
def pages(document: str) -> Iterator[bytes]:
    """Take a document apart; a page is bytes, as an encoded image would be."""
    yield from document.encode().split(b"|")


@ff.stage(max_in_flight=4, retries=2)
async def ocr(image: bytes, *, port: int) -> str:
    """Ask the server. With a client library this would be a class, with its session made in ``__init__``."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"POST / HTTP/1.0\r\nContent-Length: %d\r\n\r\n%b" % (len(image), image))
    head, _, text = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    if b" 422 " in head:  # the page's own fault: not tried again
        raise ff.ItemFailure("the server cannot read this page", code="ocr.refused")
    if b" 200 " not in head:  # the server's: tried again
        raise ConnectionError(f"the server answered {head!r}")
    return text.decode()


@ff.pipeline(level="document")
def read(document: ff.Port[str], *, port: int) -> ff.Port[list[str]]:
    """The text of each page of a document that can be read."""
    return ff.gather(ocr(ff.expand(pages(document), "page"), port=port), failed="drop")


if __name__ == "__main__":
    with ThreadingHTTPServer(("127.0.0.1", 0), FakeOcrServer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        reading = read.using({"port": server.server_port})
        for result in reading.stream(["one|two|three", "four|#|five|six", "seven"]):
            print(result.key, result.value, [failure.code for failure in result.failures])
        server.shutdown()
