"""The zygote: a small process that forks all others of a run, watches them, and ends them with the driver.

It is started by executing a fresh interpreter, so it inherits no lock and no thread of the driver's, and it
stays single-threaded, so forking from it is safe. What workers need is imported before the first fork.
Workers lead sessions of their own; whatever they leave behind is adopted here and killed.

Protocol, over a socket that keeps packets apart, each a pickle with its descriptors: the driver sends
:class:`Fork`, the zygote answers :class:`Forked` and, for each process that ends, :class:`Ended`. One that is
to end by itself is killed if it takes long (:class:`Retire`). ``End``, end of stream, or the driver's end by
whatever means, is the order to kill everything and go.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import pickle
import select
import signal
import socket
import sys
import time
from typing import Final, NoReturn

from fanfold.backends.local import lifeline
from fanfold.backends.local.messages import End, Ended, Fork, Forked, Retire

PRELOADED: Final = ("fanfold.byvalue", "fanfold.backends.local.process")
GRACE_S: Final = 0.3
"""How long idle workers have to go by themselves once their channels are closed."""
CLOSE_S: Final = 5.0
"""How long those have whose stages have a ``close()``."""
LOOK_S: Final = 0.1
"""How often to look whether the driver lives, where the system does not tell."""
MARK: Final = "FANFOLD_WORKER_PID"
"""In the environment of all that a worker starts: whose it is."""


def main(control_fd: int, driver: int) -> NoReturn:
    """Serve the driver until it is gone.

    Args:
        control_fd: Descriptor of the socket to the driver.
        driver: The driver's pid.
    """
    lifeline.adopt_orphans()
    lifeline.keep_to_oneself()
    control = socket.socket(fileno=control_fd)
    for name in PRELOADED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    zygote = _Zygote(control, driver)
    zygote.serve()
    os._exit(0)


class _Zygote:
    def __init__(self, control: socket.socket, driver: int) -> None:
        self._control = control
        self._driver = driver
        self._driver_fd = lifeline.watch(driver)
        self._workers: dict[int, int] = {}
        """By pid: which worker it is."""
        self._retired: dict[int, float] = {}
        """By pid: when a worker that is to end by itself is killed."""
        self._dead: set[int] = set()
        """The pids of workers that ended."""
        self._wake, self._wake_writer = os.pipe()
        os.set_blocking(self._wake_writer, False)
        os.set_blocking(self._wake, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake_writer, warn_on_full_buffer=False)

    def serve(self) -> None:
        """Serve until the driver is gone, then leave nothing behind."""
        poller = select.poll()
        poller.register(self._control, select.POLLIN)
        poller.register(self._wake, select.POLLIN)
        if self._driver_fd is not None:
            poller.register(self._driver_fd, select.POLLIN)
        look_ms = LOOK_S * 1000 if self._driver_fd is None else None
        while True:
            ready = {fd for fd, _ in poller.poll(self._patience_ms(look_ms))}
            self._kill_retired()
            if self._driver_fd in ready or os.getppid() != self._driver:
                return self._end(grace_s=0.0)
            if self._wake in ready:
                self._hear_ends()
            if self._control.fileno() in ready:
                end = self._serve_request()
                if end is not None:
                    return self._end(grace_s=GRACE_S, closing=end.closing)

    # ------------------------------------------------------------------------------ making

    def _serve_request(self) -> End | None:
        """Carry out one request; the last one is given back."""
        try:
            data, fds, _, _ = socket.recv_fds(self._control, 65_536, 8)
        except OSError:
            return End()
        request = pickle.loads(data) if data else End()
        if isinstance(request, Retire):
            if request.pid in self._workers:
                self._retired[request.pid] = time.monotonic() + CLOSE_S
            return None
        if not isinstance(request, Fork):
            return request if isinstance(request, End) else End()
        pid = os.fork()
        if pid == 0:
            self._become_worker(request, *fds)
        for fd in fds:
            os.close(fd)
        self._workers[pid] = request.worker
        self._tell(Forked(request.worker, pid))
        return None

    def _become_worker(self, request: Fork, channel: int, log: int) -> NoReturn:
        """Everything from here on runs in the new process, which never returns."""
        code = 70
        try:
            parent = os.getppid()
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            os.setsid()
            lifeline.die_with_parent(parent)
            os.environ[MARK] = str(os.getpid())
            null = os.open(os.devnull, os.O_RDONLY)
            for fd, standard in ((null, 0), (log, 1), (log, 2)):
                os.dup2(fd, standard)
            watched = () if self._driver_fd is None else (self._driver_fd,)
            for fd in (null, log, self._wake, self._wake_writer, *watched):
                os.close(fd)
            self._control.close()
            from fanfold.backends.local import process

            code = process.main(channel, request.threads, request.gpus)
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            try:
                sys.stdout.flush()
                sys.stderr.flush()
            finally:  # whatever users' code has made of these: this process must not become a zygote
                os._exit(code)

    def _tell(self, message: Forked | Ended) -> None:
        try:
            self._control.send(pickle.dumps(message))
        except OSError:
            return  # the driver is gone, which the next turn of the loop finds out

    # ------------------------------------------------------------------------------ ending

    def _hear_ends(self) -> None:
        """Reap whoever ended; kill what dead workers leave behind, then tell."""
        self._drain()
        ended: list[Ended] = []
        with contextlib.suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                worker = self._workers.pop(found[0], None)
                self._retired.pop(found[0], None)
                if worker is not None:
                    ended.append(Ended(worker, *found))
                    self._dead.add(found[0])
        for message in ended:
            lifeline.kill(message.pid)  # its group
        if self._dead:
            self._kill_strays()
        for message in ended:
            self._tell(message)

    def _patience_ms(self, look_ms: float | None) -> float | None:
        """How long to wait for something to happen."""
        if not self._retired:
            return look_ms
        left_ms = max(0.0, min(self._retired.values()) - time.monotonic()) * 1000 + 1
        return left_ms if look_ms is None else min(look_ms, left_ms)

    def _kill_retired(self) -> None:
        """Kill those that have had their time; of their end is told as of any."""
        for pid, due_s in tuple(self._retired.items()):
            if time.monotonic() >= due_s:
                del self._retired[pid]
                lifeline.kill(pid)

    def _drain(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while os.read(self._wake, 4096):
                continue

    def _kill_strays(self) -> None:
        """Kill what dead workers have started.

        It is known by its session, or by the mark in its environment. What a living worker has let go on
        purpose, a server in the background say, lives as long as that worker; what bears no mark, as long
        as the run.
        """
        me = os.getpid()
        for process in lifeline.processes():
            if process.session in self._dead:
                lifeline.kill(process.pid)
            elif process.parent == me and process.pid not in self._workers:
                mark = lifeline.environment_of(process.pid, MARK)
                if mark is not None and mark in map(str, self._dead):
                    lifeline.kill(process.pid)

    def _end(self, *, grace_s: float, closing: tuple[int, ...] = ()) -> None:
        """Wait for the idle, kill the rest, and again until no descendant is left."""
        started_s = time.monotonic()
        self._await_ends(started_s + grace_s)
        for pid, worker in self._workers.items():
            if worker not in closing:
                lifeline.kill(pid)
        if closing:
            self._await_ends(started_s + CLOSE_S)
        for pid in self._workers:
            lifeline.kill(pid)
        for _ in range(1000):  # ten seconds: only a process that hangs in the kernel takes so long
            for process in lifeline.children():
                lifeline.kill(process.pid)
            try:
                while os.waitpid(-1, os.WNOHANG)[0]:
                    continue
            except ChildProcessError:
                return  # no descendant is left: each orphan would be a child
            select.select([self._wake], [], [], 0.01)
            self._drain()

    def _await_ends(self, deadline_s: float) -> None:
        """Wait until all workers have ended, or the time is up, or the driver is gone as well."""
        watched = [self._wake] if self._driver_fd is None else [self._wake, self._driver_fd]
        while self._workers and (left_s := deadline_s - time.monotonic()) > 0:
            ready, _, _ = select.select(watched, [], [], left_s)
            if self._driver_fd in ready:
                return
            self._hear_ends()
