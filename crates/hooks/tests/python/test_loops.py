"""Which event loop a call runs on. Nothing here waits for time to pass: the events that are waited for are made up."""

import asyncio
import importlib.util
import threading
import unittest
from unittest import mock

from hosted import SOURCES

spec = importlib.util.spec_from_file_location("loops", SOURCES / "loops.py")
loops = importlib.util.module_from_spec(spec)
spec.loader.exec_module(loops)


def waiting(wait):
    """Has every wait for a loop go this way."""
    event = type("Waiting", (threading.Event,), {"wait": wait})
    return mock.patch.object(loops, "Event", event)


def too_late(event, timeout):
    """The loop takes the call up just after the time is over."""
    threading.Event.wait(event)
    return False


def half_a_second_late(event, timeout):
    """The loop takes the call up after half a second in all."""
    event.waited = getattr(event, "waited", 0) + timeout
    return event.waited > 0.5 and threading.Event.wait(event)


class Abandoned(BaseException):
    pass


def abandoned(event, timeout):
    raise Abandoned()


async def loop_of_call():
    return asyncio.get_running_loop()


class Choice(unittest.TestCase):
    def setUp(self):
        self.loops = loops.Loops()

    def run_call(self):
        future, _ = self.loops.start(loop_of_call())
        return future.result(20)

    def hold(self):
        """Holds the loop, and returns what lets go of it."""
        held, gate = threading.Event(), threading.Event()

        async def hold():
            held.set()
            gate.wait()

        self.loops.start(hold())
        held.wait(20)
        self.addCleanup(gate.set)
        return gate

    def test_a_loop_that_takes_a_call_up_in_the_last_moment_is_not_held(self):
        first = self.run_call()
        with waiting(too_late):
            self.assertIs(self.run_call(), first)
            self.assertIs(self.run_call(), first)

    def test_a_loop_that_is_late_on_a_busy_machine_is_not_held(self):
        first = self.run_call()
        with waiting(half_a_second_late):
            self.assertIs(self.run_call(), first)

    def test_a_held_loop_is_passed_over_until_it_is_free_again(self):
        first = self.run_call()
        gate = self.hold()
        with mock.patch.object(loops, "PATIENCE", 0):
            future, second = self.loops.start(loop_of_call())
        self.assertIsNot(second, first)
        self.assertIs(future.result(20), second)
        gate.set()
        # What it has not done yet of what it was given comes before this.
        asyncio.run_coroutine_threadsafe(loop_of_call(), first).result(20)
        self.assertIs(self.run_call(), first)

    def test_nobody_can_choose_a_new_loop_before_its_first_call_is_there(self):
        schedule = asyncio.run_coroutine_threadsafe
        choosable = []

        def watched(coroutine, events):
            choosable.extend(loop for loop in self.loops._all if loop.events is events)
            return schedule(coroutine, events)

        with mock.patch.object(asyncio, "run_coroutine_threadsafe", watched):
            self.run_call()
        self.assertEqual(choosable, [])

    def test_a_call_that_is_abandoned_before_it_begins_never_does(self):
        first = self.run_call()
        gate = self.hold()
        begun = []

        async def begin():
            begun.append(True)

        with waiting(abandoned), self.assertRaises(Abandoned):
            self.loops.start(begin())
        gate.set()
        asyncio.run_coroutine_threadsafe(loop_of_call(), first).result(20)
        self.assertEqual(begun, [])


if __name__ == "__main__":
    unittest.main()
