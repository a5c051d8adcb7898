"""Imported once by the process from which answers are forked.

One thread only: a child forked after a parallel torch operation would hang. What watching needs
is imported here too.
"""

import torch

import autograder.runner.answers
from autograder.student.bans import warm_up

torch.set_num_threads(1)
warm_up()

__all__ = ["autograder"]
