said = []
for name in ("written_scale", "", ["softmax"]):
    check.channel.send({"type": "offer", "exercise": name})
    said.append(check.channel.receive()["type"])
print("Said:", *said)
