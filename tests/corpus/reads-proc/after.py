import os

found = list(os.listdir("/proc"))
for name in ("self", "1", str(os.getppid()), *map(str, range(2, 60))):
    for what in ("environ", "mem", "maps", "cmdline", "root/etc/passwd", "cwd/own.txt", "fd/3"):
        try:
            with open(f"/proc/{name}/{what}", "rb") as file:
                found.append((name, what, file.read(100)))
        except OSError:
            pass
print("Found in /proc:", found)
