import os

print("It reads:", [open(name).read() for name in ("secret.txt", "right.py") if os.path.exists(name)])
