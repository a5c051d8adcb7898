print("\udc80 half")
raise ValueError("\udc80")
