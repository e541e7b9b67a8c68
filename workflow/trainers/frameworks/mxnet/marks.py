"""When MXNet's engine has finished what it was given: training runs behind the loop that asks."""

import ctypes
import math
import time

from mxnet.base import _LIB, check_call

_CPU = 1
"""The kind of device on which a mark is made; mxnet.Context.devstr2type says the same."""


class _Context(ctypes.Structure):  # mxnet::Context, as MXEnginePushSyncND takes it
    _fields_ = (("kind", ctypes.c_int), ("number", ctypes.c_int))


class Marks:
    """Marks in the engine's work, each behind the last update of some weights.

    Nothing waits for a mark: the engine calls a function when it gets there.
    Source: include/mxnet/c_api.h of MXNet 1.9.1, MXEnginePushSyncND.
    """

    def __init__(self, weights):
        self._weights = list(weights)
        handles = [weight.handle for weight in self._weights]
        self._handles = (ctypes.c_void_p * len(handles))(*handles)
        self._newest = 0
        self._passed = 0, -math.inf  # the newest mark that the engine has passed, and when
        self._called = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(self._pass)

    def mark(self):
        """Mark the end of all that the engine has been given; see contract.backend.Feed."""
        self._newest += 1
        called = self._called, ctypes.c_void_p(self._newest), None
        reads, writes = (self._handles, len(self._weights)), (None, 0)
        where = ctypes.byref(_Context(_CPU, 0))
        more = None, 0, b"reperf_mark"
        check_call(_LIB.MXEnginePushSyncND(*called, where, *reads, *writes, *more))
        return self._idle_since

    def _pass(self, _, number):
        self._passed = number, time.perf_counter()

    def _idle_since(self):
        number, seconds = self._passed
        return seconds if number == self._newest else math.inf
