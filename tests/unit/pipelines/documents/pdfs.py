"""PDF files written by hand, object by object, so that tests can plant any fault in them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

HELVETICA = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"


@dataclass(frozen=True, slots=True)
class Draft:
    """A page to be: its content, its size in points, its rotation and its resources."""

    content: bytes = b""
    size: tuple[int, int] = (400, 300)
    rotate: int = 0
    xobjects: tuple[bytes, ...] = ()
    """Streams' dictionaries and data, named /X0, /X1, …"""
    font: bytes = HELVETICA


@dataclass(frozen=True, slots=True)
class LocalCopy:
    """The little that the stages want of a file."""

    path: str

    def local(self) -> str:
        return self.path


def text(*lines: str, left: int = 40, top: int = 250, mode: int = 0) -> bytes:
    """Content that shows lines of Helvetica; mode 3 is invisible."""
    shown = b" ".join(b"(%s) Tj T*" % line.encode("latin-1") for line in lines)
    return b"BT /F0 12 Tf %d Tr 16 TL %d %d Td %s ET\n" % (mode, left, top, shown)


def stream(dictionary: bytes, data: bytes) -> bytes:
    return b"<< %s /Length %d >>\nstream\n%s\nendstream" % (dictionary, len(data), data)


def grey_image(width: int, height: int, data: bytes) -> bytes:
    """A picture of one byte a pixel."""
    size = b"/Width %d /Height %d" % (width, height)
    kind = b"/Type /XObject /Subtype /Image /ColorSpace /DeviceGray /BitsPerComponent 8"
    return stream(kind + b" " + size, data)


def pdf(*drafts: Draft, missing: tuple[int, ...] = ()) -> bytes:
    """A whole file; the objects of the pages in ``missing`` are left out of it."""
    objects: dict[int, bytes] = {1: b"<< /Type /Catalog /Pages 2 0 R >>"}
    kids = []
    number = 3
    for ordinal, draft in enumerate(drafts):
        page, content, font = number, number + 1, number + 2
        pictures = range(number + 3, number + 3 + len(draft.xobjects))
        number = pictures.stop
        kids.append(b"%d 0 R" % page)
        if ordinal in missing:
            continue
        names = b" ".join(b"/X%d %d 0 R" % pair for pair in enumerate(pictures))
        objects[page] = (
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 %d %d] /Rotate %d /Contents %d 0 R "
            b"/Resources << /Font << /F0 %d 0 R >> /XObject << %s >> >> >>"
            % (*draft.size, draft.rotate, content, font, names)
        )
        objects[content] = stream(b"", draft.content)
        objects[font] = draft.font
        objects.update(zip(pictures, draft.xobjects, strict=True))
    objects[2] = b"<< /Type /Pages /Kids [%s] /Count %d >>" % (b" ".join(kids), len(drafts))
    written, places = b"%PDF-1.7\n", {}
    for index, body in sorted(objects.items()):
        places[index] = len(written)
        written += b"%d 0 obj\n%s\nendobj\n" % (index, body)
    table = len(written)
    written += b"xref\n0 %d\n0000000000 65535 f \n" % number
    for index in range(1, number):
        used = index in places
        written += b"%010d %05d %s \n" % (
            places.get(index, 0),
            0 if used else 65535,
            b"n" if used else b"f",
        )
    written += b"trailer\n<< /Size %d /Root 1 0 R >>\n" % number
    return written + b"startxref\n%d\n%%%%EOF\n" % table


def saved(folder: Path, content: bytes, name: str = "test.pdf") -> LocalCopy:
    path = folder / name
    path.write_bytes(content)
    return LocalCopy(str(path))
