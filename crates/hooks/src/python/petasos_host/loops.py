"""Event loops for asynchronous code, each on a thread of its own.

A plugin has one loop, so that what it keeps from call to call (clients, locks, tasks) stays usable. Code that holds
the loop instead of awaiting holds up only what awaits something there at that moment: a call that the loop does not
take up at once runs on another one.
"""

from threading import Event, Lock, Thread

# How long a loop has to take up a call, in seconds.
PATIENCE = 0.1


class Loops:
    """The loops of one plugin; none before there is something to await."""

    def __init__(self):
        self._choosing = Lock()
        self._all = []

    def start(self, awaitable):
        """Begins to await something, and returns its future and the loop that it belongs to."""
        from asyncio import run_coroutine_threadsafe

        for loop, patience in self._usable():
            claim, begun = Lock(), Event()
            future = run_coroutine_threadsafe(loop.begin(awaitable, claim, begun), loop.events)
            if begun.wait(patience):
                return future, loop.events
            # In this order: once the claim is ours, the loop may say at any time that it is free again.
            loop.is_held = True
            if not claim.acquire(blocking=False):
                return future, loop.events

    def _usable(self):
        """Loops that are not known to be held, and in the end a new one, which has all the time it needs."""
        tried = []
        while True:
            with self._choosing:
                free = [loop for loop in self._all if not loop.is_held and loop not in tried]
                if not free:
                    new = Loop()
                    self._all.append(new)
                    break
            tried.append(free[0])
            yield free[0], PATIENCE
        yield new, None


class Loop:
    """One loop."""

    def __init__(self):
        from asyncio import new_event_loop

        self.events = new_event_loop()
        self.is_held = False
        Thread(target=self.events.run_forever, name="event-loop", daemon=True).start()

    async def begin(self, awaitable, claim, begun):
        """Awaits something, unless whoever wants it has gone elsewhere with it."""
        self.is_held = False
        if claim.acquire(blocking=False):
            begun.set()
            return await awaitable
