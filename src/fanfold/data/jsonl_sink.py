"""``write_jsonl``: records as lines of JSON.

Owns the file and how it stays right. The decision, and why:

* Lines are appended to the file itself, each root's in one write, so that at any moment the file is valid
  and holds every finished root once. A file that is only put in place at the end would hide
  finished work and lose it in a crash.
* A run replaces records by key: records of keys that it does not touch stay. A file emptied at the start would
  cost hours of work if a run over other inputs (or a mistaken one) is given the same folder.
* To replace without rewriting, the earlier file is set aside (``.records.jsonl.previous``) when the sink
  opens. When it closes, those of its lines whose keys were not written again follow, and it is
  removed. After a crash both files are there; the next run puts them together first.

So no key ever has two records, none is lost, and nothing else is left after a run. Writes reach the operating
system at once and the disk when the sink closes: a crash of the process loses nothing, one of the
machine what the disk had not got.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from fanfold.data.json_values import NotJson, as_fields, encode
from fanfold.data.locks import open_locked
from fanfold.data.sinks import Commit, RootRecords, Sink, local_folder, make_folder
from fanfold.errors import SinkError, SinkValueError
from fanfold.failures import Failure

_KEY_FIRST: Final = b'{"key": "'


def write_jsonl(path: str | os.PathLike[str]) -> Sink:
    """A sink of JSON Lines: one record a line, ``key`` first.

    A dict (or dataclass, or model of pydantic) is the record, with ``key`` added; any other value becomes
    ``{"key": …, "value": …}``. An output of a child level writes one record per item, with the key and one
    ordinal for each level below the root: ``{"key": …, "page": 3, …}``.

    Arrays become lists, dates text; JSON has no NaN and no infinity, so both are written as ``null``. A root
    whose record has what JSON has no form for, such as bytes or a set, fails.

    Args:
        path: A file that ends in ``.jsonl`` or ``.ndjson``, or a folder, which gets ``records.jsonl``.
            Records of earlier runs are replaced key by key.

    Raises:
        UsageError: The path is a URL.

    Example:
        >>> write_jsonl("out/")
        write_jsonl('out/records.jsonl')
    """
    local_folder(os.fspath(path), "write_jsonl()")
    file = Path(path)
    if file.suffix not in (".jsonl", ".ndjson"):
        file = file / "records.jsonl"
    return _Jsonl(file.absolute(), str(file))


class _Jsonl(Sink):
    def __init__(self, file: Path, target: str) -> None:
        self._file = file
        self._target = target
        self._previous = file.with_name(f".{file.name}.previous")
        self._forgotten: set[str] = set()
        self._has_previous = False
        self._handle: int | None = None
        self._end = 0

    @property
    def folder(self) -> Path:
        return self._file.parent

    @property
    def target(self) -> str:
        return self._target

    def __repr__(self) -> str:
        return f"write_jsonl({self._target!r})"

    def check(self) -> None:
        make_folder(self._file.parent)
        if self._file.is_dir():
            raise SinkError("FF325", f"{self._target} is a folder; records need a file there.")
        for path in (self._file, self._previous):
            if path.exists() and not path.is_file():
                raise SinkError(
                    "FF325",
                    f"{path} is no ordinary file; records need one there.",
                    "Remove it, or write somewhere else.",
                )

    def open(self) -> None:
        held = None
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            if self._file.exists():
                held, _ = open_locked(self._file, self._target)
                self._reunite()
                os.replace(self._file, self._previous)
            self._handle, _ = open_locked(self._file, self._target, os.O_CREAT | os.O_APPEND)
            self._end = os.fstat(self._handle).st_size
            self._has_previous = self._previous.exists()
        except OSError as error:
            raise self._failed("opened", error) from error
        finally:
            if held is not None:
                os.close(held)

    def prepare(self, records: RootRecords) -> Commit:
        lines: list[bytes] = []
        for item in records.items:
            fields: dict[str, Any] = {"key": records.key}
            fields.update(zip(records.levels, item.ordinals, strict=True))
            try:
                value = as_fields(item.value)
                record = value if isinstance(value, Mapping) else {"value": value}
                lines.append(encode(_joined(fields, record)))
            except Exception as error:  # also what the value's own methods raise
                ours = isinstance(error, NotJson)
                why = error if ours else Failure.from_exception(error).message
                where = "".join(
                    f", {n} {i}" for n, i in zip(records.levels, item.ordinals, strict=True)
                )
                raise SinkValueError(
                    "FF326",
                    f"the record of {records.key!r}{where} cannot be written to {self._target}: {why}.",
                    "Let a stage turn it into text, numbers, lists and dicts (bytes: base64), or write "
                    "it with write_files.",
                ) from error
        if not lines:
            return lambda: self.forget(records.key)
        return lambda: self._append(b"".join(lines))

    def forget(self, key: str) -> None:
        if self._has_previous:
            self._forgotten.add(key)

    def close(self) -> None:
        if self._handle is None:
            return
        handle, self._handle = self._handle, None
        try:
            try:
                self._reunite()
                os.fsync(handle)
            finally:
                os.close(handle)
        except OSError as error:
            raise self._failed("completed", error) from error

    # ------------------------------------------------------------------------------ the file

    def _append(self, data: bytes) -> None:
        assert self._handle is not None, "the sink is open"
        try:
            _write_all(self._handle, data)
        except OSError as error:
            with contextlib.suppress(OSError):  # the disk is full: no half of a line may stay
                os.ftruncate(self._handle, self._end)
            raise self._failed("written", error) from error
        self._end += len(data)

    def _reunite(self) -> None:
        """Append what the earlier file has under other keys, and remove it.

        Done again from the start if it was interrupted: lines that were appended already have their keys in
        the file, and a line without its end is cut off first.
        """
        with open(self._file, "r+b") as file:
            keys, whole = _read_keys(file)
            file.truncate(whole)
            file.seek(whole)
            if not self._previous.exists():
                return
            keys |= self._forgotten
            with open(self._previous, "rb") as previous:
                kept = _kept(previous, keys)
                file.writelines(kept)
            file.flush()
            os.fsync(file.fileno())
        self._previous.unlink()
        self._end = os.stat(self._file).st_size

    def _failed(self, what: str, error: OSError) -> SinkError:
        return SinkError(
            "FF328",
            f"{self._target} cannot be {what}: {error}.",
            "Records committed before stay valid; make room and run again.",
        )


def _joined(fields: dict[str, Any], value: Mapping[Any, Any]) -> dict[str, Any]:
    """The record: key and ordinals first. A field of the same name must say the same."""
    for name in fields:
        if name in value and value[name] != fields[name]:
            raise NotJson(
                f"it has a field {name!r} of its own ({value[name]!r}), where the sink puts "
                f"{fields[name]!r}; give that field another name"
            )
    return {**fields, **value}


def _key_of(line: bytes) -> str | None:
    """A line's key without decoding the whole record; None if it has none."""
    try:
        if line.startswith(_KEY_FIRST):
            text = line.decode()
            key, _ = json.decoder.scanstring(text, len(_KEY_FIRST))  # type: ignore[attr-defined]
        else:
            record = json.loads(line)
            key = record.get("key") if isinstance(record, dict) else None
    except ValueError:
        return None
    return key if isinstance(key, str) else None


def _read_keys(lines: Iterable[bytes]) -> tuple[set[str], int]:
    """The keys of a file, and its length in bytes up to its last whole line."""
    keys: set[str] = set()
    whole = 0
    for line in lines:
        if line.endswith(b"\n"):
            whole += len(line)
            if (key := _key_of(line)) is not None:
                keys.add(key)
    return keys, whole


def _kept(lines: Iterable[bytes], keys: set[str]) -> Iterator[bytes]:
    """The whole lines of a file but those of ``keys``; lines that are no records of ours stay."""
    for line in lines:
        if line.endswith(b"\n") and _key_of(line) not in keys:
            yield line


def _write_all(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]
