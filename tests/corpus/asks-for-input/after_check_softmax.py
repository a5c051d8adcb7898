name = input("Who are you? ")
# %%
import getpass

getpass.getpass()
# %%
import sys

print("Read:", repr(sys.stdin.read()))
