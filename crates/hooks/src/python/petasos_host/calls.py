"""Calls between the server and the code of plugins, in both directions.

A few threads take turns at reading. Whoever has read a call carries it out itself, while another reads on: a call
costs no hand-over, and one that blocks holds up nobody else.
"""

import ctypes
from contextvars import ContextVar
from itertools import count
from os import _exit, register_at_fork
from threading import Event, Lock, Thread, get_ident
from traceback import format_exc

from .wire import NotJson

# Threads that wait for work beside the one that reads.
SPARE_WORKERS = 2

# The call of the server that the present code runs for.
current = ContextVar("petasos_call", default=None)


OVER_LIMIT = {"error": "it was over its time limit"}


class Abandoned(BaseException):
    """Raised in a callback that is over its time limit."""


class Refused(Exception):
    """The server says no to what was asked of it."""


class Calls:
    """Reads calls and carries them out with `operations`, and lets plugin code ask the server."""

    def __init__(self, wire, operations):
        self._wire = wire
        self._operations = operations
        self._reading = Lock()
        self._state = Lock()
        self._waiting = 0
        self._under_way = {}
        self._awaited = {}
        self._asked = {}
        self._numbers = count(1)
        register_at_fork(after_in_child=self._forget)

    def work(self):
        """Reads and carries out calls until the server goes. Many threads do."""
        while True:
            with self._state:
                if self._waiting > SPARE_WORKERS:
                    return
                self._waiting += 1
            message = {}
            try:
                self._take_turn(message)
            except Abandoned:
                self._answer_abandoned(message.get("id"))

    def _take_turn(self, message):
        """Reads one message and does what it says."""
        with self._reading:
            read = self._wire.read()
            if read is None:
                end()
            message.update(read)
            op = message.get("op")
            with self._state:
                self._waiting -= 1
                alone = self._waiting == 0
            if op in self._operations:
                if alone:
                    Thread(target=self.work, daemon=True).start()
                # Before anybody else reads: the next message may be to abandon this one.
                with self._state:
                    self._under_way[message["id"]] = get_ident()
        if op in self._operations:
            self._carry_out(message)
        elif op == "abandon":
            self._abandon(message["call"])
        elif op == "ping":
            self._wire.write({"id": message["id"]})
        else:
            self._take_answer(message)

    def ask(self, op, **fields):
        """Asks something of the server and waits for the answer."""
        number = next(self._numbers)
        box = Box()
        with self._state:
            self._asked[number] = box
        try:
            self._wire.write(dict(fields, op=op, ask=number, call=current.get()))
            box.filled.wait()
        finally:
            with self._state:
                self._asked.pop(number, None)
        if "error" in box.message:
            raise Refused(box.message["error"])
        return box.message.get("result")

    def tell(self, op, **fields):
        """Tells the server something that needs no answer."""
        self._wire.write(dict(fields, op=op))

    def run(self, loops, function, *args, **kwargs):
        """What a function returns, or what comes of it on one of the loops if it is asynchronous."""
        result = function(*args, **kwargs)
        return self._wait(loops, result) if hasattr(result, "__await__") else result

    def _wait(self, loops, awaitable):
        call = current.get()
        future, _ = self._awaited[call] = loops.start(awaitable)
        try:
            return future.result()
        finally:
            self._awaited.pop(call, None)

    def _carry_out(self, message):
        call = message["id"]
        token = current.set(call)
        try:
            answer = self._operations[message["op"]](message)
        except Abandoned:
            answer = OVER_LIMIT
        except BaseException as error:
            answer = {"error": describe(error), "trace": format_exc(limit=-12)}
        finally:
            with self._state:
                self._under_way.pop(call, None)
            current.reset(token)
        if not self._wire.is_ours():
            # A plugin has forked and let its child come back to us.
            _exit(0)
        self._answer(call, answer)

    def _answer_abandoned(self, call):
        """Answers a call that was abandoned just before or after its own code ran, unless it has its answer."""
        with self._state:
            unanswered = self._under_way.pop(call, None) is not None
        if unanswered:
            self._answer(call, OVER_LIMIT)

    def _answer(self, call, answer):
        try:
            self._wire.write(dict(answer, id=call))
        except NotJson as error:
            self._wire.write({"id": call, "error": "what it returned cannot be sent: %s" % error})

    def _take_answer(self, message):
        with self._state:
            box = self._asked.get(message["ask"])
        if box is not None:
            box.message = message
            box.filled.set()

    def _forget(self):
        """In a forked process: whoever held the lock is not there."""
        self._state = Lock()

    def _abandon(self, call):
        """Raises `Abandoned` where the call is under way. Code that blocks outside Python does not notice.

        Nor does a call that is just starting a thread: the interpreter then takes the new thread for it. A host that
        does not answer is replaced, so neither is a problem.
        """
        with self._state:
            thread = self._under_way.get(call)
            if thread is not None:
                raised = ctypes.py_object(Abandoned)
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), raised)
        future, loop = self._awaited.get(call, (None, None))
        if future is not None:
            # By its own loop: while that is held, the call has not ended and must not look as if it had.
            loop.call_soon_threadsafe(future.cancel)


class Box:
    """Where a thread waits for an answer."""

    def __init__(self):
        self.filled = Event()
        self.message = {}


def describe(error):
    """An exception in one line."""
    text = str(error).strip()
    return "%s: %s" % (type(error).__name__, text) if text else type(error).__name__


def end():
    """Ends the host, as plugins that have something to put away expect it."""
    import atexit

    atexit._run_exitfuncs()
    _exit(0)
