"""The zygote: a small process that forks all others of a run, watches them, and ends them with the driver.

It is started by executing a fresh interpreter, so it inherits no lock and no thread of the driver's, and it
stays single-threaded, so forking from it is safe. What workers need is imported before the first fork.
Workers lead sessions of their own; whatever they leave behind is adopted here and killed.

Protocol, over a socket that keeps packets apart, each a pickle with its descriptors: the driver sends :class:`Fork`, the zygote
answers :class:`Forked` and, for each process that ends, :class:`Ended`. End of stream, or the driver's end
by whatever means, is the order to kill everything and go.
"""

from __future__ import annotations

import gc
import importlib
import os
import pickle
import select
import signal
import socket
import sys
import time
from typing import Final, NamedTuple, NoReturn

from fanfold.backends.local import lifeline

PRELOADED: Final = ("cloudpickle", "fanfold.backends.local.process")
GRACE_S: Final = 0.3
"""How long idle workers have to go by themselves once their channels are closed."""


class Fork(NamedTuple):
    """Make a process; three descriptors come along: its channel, its log, and nothing else."""

    worker: int
    threads: int
    """Cores that it owns: what OpenMP, BLAS and the like are sized to."""


class Forked(NamedTuple):
    worker: int
    pid: int


class Ended(NamedTuple):
    """A process ended; ``status`` as :func:`os.waitpid` gives it."""

    worker: int
    pid: int
    status: int


def main(arguments: list[str]) -> NoReturn:
    """Entry point: descriptor of the control socket, the driver's pid."""
    control_fd, driver = map(int, arguments)
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    lifeline.adopt_orphans()
    control = socket.socket(fileno=control_fd)
    for name in PRELOADED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    _Zygote(control, driver).serve()
    os._exit(0)


class _Zygote:
    def __init__(self, control: socket.socket, driver: int) -> None:
        self._control = control
        self._driver_fd = lifeline.watch(driver)
        self._workers: dict[int, int] = {}
        """By pid: which worker it is."""
        self._wake, wake_writer = os.pipe()
        os.set_blocking(wake_writer, False)
        os.set_blocking(self._wake, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake_writer, warn_on_full_buffer=False)
        self._wake_writer = wake_writer

    def serve(self) -> None:
        """Serve until the driver is gone, then leave nothing behind."""
        poller = select.poll()
        poller.register(self._control, select.POLLIN)
        poller.register(self._wake, select.POLLIN)
        if self._driver_fd is not None:
            poller.register(self._driver_fd, select.POLLIN)
        while True:
            ready = {fd for fd, _ in poller.poll()}
            if self._driver_fd in ready:
                return self._end(grace_s=0.0)
            if self._wake in ready:
                os.read(self._wake, 4096)
                self._reap(tell=True)
            if self._control.fileno() in ready and not self._serve_request():
                return self._end(grace_s=GRACE_S)

    def _serve_request(self) -> bool:
        try:
            data, fds, _, _ = socket.recv_fds(self._control, 4096, 8)
        except OSError:
            return False
        if not data:
            return False
        request = pickle.loads(data)
        pid = os.fork()
        if pid == 0:
            self._become_worker(request, *fds)
        for fd in fds:
            os.close(fd)
        self._workers[pid] = request.worker
        return self._tell(Forked(request.worker, pid))

    def _become_worker(self, request: Fork, channel: int, log: int) -> NoReturn:
        """Everything from here on runs in the new process, which never returns."""
        code = 70
        try:
            parent = os.getppid()
            signal.set_wakeup_fd(-1)
            os.setsid()
            lifeline.die_with_parent(parent)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            null = os.open(os.devnull, os.O_RDONLY)
            os.dup2(null, 0)
            os.dup2(log, 1)
            os.dup2(log, 2)
            for fd in (null, log, self._wake, self._wake_writer):
                os.close(fd)
            self._control.close()
            from fanfold.backends.local import process

            code = process.main(channel, request.threads)
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def _tell(self, message: Forked | Ended) -> bool:
        try:
            self._control.send(pickle.dumps(message))
        except OSError:
            return False
        return True

    def _reap(self, *, tell: bool) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            worker = self._workers.pop(pid, None)
            if worker is not None:
                lifeline.kill_group(pid)  # what it had started
                self._kill_orphans()
                if tell:
                    self._tell(Ended(worker, pid, status))

    def _kill_orphans(self) -> None:
        for pid in lifeline.children():
            if pid not in self._workers:
                lifeline.kill_group(pid)

    def _end(self, *, grace_s: float) -> None:
        """Wait for the idle, kill the rest, and again until no descendant is left."""
        deadline = time.monotonic() + grace_s
        while self._workers and (left := deadline - time.monotonic()) > 0:
            select.select([self._wake], [], [], left)
            try:
                os.read(self._wake, 4096)
            except BlockingIOError:
                break
            self._reap(tell=False)
        for pid in list(self._workers):
            lifeline.kill_group(pid)
        for _ in range(1000):
            self._reap(tell=False)
            self._kill_orphans()
            if not self._workers and not lifeline.children():
                return
            select.select([self._wake], [], [], 0.01)


if __name__ == "__main__":
    main(sys.argv[1:])
