"""Which files belong to the repository; for checks that look at all of them."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tools.environment import ROOT


def repository_files(*patterns: str) -> list[Path]:
    """Files that git tracks, or would track, matching any of git's ``patterns`` (all without one)."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"]
    done = subprocess.run(
        [*command, *patterns], cwd=ROOT, capture_output=True, text=True, check=True
    )
    names = sorted(set(done.stdout.split("\0")) - {""})
    return [ROOT / name for name in names if (ROOT / name).is_file()]
