"""Values with tensors in them as plain bytes, in the safetensors format.

One format serves the case files and the messages between a kernel and the judge. It is written
here, in a page, because the student side may depend on torch alone; the safetensors library reads
what `pack` writes. A file is 8 bytes of header length, a JSON header, and the raw tensors; the
structure around the tensors is a second JSON text in the header's metadata. Nothing is ever
executed or unpickled on reading.
"""

from __future__ import annotations

import ctypes
import json
import math
from typing import Any

import torch
from torch import Tensor

DTYPES = {
    "F32": torch.float32,
    "F64": torch.float64,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
DTYPE_NAMES = {dtype: name for name, dtype in DTYPES.items()}
_Key = tuple[str, tuple[int, ...], bytes]  # dtype, shape, entries
_PLACE = "$tensor"
_MAX_HEADER = 64 * 2**20
_LARGEST_SIZE = 2**40
_MOST_DIMENSIONS = 64


class MalformedData(ValueError):
    """Bytes that are not a value written by `pack`."""


def pack(value: Any) -> bytes:
    """Bytes of `value`: dicts with string keys, lists, strings, numbers, None and dense tensors."""
    tensors: dict[_Key, int] = {}
    structure = json.dumps(_lift_out(value, tensors), separators=(",", ":"))
    header: dict[str, Any] = {"__metadata__": {"structure": structure}}
    chunks, offset = [], 0
    for (dtype, shape, raw), index in tensors.items():
        offsets = [offset, offset + len(raw)]
        header[str(index)] = {"dtype": dtype, "shape": list(shape), "data_offsets": offsets}
        chunks.append(raw)
        offset += len(raw)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # the format asks for tensors that start at a multiple of 8
    return len(text).to_bytes(8, "little") + text + b"".join(chunks)


def unpack(data: bytes) -> Any:
    """The value that `pack` wrote; MalformedData for anything else."""
    try:
        return _unpack(data)
    except MalformedData:
        raise
    except (ValueError, LookupError, TypeError, AttributeError, RuntimeError) as error:
        raise MalformedData(f"not a packed value ({error})") from error


def _unpack(data: bytes) -> Any:
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or length > min(len(data) - 8, _MAX_HEADER):
        raise MalformedData("the header is longer than the data")
    header = json.loads(data[8 : 8 + length].decode())
    body = memoryview(data)[8 + length :]
    structure = json.loads(header.pop("__metadata__")["structure"])
    tensors = {name: _read_tensor(entry, body) for name, entry in header.items()}
    return _put_back(structure, tensors)


def _read_tensor(entry: dict[str, Any], body: memoryview) -> Tensor:
    dtype, shape = DTYPES[entry["dtype"]], entry["shape"]
    start, end = entry["data_offsets"]
    if not all(type(n) is int and 0 <= n <= _LARGEST_SIZE for n in [*shape, start, end]):
        raise MalformedData("a shape or an offset is not a natural number, or too large")
    if len(shape) > _MOST_DIMENSIONS:
        raise MalformedData("a tensor has too many dimensions")
    if not start <= end <= len(body) or end - start != math.prod(shape) * dtype.itemsize:
        raise MalformedData("a tensor's size does not match its shape")
    if start == end:
        return torch.zeros(0, dtype=dtype).reshape(shape)
    return torch.frombuffer(bytearray(body[start:end]), dtype=dtype).reshape(shape)


def tensor_bytes(tensor: Tensor) -> bytes:
    """The tensor's entries in row-major order, bit for bit."""
    plain = tensor.detach().cpu().contiguous()
    if plain.numel() == 0:
        return b""
    return ctypes.string_at(plain.data_ptr(), plain.numel() * plain.element_size())


def _lift_out(value: Any, tensors: dict[_Key, int]) -> Any:
    """The structure, with each tensor's number in its place; equal tensors are kept once."""
    if isinstance(value, Tensor):
        key = (DTYPE_NAMES[value.dtype], tuple(value.shape), tensor_bytes(value))
        return {_PLACE: tensors.setdefault(key, len(tensors))}
    if isinstance(value, dict):
        return {key: _lift_out(item, tensors) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_lift_out(item, tensors) for item in value]
    return value


def _put_back(value: Any, tensors: dict[str, Tensor]) -> Any:
    if isinstance(value, dict):
        if set(value) == {_PLACE}:
            return tensors[str(value[_PLACE])]
        return {key: _put_back(item, tensors) for key, item in value.items()}
    if isinstance(value, list):
        return [_put_back(item, tensors) for item in value]
    return value
