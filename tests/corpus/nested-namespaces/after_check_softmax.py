import ctypes
import os
import time

if os.fork() == 0:
    ctypes.CDLL(None).unshare(0x10000000 | 0x20000000)
    for _ in range(6):
        if os.fork() == 0:
            held = bytearray(b"x" * (500 * 2**20))
            time.sleep(30)
    time.sleep(30)
time.sleep(30)
