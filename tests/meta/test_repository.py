"""Rules for the repository's own files: locks, words, and the script that everything goes through."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools.commands import COMMANDS
from tools.environment import LOCKS as TOGETHER
from tools.words import findings

ROOT = Path(__file__).resolve().parents[2]
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))


def pins(lock: Path) -> list[list[str]]:
    """Each requirement of a lock file as its lines: the pin, then its hashes."""
    text = re.sub(r"(?m)^\s*#.*\n", "", lock.read_text(encoding="utf-8"))
    return [part.split(" \\\n") for part in re.split(r"\n(?=\S)", text.strip())]


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: lock.name)
def test_a_lock_pins_everything_by_hash_and_names_no_address(lock):
    assert "://" not in lock.read_text(encoding="utf-8")
    for pin, *hashes in pins(lock):
        assert re.match(r"[a-z0-9._-]+==[^ ]+( ; .+)?$", pin), pin
        assert hashes, f"{pin} has no hash"
        assert all(one.strip().startswith("--hash=sha256:") for one in hashes), pin


def test_locks_agree_so_that_they_fit_into_one_environment():
    versions: dict[str, set[str]] = {}
    for lock in (lock for lock in LOCKS if lock.stem in TOGETHER):  # others have one of their own
        by_name: dict[str, set[str]] = {}
        for pin, *_ in pins(lock):
            by_name.setdefault(pin.partition("==")[0], set()).add(pin)
        for name, found in by_name.items():
            assert versions.setdefault(name, found) == found, f"{lock.name} differs on {name}"


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("see /" + "work/notes", "a path of one machine"),
        ("index-url = https://py" + "pi.org/simple", "the address of a package host"),
        ("as issue " + "#12 asks", "how the work is organised, not what it is"),
    ],
)
def test_a_word_that_does_not_belong_would_be_found(tmp_path, monkeypatch, text, meaning):
    monkeypatch.setattr("tools.words.ROOT", tmp_path)
    file = tmp_path / "page.md"
    file.write_text(f"first line\n{text}\n")
    (found,) = findings([file])
    assert found.startswith("page.md:2 ")
    assert found.endswith(meaning)


def test_something_left_open_in_sources_would_be_found(tmp_path, monkeypatch):
    monkeypatch.setattr("tools.words.ROOT", tmp_path)
    file = tmp_path / "src" / "half.py"
    file.parent.mkdir()
    file.write_text("raise NotImplemented" + "Error\n")
    assert [found.partition(":")[0] for found in findings([file])] == ["src/half.py"]


def test_dev_lists_its_commands_and_refuses_others():
    listed = subprocess.run(
        [sys.executable, ROOT / "dev"], capture_output=True, text=True, check=True
    )
    assert all(f"  {name} " in listed.stdout for name in COMMANDS)
    refused = subprocess.run(
        [sys.executable, ROOT / "dev", "dance"], capture_output=True, text=True, check=False
    )
    assert refused.returncode == 2
    assert "there is no command 'dance'" in refused.stderr


def test_the_readme_names_only_commands_that_there_are():
    text = (ROOT / "README.md").read_text() + (ROOT / "CONTRIBUTING.md").read_text()
    named = set(re.findall(r"(?:\$ |`)\./dev ([a-z]+)", text))
    assert named <= set(COMMANDS)
    assert {"demo", "test", "check"} <= named
