import os
import signal

os.kill(0, signal.SIGKILL)
os.killpg(os.getpgrp(), signal.SIGKILL)
print("It lives.")
