"""What a command prints or hands over, kept within a bound, however much there is."""

from t1x.text.visible import visible


class BoundedOutput:
    """Keeps the first and the last `limit / 2` bytes of what is added; memory stays under `2 * limit`."""

    def __init__(self, limit: int) -> None:
        self._half = max(1, limit // 2)
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0
        """Bytes added so far."""

    def add(self, data: bytes) -> None:
        self.total += len(data)
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:] if room else data
        if len(self._tail) > 2 * self._half:
            del self._tail[: -self._half]

    @property
    def truncated(self) -> bool:
        return self.total > 2 * self._half

    def text(self) -> str:
        """Decoded as UTF-8 with replacement, control characters made visible, so that neither an agent's history nor a message nor
        a transcript can drive a terminal; where something was cut, a line in between says how much."""
        if not self.truncated:
            return _text(self._head + self._tail)
        tail = self._tail[-self._half :]
        head = _text(_without_broken_end(bytes(self._head)))
        end = _text(_without_broken_start(bytes(tail)))
        return f"{head}\n[... {self.total - 2 * self._half} bytes cut ...]\n{end}"


class Beginning:
    """Keeps the first `limit` bytes of what is added."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept = bytearray()
        self.total = 0
        """Bytes added so far."""

    def add(self, data: bytes) -> None:
        self.total += len(data)
        self._kept += data[: self._limit - len(self._kept)]

    def content(self) -> bytes:
        return bytes(self._kept)


def _text(data: bytes | bytearray) -> str:
    return visible(data.decode("utf-8", "replace"))


def _without_broken_start(data: bytes) -> bytes:
    """Drops the rest of a character whose beginning was cut off (at most three continuation bytes)."""
    for index in range(min(3, len(data))):
        if data[index] & 0xC0 != 0x80:
            return data[index:]
    return data[3:]


def _without_broken_end(data: bytes) -> bytes:
    """Drops the beginning of a character whose rest was cut off."""
    for back in range(1, min(4, len(data) + 1)):
        byte = data[-back]
        if byte & 0xC0 == 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data[:-back] if length > back else data
        if byte & 0xC0 != 0x80:
            break
    return data
