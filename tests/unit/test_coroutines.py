"""A loop of one's own: it lives on between calls, and works inside of another loop."""

import asyncio
import contextvars
import gc
import threading

import pytest

from fanfold.coroutines import OwnLoop

WHO = contextvars.ContextVar("who", default="nobody")


@pytest.fixture
def own():
    loop = OwnLoop()
    yield loop
    loop.close()


async def loop_and_thread():
    await asyncio.sleep(0)
    return asyncio.get_running_loop(), threading.get_ident()


def test_it_runs_in_this_thread_and_stays_the_same(own):
    first, thread = own.run(loop_and_thread())
    assert thread == threading.get_ident()
    assert own.run(loop_and_thread()) == (first, thread)
    assert own.call(asyncio.get_running_loop) is first
    own.close()
    assert first.is_closed()


async def stops():
    asyncio.get_running_loop().stop()
    await asyncio.sleep(0)
    WHO.set("stopper")
    await asyncio.sleep(0)
    return WHO.get()


def test_it_goes_on_when_it_is_stopped_and_says_so(own, capsys):
    assert own.run(stops()) == "stopper"
    assert "stopped the event loop" in capsys.readouterr().err
    assert WHO.get() == "nobody"
    assert own.run(loop_and_thread())[1] == threading.get_ident()


def test_an_exception_that_is_like_that_of_a_stopped_loop_comes_through(own):
    async def raises():
        asyncio.get_running_loop().stop()
        await asyncio.sleep(0)
        raise RuntimeError("Event loop stopped before Future completed.")

    with pytest.raises(RuntimeError, match="Event loop stopped"):
        own.run(raises())


def test_inside_of_another_loop_it_runs_beside_it(own):
    first, _ = own.run(loop_and_thread())

    async def cell_of_a_notebook():
        found, thread = own.run(loop_and_thread())
        assert found is first and found is not asyncio.get_running_loop()
        assert thread != threading.get_ident()
        with pytest.raises(KeyError):
            own.run(failing())
        own.close()

    async def failing():
        raise KeyError("x")

    asyncio.run(cell_of_a_notebook())
    assert first.is_closed()


def test_a_coroutine_sees_what_its_caller_sees(own):
    async def who():
        return WHO.get()

    assert own.run(who()) == "nobody"
    token = WHO.set("me")
    try:
        assert own.run(who()) == "me"

        async def inside():
            return own.run(who())

        assert asyncio.run(inside()) == "me"
    finally:
        WHO.reset(token)


def test_a_loop_that_is_forgotten_is_closed():
    own = OwnLoop()
    loop, _ = own.run(loop_and_thread())
    del own
    gc.collect()
    assert loop.is_closed()


def test_an_interrupt_comes_through_and_the_loop_lives_on(own, caplog):
    async def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        own.run(interrupted())
    own.run(loop_and_thread())
    gc.collect()
    assert caplog.records == [], "asyncio has nothing to complain of"
