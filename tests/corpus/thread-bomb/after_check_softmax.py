import threading

wait = threading.Event()
try:
    for _ in range(5000):
        threading.Thread(target=wait.wait, daemon=True).start()
except RuntimeError:
    print("No more threads.")
wait.set()
