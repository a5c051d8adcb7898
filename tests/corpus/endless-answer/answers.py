def attention(q, k, v):
    while True:
        q = q + 1
