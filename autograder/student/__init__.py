"""The part of the autograder that students get: checks, and the judging of public cases.

It depends on torch alone, and `build.bundle` joins it to one file for each release folder.
Nothing in here knows a reference, a misconception's code or a secret case.
"""

from autograder.student.check import Check, CheckFailed, load_check

__all__ = ["Check", "CheckFailed", "load_check"]
