"""``File``: one input file, wherever it lies, as a small value that travels to the workers.

Owns how a file is named, opened and brought to this machine. Knows nothing of listings or of runs.
Local files are themselves. A remote file's local copy is made at most once per node: copies lie in one
folder for each process that made ``File`` objects (its *scope*), workers of any process share them, and the
folder goes when that process ends; folders whose process was killed are removed by the next one.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import IO, Any, Final

from fanfold.errors import SourceError

_COPIES: Final = "fanfold-copies"


class File:
    """A file of a source: a path or URL, with its size; the bytes are read where they are needed.

    Args:
        path: A local path, or a URL that fsspec can open (``s3://…``, ``file://…``).
        size: Size in bytes where it is known already; otherwise it is looked up when asked for.
        location: The absolute path or URL to open if ``path`` is only how the user wrote it.

    Files are equal if they are at the same location, hash accordingly and pickle small.

    Example:
        >>> file = File("corpus/letter.pdf")
        >>> file.name, file.suffix, file.is_local
        ('letter.pdf', '.pdf', True)
    """

    __slots__ = ("_location", "_scope", "_size", "path")

    path: str
    """As the user wrote it (a match of a glob: relative to how the glob was written)."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        size: int | None = None,
        *,
        location: str | None = None,
    ) -> None:
        self.path = os.fspath(path)
        self._size = size
        if location is None:
            location = self.path if is_url(self.path) else os.path.abspath(self.path)
        self._location = location
        self._scope = "" if "://" not in location else _own_scope()

    @property
    def name(self) -> str:
        """The last part of the path: ``letter.pdf``."""
        return self.path.rstrip("/").rpartition("/")[2]

    @property
    def suffix(self) -> str:
        """The name's ending with its dot, in lower case: ``.pdf``; empty if there is none."""
        return os.path.splitext(self.name)[1].lower()

    @property
    def is_local(self) -> bool:
        """Whether the file lies in this machine's file system."""
        return "://" not in self._location

    @property
    def location(self) -> str:
        """The absolute path, or the URL."""
        return self._location

    @property
    def size(self) -> int:
        """Size in bytes.

        Raises:
            OSError: The file is not there (any more).
        """
        if self._size is None:
            if self.is_local:
                self._size = os.stat(self._location).st_size
            else:
                filesystem, inner = _filesystem(self._location)
                self._size = int(filesystem.size(inner))
        return self._size

    def open(self) -> IO[bytes]:
        """Open the file for reading bytes; use it in a ``with`` statement.

        Raises:
            OSError: It cannot be opened.
        """
        if self.is_local:
            return open(self._location, "rb")
        filesystem, inner = _filesystem(self._location)
        handle: IO[bytes] = filesystem.open(inner, "rb")
        return handle

    def read_bytes(self) -> bytes:
        """The whole content.

        Raises:
            OSError: It cannot be read.
        """
        with self.open() as handle:
            return handle.read()

    def local(self) -> Path:
        """A path in this machine's file system, for libraries that want one.

        A local file is its own; of a remote one a copy is made the first time that anybody on this node
        asks. The copy is for reading only.

        Raises:
            OSError: The file cannot be read, or the copy cannot be written.
        """
        if self.is_local:
            return Path(self._location)
        copy = self._copy_path()
        if not copy.exists():
            copy.parent.mkdir(parents=True, exist_ok=True)
            with _only_one(copy.with_name(copy.name + ".lock")):
                if not copy.exists():
                    partial = copy.with_name(copy.name + ".partial")
                    with self.open() as source, open(partial, "wb") as target:
                        shutil.copyfileobj(source, target, 1 << 20)
                    os.replace(partial, copy)
        return copy

    def drop_local_copy(self) -> None:
        """Remove the copy that :meth:`local` made, if there is one; a local file stays."""
        if not self.is_local:
            copy = self._copy_path()
            copy.unlink(missing_ok=True)
            copy.with_name(copy.name + ".lock").unlink(missing_ok=True)

    def _copy_path(self) -> Path:
        digest = hashlib.blake2b(self._location.encode(), digest_size=12).hexdigest()
        # The name's ending stays: libraries tell formats by it.
        return _copies_root() / self._scope / (digest + self.suffix)

    def __fspath__(self) -> str:
        return str(self.local())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, File) and other._location == self._location

    def __hash__(self) -> int:
        return hash(self._location)

    def __repr__(self) -> str:
        return f"File({self.path!r})"

    def __getstate__(self) -> tuple[str, int | None, str, str]:
        return (self.path, self._size, self._location, self._scope)

    def __setstate__(self, state: tuple[str, int | None, str, str]) -> None:
        self.path, self._size, self._location, self._scope = state


def is_url(path: str) -> bool:
    """Whether fsspec must open it: it has a scheme, such as ``s3://``."""
    scheme, separator, _ = path.partition("://")
    return bool(separator) and scheme.replace("+", "").replace("-", "").isalnum()


def import_fsspec(path: str) -> Any:
    """The fsspec package, imported only where a URL is used (it costs 80 ms).

    Raises:
        SourceError: It is not installed.
    """
    try:
        import fsspec
    except ImportError:
        raise SourceError(
            "FF306", f"opening {path!r} needs the package fsspec.", "Run: pip install fsspec"
        ) from None
    return fsspec


def _filesystem(url: str) -> tuple[Any, str]:
    filesystem, inner = import_fsspec(url).core.url_to_fs(url)
    return filesystem, str(inner)


def _copies_root() -> Path:
    return Path(tempfile.gettempdir()) / f"{_COPIES}-{os.getuid()}"


@functools.cache
def _own_scope() -> str:
    """This process's folder of local copies; made when needed, removed when the process ends."""
    root = _copies_root()
    owner = os.getpid()
    scope = str(owner)
    if root.is_dir():
        for left in root.iterdir():
            if left.name == scope or not _is_alive(left.name):
                shutil.rmtree(left, ignore_errors=True)
    atexit.register(_remove_scope, root / scope, owner)
    return scope


def _is_alive(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except (ProcessLookupError, ValueError):
        return False
    except PermissionError:
        return True
    return True


def _remove_scope(folder: Path, owner: int) -> None:
    if os.getpid() == owner:  # a forked child runs the same exit functions
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _only_one(path: Path) -> Any:
    """One process of this node at a time."""
    import fcntl  # not there on every platform, and only remote files need it

    with open(path, "w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
