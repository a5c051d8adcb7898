import random

import autograder_student

assert "site-packages" in torch.__file__
assert random.random() < 1
assert hasattr(autograder_student, "judge_answer")
print("The real ones.")
