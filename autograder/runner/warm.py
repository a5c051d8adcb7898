"""Imported once by the process from which answers are forked.

One thread only: a child forked after a parallel torch operation would hang. The watching modes
import a second's worth of modules when they first see an operation, so they see one here.
"""

import torch

import autograder.runner.answers
from autograder.student.bans import watch

torch.set_num_threads(1)
with watch([]):
    torch.ones(1).exp()

__all__ = ["autograder"]
