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
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias

from fanfold.data.file_source import read_files
from fanfold.data.files import File
from fanfold.data.sources import Key, Source, Unreadable, checked_key, key_of
from fanfold.errors import SourceError, UsageError

OnError: TypeAlias = Literal["stop", "skip"]

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


def read_jsonl(
    *paths: str | os.PathLike[str], key: Key = None, on_error: OnError = "stop"
) -> Source[Any]:
    """A source of the values in JSON Lines files, one a line, read lazily; ``.gz`` is unpacked.

    Args:
        paths: Files, globs, folders (their ``.jsonl`` files) or URLs, as for ``read_files``.
        key: The field that holds the key, or a function of the value. Without it: the field ``key``, else
            ``id``, else file and line (``data.jsonl:17``).
        on_error: What a line comes to that is not JSON or has no key: it ends the run (``"stop"``), or is
            left out (``"skip"``). Lines that were left out are told with the failures, by file and line, and
            counted in the report. A file that cannot be read any further ends the run in any case.

    Raises:
        UsageError: No path is given, or ``on_error`` is unknown. When read: there is no such file.
        SourceError: When read: a line that is not JSON (file and line are named).

    Example:
        >>> read_jsonl("items.jsonl", key="url")
        read_jsonl('items.jsonl')
    """
    if on_error not in ("stop", "skip"):
        raise UsageError(
            "FF318", f"read_jsonl(on_error={on_error!r}) is unknown.", 'Use "stop" or "skip".'
        )
    files = read_files(*paths, suffix=(".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz"))
    return _Lines(files, key, skip=on_error == "skip")


class _Lines(Source[Any]):
    def __init__(self, files: Source[File], key: Key, *, skip: bool) -> None:
        self._files = files
        self._key = key
        self._skip = skip

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        files = iter(self._files)  # looked up here: a missing file shows before anything is read
        return (pair for path, file in files for pair in self._lines(path, file))

    def __repr__(self) -> str:
        return repr(self._files).replace("read_files", "read_jsonl", 1)

    def _lines(self, path: str, file: File) -> Iterator[tuple[str, Any]]:
        with _open(path, file) as lines:
            number = 0
            try:
                for number, line in enumerate(lines, 1):
                    if line.isspace():
                        continue
                    where = f"{path}:{number}"
                    try:
                        value = _value(line.removeprefix(_BYTE_ORDER_MARK), where)
                        pair = self._key_of(value, where), value
                    except SourceError as error:
                        if not self._skip:
                            raise
                        pair = where, Unreadable(f"{error.code} {error.message}")
                    yield pair
            except (OSError, EOFError, zlib.error) as error:
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


def _value(line: bytes, where: str) -> Any:
    try:
        return json.loads(line.decode())
    except UnicodeDecodeError as error:
        why = f"UTF-8: {error.reason}"
        hint = "Convert the file to UTF-8"
    except json.JSONDecodeError as error:
        why = f"valid JSON: {error.msg} (column {error.colno})"
        hint = "Each line must hold one JSON value"
    except (ValueError, RecursionError) as error:  # legal JSON, and yet too much for Python
        why = f"valid JSON for Python: {error}"
        hint = "Each line must hold one JSON value"
    raise SourceError(
        "FF310",
        f"{where} is not {why}.",
        f'{hint}; read_jsonl(…, on_error="skip") leaves such lines out and tells which.',
    )


@contextlib.contextmanager
def _open(path: str, file: File) -> Iterator[Iterable[bytes]]:
    try:
        raw = file.open()
    except OSError as error:
        raise SourceError("FF311", f"{path} cannot be read: {error}.") from error
    with raw:
        yield io.BufferedReader(gzip.GzipFile(fileobj=raw)) if path.endswith(".gz") else raw
