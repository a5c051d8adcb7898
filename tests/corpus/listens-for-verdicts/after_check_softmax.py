heard = b""
check.channel.end.settimeout(0.5)
try:
    heard += check.channel.end.recv(4096)
except TimeoutError:
    pass
check.channel.end.settimeout(None)
print("Heard:", heard)
