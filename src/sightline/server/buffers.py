"""Memory for long bodies."""

from __future__ import annotations

import ctypes


def allocate(length: int) -> bytearray:
    """Return `length` bytes of unspecified content, to be written over.

    Filling them with zeros first would cost as much as copying the body, and would commit the memory for a
    length that a client has only announced.
    """
    made: bytearray = _from_string_and_size(None, length)
    return made


_from_string_and_size = ctypes.pythonapi.PyByteArray_FromStringAndSize
_from_string_and_size.restype = ctypes.py_object
_from_string_and_size.argtypes = (ctypes.c_char_p, ctypes.c_ssize_t)
