"""The driver's side of the zygote: starting it, asking it for processes, hearing of their ends.

Owns the zygote's process and its socket. Nothing here blocks but :meth:`Nursery.close`.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Iterable
from typing import Final

from fanfold.backends.local.messages import End, Ended, Fork, Forked, Retire
from fanfold.backends.local.zygote import CLOSE_S, MARK
from fanfold.errors import SetupError

_CLOSE_S: Final = CLOSE_S + 5.0
_GONE_S: Final = 1.0
"""How long the end of a process may come after the end of its sockets."""
_CODE: Final = (
    "import sys; fd, driver, *sys.path[:] = sys.argv[1:]; del sys.argv[1:]; "
    "from fanfold.backends.local.zygote import main; main(int(fd), int(driver))"
)


class Nursery:
    """A zygote that forks processes which have ``inherited`` open.

    The new interpreter has the driver's path, working directory, environment and flags, but nothing of its
    memory: no thread, no lock, no device.
    """

    def __init__(self, inherited: Iterable[int]) -> None:
        ours, theirs = _socket_pair()
        self.socket: socket.socket = ours
        self.socket.setblocking(False)
        self._requests: deque[tuple[bytes, tuple[socket.socket | int, ...]]] = deque()
        environment = {name: value for name, value in os.environ.items() if name != MARK}
        with contextlib.closing(theirs):
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    *subprocess._args_from_interpreter_flags(),  # type: ignore[attr-defined]
                    "-c",
                    _CODE,
                    str(theirs.fileno()),
                    str(os.getpid()),
                    *(os.path.abspath(entry) for entry in sys.path),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                # A file that the program has opened in this one's place is not inherited, and not ours.
                stderr=None if os.get_inheritable(2) else subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for the driver alone
                pass_fds=(theirs.fileno(), *inherited),
                env=environment,
            )

    def fork(self, request: Fork, channel: socket.socket, log: int) -> None:
        """Ask for a process; ``channel`` is closed when it has been handed over, ``log`` is not."""
        self._requests.append((pickle.dumps(request), (channel, log)))
        self.flush()

    def retire(self, pid: int) -> None:
        """See that a process ends whose channel is closed."""
        self._requests.append((pickle.dumps(Retire(pid)), ()))
        self.flush()

    def flush(self) -> None:
        """Send as many requests as the socket takes.

        Raises:
            SetupError: The zygote is gone.
        """
        while self._requests:
            data, fds = self._requests[0]
            numbers = [fd if isinstance(fd, int) else fd.fileno() for fd in fds]
            try:
                socket.send_fds(self.socket, [data], numbers)
            except BlockingIOError:
                return
            except OSError as error:
                raise self._gone() from error
            self._requests.popleft()
            for fd in fds:
                if not isinstance(fd, int):
                    fd.close()

    @property
    def waiting(self) -> bool:
        """Whether requests are queued for when the socket can take them."""
        return bool(self._requests)

    def hear(self) -> list[Forked | Ended]:
        """What has happened.

        Raises:
            SetupError: The zygote is gone.
        """
        heard: list[Forked | Ended] = []
        while True:
            try:
                data = self.socket.recv(4096)
            except BlockingIOError:
                return heard
            except OSError:
                data = b""
            if not data:
                raise self._gone()
            heard.append(pickle.loads(data))

    def close(self, closing: Iterable[int] = ()) -> None:
        """End all processes; idle ones whose channels are closed end by themselves.

        Args:
            closing: Of those, the workers whose stages have a ``close()``.
        """
        for _, fds in self._requests:
            for fd in fds:
                if not isinstance(fd, int):
                    fd.close()
        self._requests.clear()
        with contextlib.suppress(OSError):
            self.socket.send(pickle.dumps(End(tuple(closing))))
        self.socket.close()
        try:
            self._process.wait(_CLOSE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _gone(self) -> SetupError:
        how = "does not answer"
        with contextlib.suppress(subprocess.TimeoutExpired):
            how = reason(self._process.wait(_GONE_S))
        return SetupError(
            "FF405",
            f"the process that starts workers {how}, and all workers with it.",
            "If the system ended it for want of memory, use fewer replicas or smaller batches.",
        )


def reason(code: int) -> str:
    """How a process ended, in words; a negative code is a signal's number."""
    if code >= 0:
        return f"exited with code {code}"
    with contextlib.suppress(ValueError):
        return f"was killed by {signal.Signals(-code).name}"
    return f"was killed by signal {-code}"


def _socket_pair() -> tuple[socket.socket, socket.socket]:
    """Two connected sockets that keep messages apart."""
    try:
        return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    except (AttributeError, OSError):
        return socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
