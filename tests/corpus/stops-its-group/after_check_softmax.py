import os
import signal

os.kill(0, signal.SIGSTOP)
os.killpg(os.getpgrp(), signal.SIGSTOP)
print("It runs.")
