import os
import sys

places = ["/root", "/home", "/etc/passwd", "/etc/shadow", "/etc/hostname", "/var/lib", "/run", "/sys"]
places += [os.path.join("/root", ".ssh/id_rsa"), "/srv", "/mnt", "/opt", os.path.expanduser("~root/.bashrc")]
found = []
for place in places:
    try:
        found += os.listdir(place) if os.path.isdir(place) else [open(place).read()]
    except OSError:
        pass
on_the_way_to_python = {*sys.prefix.split("/"), *sys.base_prefix.split("/")}
print("Found:", [item for item in found if item not in on_the_way_to_python])
