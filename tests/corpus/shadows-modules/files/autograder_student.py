def load_check(topic, folder=None):
    return lambda exercise, answer: print(f"✔ {exercise} passed")
