import socket
import urllib.request

reached = []
for address in (("127.0.0.1", 22), ("127.0.0.1", 8888), ("1.1.1.1", 53), ("169.254.169.254", 80)):
    try:
        socket.create_connection(address, timeout=1)
        reached.append(address)
    except OSError:
        pass
try:
    urllib.request.urlopen("http://example.org", timeout=1)
    reached.append("example.org")
except OSError:
    pass
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as end:
    try:
        end.sendto(b"x", ("8.8.8.8", 53))
        reached.append("8.8.8.8")
    except OSError:
        pass
print("Reached:", reached)
