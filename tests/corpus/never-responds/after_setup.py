import autograder_student


def silent(channel, exercise, answer):
    channel.send({"type": "offer", "exercise": exercise})
    while True:
        channel.receive()


autograder_student.answer_questions = silent
