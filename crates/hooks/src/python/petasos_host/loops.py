"""Event loops for asynchronous code, each on a thread of its own.

A plugin has one loop, so that what it keeps from call to call (clients, locks, tasks) stays usable. Code that holds
the loop instead of awaiting holds up only what awaits something there at that moment: a call that the loop does not
take up in time runs on another one.
"""

from threading import Event, Lock, Thread

# How long a loop has to take up a call, in seconds. A busy machine may leave a sound one waiting for a while, and
# what its plugin keeps is of no use on another.
PATIENCE = 1
# In how many pieces that is waited for: a call that is abandoned notices between two of them.
PIECES = 10


class Loops:
    """The loops of one plugin; none before there is something to await."""

    def __init__(self):
        self._choosing = Lock()
        self._all = []

    def start(self, awaitable):
        """Begins to await something, and returns its future and the loop that it belongs to."""
        tried = []
        while True:
            with self._choosing:
                free = [loop for loop in self._all if not loop.is_held and loop not in tried]
                if not free:
                    # Its first call is there before others can choose it, so that none of them can hold it up.
                    new = Loop()
                    first = Attempt(new, awaitable)
                    self._all.append(new)
                    return first.future, new.events
            tried.append(free[0])
            attempt = Attempt(free[0], awaitable)
            if attempt.succeeds():
                return attempt.future, free[0].events


class Loop:
    """One loop."""

    def __init__(self):
        from asyncio import new_event_loop

        self.events = new_event_loop()
        self.is_held = False
        self.deciding = Lock()
        Thread(target=self.events.run_forever, name="event-loop", daemon=True).start()


class Attempt:
    """A call that waits for a loop to take it up."""

    def __init__(self, loop, awaitable):
        from asyncio import run_coroutine_threadsafe

        self._loop = loop
        self._awaitable = awaitable
        self._begun = Event()
        self._is_given_up = False
        self.future = run_coroutine_threadsafe(self._begin(), loop.events)

    async def _begin(self):
        """Awaits something, unless whoever wants it has gone elsewhere with it."""
        with self._loop.deciding:
            self._loop.is_held = False
            if self._is_given_up:
                return None
            self._begun.set()
        return await self._awaitable

    def succeeds(self):
        """Waits for the loop to take the call up, and gives it up in the end."""
        try:
            is_in_time = any(self._begun.wait(PATIENCE / PIECES) for _ in range(PIECES))
        except BaseException:
            # It was abandoned. If it has not begun it must not, and if it has it ends.
            self._is_given_up = True
            self.future.cancel()
            raise
        return is_in_time or not self._give_up()

    def _give_up(self):
        """Takes the call back, unless the loop has just taken it up. Only in the first case is the loop held."""
        with self._loop.deciding:
            if self._begun.is_set():
                return False
            self._loop.is_held = self._is_given_up = True
            return True
