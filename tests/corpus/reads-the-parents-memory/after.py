import ctypes

libc = ctypes.CDLL(None, use_errno=True)


class Part(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


read = []
space = ctypes.create_string_buffer(64)
here = Part(ctypes.cast(space, ctypes.c_void_p), 64)
for pid in [0, *range(2, 200)]:
    there = Part(0x400000, 64)
    if libc.process_vm_readv(pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0) > 0:
        read.append(pid)
    if libc.ptrace(16, pid, None, None) == 0:  # PTRACE_ATTACH
        read.append(pid)
print("Read:", read)
