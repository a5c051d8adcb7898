"""Judging, grading and reporting for the transformer course.

`student` ships to students; everything beside it is the instructor's.
"""

__version__ = "0.1.0"
