"""``File``: values that travel, and local copies made once."""

import pickle
import subprocess
import sys

import fsspec
import pytest

from fanfold.data.files import File


@pytest.fixture
def remote():
    """A file that is not in the local file system."""
    memory = fsspec.filesystem("memory")
    memory.pipe("/depot/scan.TIF", b"pixels")
    file = File("memory://depot/scan.TIF")
    yield file
    file.drop_local_copy()
    memory.rm("/depot", recursive=True)


def test_a_local_file_is_itself(tmp_path):
    path = tmp_path / "a b.tar.GZ"
    path.write_bytes(b"123")
    file = File(path)
    assert (file.name, file.suffix, file.size) == ("a b.tar.GZ", ".gz", 3)
    assert file.local() == path
    with file.open() as handle:
        assert handle.read() == b"123"
    with open(file) as handle:  # it is a path, too
        assert handle.read() == "123"
    file.drop_local_copy()
    assert path.exists()


def test_it_means_the_same_file_after_the_working_folder_changed(tmp_path, monkeypatch):
    (tmp_path / "x").write_bytes(b"here")
    monkeypatch.chdir(tmp_path)
    file = File("x")
    monkeypatch.chdir("/")
    assert pickle.loads(pickle.dumps(file)).read_bytes() == b"here"
    assert file == File(tmp_path / "x")
    assert hash(file) == hash(File(tmp_path / "x"))


def test_a_pickle_is_small_and_complete():
    file = File("corpus/a.pdf", 17)
    blob = pickle.dumps(file)
    assert len(blob) < 300
    again = pickle.loads(blob)
    assert (again.path, again.size, again.location) == ("corpus/a.pdf", 17, file.location)


def test_a_remote_file_is_copied_once(remote):
    copy = remote.local()
    assert copy.read_bytes() == b"pixels"
    assert copy.suffix == ".tif"
    made = copy.stat().st_ino
    assert pickle.loads(pickle.dumps(remote)).local().stat().st_ino == made
    remote.drop_local_copy()
    assert not copy.exists()


def test_copies_go_with_the_process_that_made_the_files():
    code = """
import fsspec
from fanfold.data.files import File
fsspec.filesystem("memory").pipe("/a.txt", b"x")
print(File("memory://a.txt").local())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    from pathlib import Path

    copy = Path(done.stdout.strip())
    assert copy.name.endswith(".txt")
    assert not copy.parent.exists()


def test_a_missing_file_says_so():
    with pytest.raises(FileNotFoundError):
        File("/nowhere/at/all").open()
