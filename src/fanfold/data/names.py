"""File names made of keys: readable, safe on every common file system, and never the same for two keys.

Owns that mapping; it looks at nothing but the key, so that every run finds the same name. A key's slashes
become folders. What a name cannot hold is percent-encoded, ``%`` itself too, so that the mapping is one to
one; only names too long for a file system are cut and told apart by a digest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

_UNSAFE: Final = frozenset('%\\:*?"<>|')
_LIMIT_BYTES: Final = 200
"""Leaves room for suffixes below the 255 bytes that file systems allow."""


def path_of_key(key: str, *endings: str) -> str:
    """The relative path of the file (or folder) of a key, with slashes; the last part has ``endings[0]``.

    No folder on the way to it ends in one of ``endings``, which tell what belongs to one key alone.

    Example:
        >>> path_of_key("corpus/Entwurf #2; Übersicht.pdf", ".md")
        'corpus/Entwurf #2; Übersicht.pdf.md'
        >>> path_of_key("/data/../a:b", ".md")
        '%2Fdata/%2E%2E/a%3Ab.md'
    """
    parts: list[str] = []
    pending = ""
    for part in key.split("/"):
        if part:
            parts.append(pending + _escaped(part))
            pending = ""
        else:
            pending += "%2F"
    if pending:
        parts.append(pending)
    folders = [_short(_no_leaf(part, endings)) for part in parts[:-1]]
    return "/".join([*folders, _short(parts[-1]) + endings[0]])


def safe_name(name: str) -> str:
    """One file name; unlike a key it may not lead into folders.

    Example:
        >>> safe_name("page 1.png"), safe_name("../x")
        ('page 1.png', '%2E.%2Fx')
    """
    return _short(_escaped(name).replace("/", "%2F"))


def _escaped(part: str) -> str:
    text = "".join(_encoded(c) if c in _UNSAFE or not _printable(c) else c for c in part)
    if text.startswith("."):  # hidden, or "..", which leads out of the folder
        text = "%2E" + text[1:]
    if text[-1:] in (".", " "):  # Windows drops them
        text = text[:-1] + _encoded(text[-1])
    return text


def _printable(character: str) -> bool:
    return character == " " or character.isprintable()


def _encoded(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))


def _no_leaf(folder: str, endings: Sequence[str]) -> str:
    """A folder's name that cannot be another key's own."""
    for ending in endings:
        if folder.endswith(ending):
            return folder[: -len(ending)] + _encoded(ending[0]) + ending[1:]
    return folder


def _short(part: str) -> str:
    data = part.encode()
    if len(data) <= _LIMIT_BYTES:
        return part
    digest = hashlib.blake2b(data, digest_size=8).hexdigest()
    return data[: _LIMIT_BYTES - 17].decode(errors="ignore") + "~" + digest
