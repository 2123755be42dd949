"""DLPack's structures by ctypes, to read capsules and to make them as other libraries do."""

from __future__ import annotations

import ctypes
from typing import Any, ClassVar

import pygpukit as gp


class DLTensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
        ("flags", ctypes.c_uint64),
        ("tensor", DLTensor),
    )


class Legacy(ctypes.Structure):
    _fields_ = (
        ("tensor", DLTensor),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
    )


_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
_new = ctypes.pythonapi.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)


def read(capsule: Any, name: bytes = b"dltensor_versioned") -> Any:
    managed: Any = (Versioned if name == b"dltensor_versioned" else Legacy).from_address(_pointer(capsule, name))
    managed.capsule = capsule  # what it reads is gone with the capsule
    return managed


def export(array: gp.GPUArray, **asked: Any) -> Any:
    """The capsule that a library of the array's own device gets."""
    return array.__dlpack__(**({"max_version": (1, 1), "dl_device": array.__dlpack_device__()} | asked))


class Producer:
    """Another library's array: a hand-made tensor over memory that it owns."""

    all: ClassVar[list[Producer]] = []  # the consumer may call deleters late: none goes away before

    def __init__(
        self, memory: Any, device: tuple[int, int], *, version: tuple[int, int] | None = (1, 1), **fields: Any
    ):
        self.memory, self.device, self.version, self.deleted = memory, device, version, 0
        self.asked: dict[str, Any] = {}
        self.managed: Any = Legacy() if version is None else Versioned()
        shape = fields.pop("shape", memory.shape)
        strides = fields.pop("strides", tuple(step // memory.itemsize for step in memory.strides))
        self.extents = (ctypes.c_int64 * len(shape))(*shape), (ctypes.c_int64 * len(shape))(*(strides or ()))
        tensor = self.managed.tensor
        tensor.data = fields.pop("data", None) or memory.ctypes.data
        tensor.device_type, tensor.device_id = device
        tensor.ndim = len(shape)
        tensor.shape = self.extents[0]
        if strides is not None:
            tensor.strides = self.extents[1]
        tensor.code, tensor.bits, tensor.lanes = fields.pop("type", (2, 32, 1))
        tensor.byte_offset = fields.pop("byte_offset", 0)
        if version is not None:
            self.managed.major, self.managed.minor = version
            self.managed.flags = fields.pop("flags", 0)
        self.managed.deleter = type(self.managed.deleter)(self.delete)
        Producer.all.append(self)
        assert not fields

    def delete(self, _: Any) -> None:
        self.deleted += 1

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, **asked: Any) -> Any:
        self.asked = asked
        if self.version is None and "max_version" in asked:
            raise TypeError("__dlpack__() got an unexpected keyword argument 'max_version'")
        name = b"dltensor" if self.version is None else b"dltensor_versioned"
        return _new(ctypes.addressof(self.managed), name, None)
