"""``write_files``: a folder with one file (or one folder of files) per root.

Owns where each root's file lies and how it gets there: written in full under a temporary name next to the
rest, then renamed, so that a name stands for a whole file at any moment. Writing a key again replaces its
file; a rerun overwrites key by key.

The temporary names are in ``.fanfold-writing.SUFFIX``, in a folder that each run makes for itself there.
Beside it lies the file whose lock keeps a second run out; whoever holds it clears away what killed runs left.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from fanfold.data.locks import open_locked
from fanfold.data.names import path_of_key, safe_name
from fanfold.data.sinks import Commit, RootRecords, Sink, local_folder, make_folder
from fanfold.errors import SinkError, SinkValueError, UsageError
from fanfold.failures import Failure

FOLDER_ENDING: Final = ".files"
"""Tells a root's folder, with the suffix before it, from those of its key's slashes and of other sinks."""

_LOCK: Final = "lock"
_CONTENT: Final = (str, bytes, bytearray, memoryview)
"""What a file holds."""


def write_files(path: str | os.PathLike[str], suffix: str = ".txt") -> Sink:
    """A sink that writes each root's value as a file of its own, named from the key.

    ``str`` is written as UTF-8, ``bytes`` (``bytearray``, ``memoryview``) as they are. Text for which UTF-8 has
    no form (half a surrogate pair, say from a broken PDF) fails its root. A dict of names to ``str`` or
    ``bytes`` becomes a folder with these files, whose name ends in ``.files`` (``a.pdf.txt.files``); so does an
    output of a child level, whose files are named by ordinals (``00003.txt``). The slashes of a key become
    folders; what a file name cannot hold is percent-encoded.

    Args:
        path: The folder. Sinks with other suffixes may write into it too: none touches what another wrote.
        suffix: Ending of the files' names; it is added to the key: ``a.pdf`` → ``a.pdf.txt``.

    Raises:
        UsageError: The path is a URL, or the suffix is no ending of a name.

    Example:
        >>> write_files("out/markdown", suffix=".md")
        write_files('out/markdown', suffix='.md')
    """
    local_folder(os.fspath(path), "write_files()")
    if not suffix.startswith(".") or "/" in suffix or suffix.endswith(FOLDER_ENDING):
        raise UsageError(
            "FF329",
            f"write_files() cannot use the suffix {suffix!r}.",
            'Give an ending with its dot, such as ".md".',
        )
    return _Files(Path(path).absolute(), os.fspath(path), suffix)


class _Files(Sink):
    def __init__(self, folder: Path, target: str, suffix: str) -> None:
        self._folder = folder
        self._target = target
        self._suffix = suffix
        self._shared = folder / f".fanfold-writing{suffix}"
        self._lock: int | None = None
        self._own = self._shared
        """This run's part of it, once the sink is open."""

    @property
    def folder(self) -> Path:
        return self._folder

    @property
    def target(self) -> str:
        return f"{self._target.rstrip('/')}/*{self._suffix}"

    def __repr__(self) -> str:
        return f"write_files({self._target!r}, suffix={self._suffix!r})"

    def check(self) -> None:
        make_folder(self._folder)

    def open(self) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._lock, locked = self._lock_folder()
            if locked:
                self._clear_away_others()
            self._own = Path(tempfile.mkdtemp(dir=self._shared))
        except OSError as error:
            self._unlock()
            raise self._failed(str(self._folder), error) from error

    def prepare(self, records: RootRecords) -> Commit:
        key = records.key
        if not records.levels and isinstance(value := records.items[0].value, _CONTENT):
            data = self._bytes(value, key)
            return lambda: self._put_file(key, data)
        try:
            files = self._files(records)
        except SinkValueError:
            raise
        except Exception as error:  # a mapping of the user's own may do anything
            why = f"cannot be read: {Failure.from_exception(error).message}"
            raise self._refused(key, why, "Let a stage turn it into a dict.") from error
        return lambda: self._put_folder(key, files)

    def forget(self, key: str) -> None:
        file, folder = self._paths(key)
        try:
            file.unlink(missing_ok=True)
            if folder.is_dir():
                shutil.rmtree(folder)
        except OSError as error:
            raise self._failed(str(file), error) from error

    def close(self) -> None:
        if self._lock is None:
            return
        try:
            shutil.rmtree(self._own)
            (self._shared / _LOCK).unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # not empty: another run has begun already
                self._shared.rmdir()
        except OSError as error:
            raise self._failed(str(self._own), error) from error
        finally:
            self._unlock()

    # ------------------------------------------------------------------------------ contents

    def _files(self, records: RootRecords) -> dict[str, bytes]:
        """The files of a root's folder by name."""
        files: dict[str, bytes] = {}
        for item in records.items:
            prefix = "-".join(f"{ordinal:05d}" for ordinal in item.ordinals)
            if isinstance(item.value, Mapping):
                for name, content in item.value.items():
                    inner = safe_name(self._name(name, records.key))
                    data = self._bytes(content, records.key, f"[{name!r}]")
                    files[f"{prefix}-{inner}" if prefix else inner] = data
            else:
                files[prefix + self._suffix] = self._bytes(item.value, records.key)
        return files

    def _bytes(self, value: Any, key: str, where: str = "") -> bytes:
        if isinstance(value, str):
            try:
                return value.encode()
            except UnicodeEncodeError as error:
                raise self._refused(
                    key,
                    f"holds {value[error.start]!a} at character {error.start}, which is half a surrogate pair "
                    "and has no UTF-8",
                    'Let a stage put a "?" there, with text.encode("utf-8", "replace"), or mend the text.',
                    where,
                ) from error
        if isinstance(value, (bytes, bytearray, memoryview)):
            return bytes(value)
        raise self._refused(
            key,
            f"is of type {type(value).__name__}; a file holds str or bytes",
            "Let a stage turn it into one of them, or use write_jsonl.",
            where,
        )

    def _name(self, name: Any, key: str) -> str:
        """``name`` as plain text."""
        if isinstance(name, str) and name:
            return str.__str__(name)
        what = "that is empty" if isinstance(name, str) else f"of type {type(name).__name__}"
        raise self._refused(key, f"has a file's name {what}", "Name files by text: f'{name}.png'.")

    def _refused(self, key: str, why: str, hint: str, where: str = "") -> SinkValueError:
        return SinkValueError(
            "FF330", f"the output{where} of {key!r} for {self.target} {why}.", hint
        )

    # ------------------------------------------------------------------------------ the disk

    def _paths(self, key: str) -> tuple[Path, Path]:
        """Where a key's file and its folder lie, of which there is at most one."""
        endings = (self._suffix, FOLDER_ENDING)
        return (
            self._folder / path_of_key(key, *endings),
            self._folder / path_of_key(key, self._suffix + FOLDER_ENDING, *endings),
        )

    def _put_file(self, key: str, data: bytes) -> None:
        file, folder = self._paths(key)
        try:
            written = self._own / "file"
            written.write_bytes(data)
            file.parent.mkdir(parents=True, exist_ok=True)
            os.replace(written, file)
            if folder.is_dir():
                shutil.rmtree(folder)
        except OSError as error:
            raise self._failed(str(file), error) from error

    def _put_folder(self, key: str, files: Mapping[str, bytes]) -> None:
        file, folder = self._paths(key)
        written, replaced = self._own / "folder", self._own / "replaced"
        try:
            for left in (written, replaced):  # by a root that could not be written
                if left.is_dir():
                    shutil.rmtree(left)
            written.mkdir()
            for name, data in files.items():
                (written / name).write_bytes(data)
            folder.parent.mkdir(parents=True, exist_ok=True)
            if folder.is_dir():  # a folder that is not empty cannot be replaced in one step
                os.replace(folder, replaced)
            os.replace(written, folder)
            file.unlink(missing_ok=True)
            if replaced.is_dir():
                shutil.rmtree(replaced)
        except OSError as error:
            raise self._failed(str(folder), error) from error

    def _lock_folder(self) -> tuple[int, bool]:
        while True:
            self._shared.mkdir(exist_ok=True)
            with contextlib.suppress(FileNotFoundError):  # a run that just ended removed the folder
                return open_locked(self._shared / _LOCK, self.target, os.O_CREAT)

    def _unlock(self) -> None:
        handle, self._lock = self._lock, None
        if handle is not None:
            os.close(handle)

    def _clear_away_others(self) -> None:
        for left in self._shared.iterdir():
            if left.is_dir():
                shutil.rmtree(left)

    def _failed(self, path: str, error: OSError) -> SinkError:
        return SinkError(
            "FF328",
            f"{path} cannot be written: {error}.",
            "Records committed before stay valid; make room and run again.",
        )
