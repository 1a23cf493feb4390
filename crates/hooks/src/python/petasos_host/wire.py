"""Frames on the pipes to the server: four bytes of length, most significant first, and so many bytes of JSON.

Everything from outside is bound here once, before plugins are imported: what they put in place of a library's function
does not reach the protocol.
"""

from json import JSONDecoder, JSONEncoder
from math import isfinite
from os import close, getpid, register_at_fork, write
from struct import Struct
from threading import Lock

# The server ends a host that sends more in one frame.
MAX_FRAME = 16 * 1024 * 1024

HEAD = Struct(">I")
DECODER = JSONDecoder()
ENCODER = JSONEncoder(ensure_ascii=False, allow_nan=False, skipkeys=True, separators=(",", ":"), default=str)


class NotJson(Exception):
    """A value that cannot be sent."""


def encode(value):
    """The bytes of a value. What JSON does not know becomes text, and null if it is a number."""
    try:
        try:
            text = ENCODER.encode(value)
        except ValueError:
            text = ENCODER.encode(finite(value))
    except (ValueError, TypeError, RecursionError) as error:
        raise NotJson(str(error)) from error
    data = text.encode("utf-8", "replace")
    if len(data) > MAX_FRAME:
        raise NotJson("it has %d bytes; at most %d are allowed" % (len(data), MAX_FRAME))
    return data


def finite(value):
    """A value with None for each number in it that JSON does not know, such as NaN."""
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items() if finite(key) is not None or key is None}
    return [finite(item) for item in value] if isinstance(value, (list, tuple)) else value


class Wire:
    """The two pipes. One thread reads at a time; any may write."""

    def __init__(self, inbox, outbox):
        self._inbox = inbox
        self._outbox = outbox
        self._writing = Lock()
        self._owner = getpid()
        register_at_fork(after_in_child=self._let_go)

    def read(self):
        """The next frame; None when the server has gone."""
        head = self._inbox.read(4)
        if len(head) < 4:
            return None
        (length,) = HEAD.unpack(head)
        data = self._inbox.read(length)
        return DECODER.decode(data.decode("utf-8")) if len(data) == length else None

    def write(self, value):
        """Sends a frame, whole or not at all."""
        data = encode(value)
        frame = memoryview(HEAD.pack(len(data)) + data)
        with self._writing:
            # A process that a plugin has forked has nothing to say to the server.
            while frame and getpid() == self._owner:
                frame = frame[write(self._outbox, frame):]

    def is_ours(self):
        """Whether this is still the process that the server has started."""
        return getpid() == self._owner

    def _let_go(self):
        """Closes the pipes in a forked process, so that the server sees the end of its own child."""
        self._writing = Lock()
        for descriptor in (self._inbox.fileno(), self._outbox):
            try:
                close(descriptor)
            except OSError:
                pass
