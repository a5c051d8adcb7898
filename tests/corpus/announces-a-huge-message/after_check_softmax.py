import os

os.write(3, (2**62).to_bytes(8, "little") + b"{}")
