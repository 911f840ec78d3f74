"""``read_files``: paths, globs, folders and URLs as a source of files.

Owns how they are listed: arguments in the order given, the matches of each one sorted, no file twice.
Local paths are listed with the standard library (fsspec costs 80 ms to import and adds nothing there), URLs
through fsspec. What a file is and how it is opened is in :mod:`fanfold.data.files`.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence

from fanfold.data.files import File, import_fsspec, is_url
from fanfold.data.sources import Source
from fanfold.errors import SourceError, UsageError

_MAGIC = frozenset("*?[")


def read_files(
    *paths: str | os.PathLike[str], suffix: str | Sequence[str] | None = None
) -> Source[File]:
    """A source of :class:`~fanfold.data.files.File`; the key of each is its path as written.

    Args:
        paths: Files, globs (``corpus/**/*.pdf``; ``**`` spans folders), folders (all files below) or URLs of
            any file system that fsspec knows. Names that begin with a dot are hidden: folders and globs leave
            such files out, and what is below such folders, unless the pattern itself has the dot
            (``corpus/.*``). Of a URL nothing is hidden. A name that exists is taken as it is, whatever
            characters are in it. Nothing is listed before the source is read.
        suffix: Keep only names that end so (``".pdf"``, upper or lower case); a file named in full always
            counts.

    Raises:
        UsageError: No path is given. When read: a path or pattern that matches no file.
        SourceError: When read: a URL that cannot be listed.

    Example:
        >>> read_files("corpus/**/*.pdf", "more/", suffix=".pdf")
        read_files('corpus/**/*.pdf', 'more/')
    """
    if not paths:
        raise UsageError(
            "FF307", "read_files() was given no path.", "Name files, folders or globs."
        )
    wanted = (suffix,) if isinstance(suffix, str) else tuple(suffix or ())
    return _Files(tuple(os.fspath(path) for path in paths), tuple(s.lower() for s in wanted))


class _Files(Source[File]):
    unique_keys = True

    def __init__(self, paths: tuple[str, ...], suffixes: tuple[str, ...]) -> None:
        self._paths = paths
        self._suffixes = suffixes

    def __iter__(self) -> Iterator[tuple[str, File]]:
        # Every argument is looked at before the first file is read: a mistyped one shows at once.
        listings = [self._matching(path) for path in self._paths]
        return self._distinct(listings)

    def __repr__(self) -> str:
        return f"read_files({', '.join(map(repr, self._paths))})"

    def _matching(self, path: str) -> Iterator[File]:
        found = _list_url(path) if is_url(path) else _list_local(path)
        if self._suffixes and not _names_one_file(path):
            found = (file for file in found if file.path.lower().endswith(self._suffixes))
        first = next(found, None)
        if first is None:
            raise self._nothing(path)
        return _chain(first, found)

    def _nothing(self, path: str) -> UsageError:
        ending = f" ending in {' or '.join(self._suffixes)}" if self._suffixes else ""
        if is_url(path):
            what = f"{path!r} matches no file{ending}."
        elif os.path.isdir(path):
            what = f"the folder {path!r} holds no file{ending}."
        elif _MAGIC & set(path):
            what = f"the pattern {path!r} matches no file{ending} (seen from {os.getcwd()!r})."
        else:
            what = f"there is no file {path!r} (seen from {os.getcwd()!r})."
        return UsageError(
            "FF308", what, "Check the path; quote globs so that the shell leaves them."
        )

    @staticmethod
    def _distinct(listings: list[Iterator[File]]) -> Iterator[tuple[str, File]]:
        seen: set[str] = set()
        keys: set[str] = set()
        for listing in listings:
            for file in listing:
                if len(listings) > 1:
                    if file.location in seen:
                        continue
                    seen.add(file.location)
                    if file.path in keys:  # the same words for two places: a folder was entered
                        raise SourceError(
                            "FF309", f"two different files are both called {file.path!r}."
                        )
                    keys.add(file.path)
                yield file.path, file


def _names_one_file(path: str) -> bool:
    return not is_url(path) and os.path.isfile(path)


def _chain(first: File, rest: Iterator[File]) -> Iterator[File]:
    yield first
    yield from rest


def _list_local(path: str) -> Iterator[File]:
    if os.path.isdir(path):
        return _walk(os.path.normpath(path))
    if os.path.lexists(path):
        return iter((_local_file(path),))
    if _MAGIC & set(path):
        matches = sorted(set(glob.glob(path, recursive=True)))
        return (_local_file(match) for match in matches if os.path.isfile(match))
    return iter(())


def _local_file(path: str, size: int | None = None) -> File:
    return File(os.path.normpath(path), size, location=os.path.abspath(path))


def _walk(folder: str) -> Iterator[File]:
    """All files below, in a stable order, listing one folder at a time."""
    with os.scandir(folder) as listing:
        entries = sorted(
            (entry for entry in listing if not entry.name.startswith(".")), key=lambda e: e.name
        )
    for entry in entries:
        path = entry.name if folder == "." else entry.path
        if entry.is_dir(follow_symlinks=False):  # a link to a folder may lead in a circle
            yield from _walk(path)
        elif entry.is_file():
            yield _local_file(path, entry.stat().st_size)


def _list_url(url: str) -> Iterator[File]:
    scheme = url.partition("://")[0]
    fsspec = import_fsspec(url)
    try:
        filesystem, inner = fsspec.core.url_to_fs(url)
        # A name that exists is taken as it is: "[1]" in it is no pattern then.
        if filesystem.isfile(inner):
            matches = {inner: filesystem.info(inner)}
        elif filesystem.isdir(inner):
            matches = filesystem.find(inner, detail=True)
        else:
            matches = filesystem.glob(inner, detail=True)
    except (ImportError, ValueError) as error:
        raise SourceError("FF306", f"{url!r} cannot be opened: {error}.") from error
    except OSError as error:
        raise SourceError("FF308", f"{url!r} cannot be listed: {error}.") from error
    for path, info in sorted(matches.items()):
        if info["type"] == "file":
            written = str(filesystem.unstrip_protocol(path))
            if not written.startswith(scheme):  # a scheme with several names keeps the user's
                written = scheme + written[written.index("://") :]
            yield File(written, info.get("size"), location=_location(scheme, path, written))


def _location(scheme: str, path: str, url: str) -> str:
    """``file://`` is local after all: no copy is ever made of such a file."""
    return path if scheme in ("file", "local") else url
