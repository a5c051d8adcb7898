import os
import subprocess
import time

for _ in range(3):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.setpgid(0, 0)
            os.closerange(0, 256)
            time.sleep(300)
        os._exit(0)
subprocess.Popen(["/bin/sh", "-c", "trap '' TERM HUP INT; sleep 300"], start_new_session=True)
print("They are away.")
