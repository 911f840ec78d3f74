"""``read_jsonl``: the lines of JSON Lines files as a source.

Owns how lines are read and how they get their keys. Files are found as :mod:`fanfold.data.file_source`
finds them.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
from collections.abc import Iterator, Mapping
from typing import IO, Any

from fanfold.data.file_source import read_files
from fanfold.data.files import File
from fanfold.data.sources import Key, Source, checked_key, key_of
from fanfold.errors import SourceError


def read_jsonl(*paths: str | os.PathLike[str], key: Key = None) -> Source[Any]:
    """A source of the values in JSON Lines files, one a line, read lazily; ``.gz`` is unpacked.

    Args:
        paths: Files, globs, folders (their ``.jsonl`` files) or URLs, as for ``read_files``.
        key: The field that holds the key, or a function of the value. Without it: the field ``key``, else
            ``id``, else file and line (``data.jsonl:17``).

    Raises:
        UsageError: No path is given. When read: there is no such file.
        SourceError: When read: a line that is not JSON (file and line are named).

    Example:
        >>> read_jsonl("items.jsonl", key="url")
        read_jsonl('items.jsonl')
    """
    return _Lines(read_files(*paths, suffix=(".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz")), key)


class _Lines(Source[Any]):
    def __init__(self, files: Source[File], key: Key) -> None:
        self._files = files
        self._key = key

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        files = iter(self._files)  # looked up here: a missing file shows before anything is read
        return (pair for path, file in files for pair in self._lines(path, file))

    def __repr__(self) -> str:
        return repr(self._files).replace("read_files", "read_jsonl", 1)

    def _lines(self, path: str, file: File) -> Iterator[tuple[str, Any]]:
        with _open_text(path, file) as lines:
            number = 0
            try:
                for number, line in enumerate(lines, 1):
                    if line.strip():
                        value = json.loads(line)
                        yield self._key_of(value, f"{path}:{number}"), value
            except json.JSONDecodeError as error:
                raise SourceError(
                    "FF310",
                    f"{path}:{number} is not valid JSON: {error.msg} (column {error.colno}).",
                    "Each line must hold one JSON value.",
                ) from error
            except UnicodeDecodeError as error:
                raise SourceError(
                    "FF310",
                    f"{path}: after line {number} comes text that is not UTF-8: {error.reason}.",
                    "Convert the file to UTF-8.",
                ) from error
            except (OSError, EOFError) as error:
                raise SourceError(
                    "FF311", f"{path} cannot be read after line {number}: {error}."
                ) from error

    def _key_of(self, value: Any, where: str) -> str:
        if self._key is not None:
            return key_of(value, self._key, where)
        if isinstance(value, Mapping):
            for name in ("key", "id"):
                if name in value:
                    return checked_key(value[name], where)
        return where


@contextlib.contextmanager
def _open_text(path: str, file: File) -> Iterator[IO[str]]:
    try:
        raw = file.open()
    except OSError as error:
        raise SourceError("FF311", f"{path} cannot be read: {error}.") from error
    with raw:
        unpacked = gzip.GzipFile(fileobj=raw) if path.endswith(".gz") else raw
        with io.TextIOWrapper(unpacked, encoding="utf-8-sig", newline="\n") as text:
            yield text
