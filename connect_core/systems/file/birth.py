"""When a file was made: the one time of a file that no write, rename or `touch` changes.

The inode of a file that was deleted is given to the next one, and its content may be equal; their births differ.
"""

from __future__ import annotations

import ctypes
import struct
from functools import cache

UNKNOWN = 0

_AT_EMPTY_PATH, _STATX_BTIME = 0x1000, 0x800
_SIZE, _BTIME_AT = 256, 80


def born_ns(fd: int) -> int:
    """Nanoseconds since 1970, of the open file; UNKNOWN (0) where the file system or the system does not tell."""
    call = _statx()
    if call is None:
        return UNKNOWN
    answer = ctypes.create_string_buffer(_SIZE)
    if call(fd, b"", _AT_EMPTY_PATH, _STATX_BTIME, answer) != 0:
        return UNKNOWN
    (mask,) = struct.unpack_from("=I", answer)
    seconds, nanoseconds = struct.unpack_from("=qI", answer, _BTIME_AT)
    return seconds * 1_000_000_000 + nanoseconds if mask & _STATX_BTIME else UNKNOWN


@cache
def _statx() -> ctypes._NamedFuncPointer | None:
    """The function of the C library; None in one of before it had it."""
    try:
        function = ctypes.CDLL(None, use_errno=True).statx
    except (AttributeError, OSError):
        return None
    function.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_uint, ctypes.c_char_p]
    function.restype = ctypes.c_int
    return function
