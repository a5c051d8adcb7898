import os

os.close(check.channel.end.fileno())
