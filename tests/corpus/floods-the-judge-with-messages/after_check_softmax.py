from autograder_student import ChannelClosed

try:
    for _ in range(20_000):
        check.channel.send({"type": "offer", "exercise": "softmax"})
        check.channel.receive()
except ChannelClosed:
    print("The judge has had enough.")
