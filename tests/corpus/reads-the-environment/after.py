import os
import sys

print(dict(os.environ), sys.argv, sys.orig_argv, sorted(sys.modules)[:200])
print(os.getpid(), os.getppid(), os.getcwd(), os.uname(), os.getlogin if False else "")
print("The end of the environment.")
