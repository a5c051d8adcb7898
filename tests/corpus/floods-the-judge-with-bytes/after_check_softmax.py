try:
    for _ in range(6):
        check.channel.send({"type": "response", "response": torch.zeros(15 * 2**18)})
    check.channel.receive()
except ConnectionError:
    print("The judge has had enough.")
