import os
import time

for _ in range(6):
    if os.fork() == 0:
        held = bytearray(b"x") * (450 * 2**20)
        time.sleep(30)
time.sleep(30)
