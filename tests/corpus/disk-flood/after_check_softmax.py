full = 0
for place in (".", "/dev/shm"):
    try:
        for number in range(60):
            with open(f"{place}/file-{number}", "wb") as file:
                file.write(b"x" * (4 * 2**20))
    except OSError:
        full += 1
print("The disk is full:", full, "times")
try:
    with open("/dev/shm/file-0", "wb") as file:
        for _ in range(60):
            file.write(b"x" * 2**20)
            file.flush()
except OSError as error:
    print("A file is too large:", error.errno)
