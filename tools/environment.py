"""The checkout's own environment: `.venv`, filled from lock files.

Owns where it lies, how it is made and when it is brought up to date. Knows no commands. What was
installed from a lock file is remembered by a stamp (a digest of the file, of the Python and of the
checkout's place), so that a second call costs nothing and a changed lock installs again.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "requirements"
LOCKS = ("runtime", "dev", "docs")


class SetupFailed(Exception):
    """The environment could not be made; the text says why and what to do."""


class Environment:
    """A virtual environment in the checkout that holds what lock files list, and nothing else.

    Args:
        path: The folder to keep it in.
    """

    def __init__(self, path: Path = ROOT / ".venv") -> None:
        self.path = path
        self.python = path / "bin" / "python"

    def ensure(self, *locks: str, package: bool = True) -> None:
        """Bring the environment to what ``locks`` list, and install the checkout itself.

        Raises:
            SetupFailed: The environment cannot be made, or a package cannot be installed.
        """
        self._ensure_environment()
        for lock in locks:
            self._ensure_lock(lock)
        if package:
            self._ensure_package()

    def variables(self) -> dict[str, str]:
        """This process's variables with the environment's programs first, as `activate` has it."""
        path = os.pathsep.join([str(self.path / "bin"), os.environ.get("PATH", os.defpath)])
        return os.environ | {"PATH": path, "VIRTUAL_ENV": str(self.path)}

    def _ensure_environment(self) -> None:
        mark = f"{ROOT}\n{sys.version_info[0]}.{sys.version_info[1]}"
        if self._stamp_matches("environment", mark) and self._python_works():
            return
        if self.path.exists():
            say(f"{self.path.name} belongs to another Python or place: making it anew")
            shutil.rmtree(self.path)
        else:
            say(f"making {self.path.relative_to(ROOT)}")
        options = [] if importlib.util.find_spec("ensurepip") else ["--without-pip"]
        run_quietly(
            [sys.executable, "-m", "venv", *options, str(self.path)], "make the environment"
        )
        self._write_stamp("environment", mark)

    def _ensure_lock(self, lock: str) -> None:
        file = REQUIREMENTS / f"{lock}.txt"
        mark = hashlib.sha256(file.read_bytes()).hexdigest()
        if self._stamp_matches(lock, mark):
            return
        say(f"installing {file.relative_to(ROOT)}")
        self._pip("--require-hashes", "--only-binary", ":all:", "--requirement", str(file))
        self._write_stamp(lock, mark)

    def _ensure_package(self) -> None:
        mark = hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()
        if self._stamp_matches("package", mark):
            return
        say("installing fanfold itself, editable")
        self._pip("--no-deps", "--no-build-isolation", "--editable", str(ROOT))
        self._write_stamp("package", mark)

    def _pip(self, *arguments: str) -> None:
        if (self.path / "bin" / "pip").exists():
            pip = [str(self.python), "-m", "pip"]
        elif importlib.util.find_spec("pip"):
            # Debian ships pip and ensurepip apart: the outer pip (22.3 or newer) serves as well.
            pip = [sys.executable, "-m", "pip", "--python", str(self.python)]
        else:
            raise SetupFailed(
                f"{sys.executable} has neither pip nor ensurepip, so nothing can be installed. "
                "Install one of them (Debian: python3-venv) and try again."
            )
        run_quietly(
            [*pip, "install", "--quiet", "--disable-pip-version-check", "--no-input", *arguments],
            "install with pip",
            {"PIP_REQUIRE_VIRTUALENV": "0"},
        )

    def _python_works(self) -> bool:
        try:
            return subprocess.run([self.python, "-c", ""], check=False).returncode == 0
        except OSError:
            return False

    def _stamp_matches(self, name: str, mark: str) -> bool:
        stamp = self._stamp(name)
        return stamp.exists() and stamp.read_text(encoding="utf-8") == mark

    def _write_stamp(self, name: str, mark: str) -> None:
        self._stamp(name).write_text(mark, encoding="utf-8")

    def _stamp(self, name: str) -> Path:
        return self.path / f"installed-{name}.stamp"


def say(text: str) -> None:
    """Tell a person what is being done, apart from the output of what is run."""
    print(f"./dev: {text}", file=sys.stderr, flush=True)


def run_quietly(
    command: list[str], purpose: str, environment: dict[str, str] | None = None
) -> None:
    """Run ``command`` and show its output only if it fails.

    Raises:
        SetupFailed: It failed; the text ends with its output.
    """
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=os.environ | (environment or {}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise SetupFailed(f"could not {purpose}: {' '.join(command)}\n{done.stdout.rstrip()}")
