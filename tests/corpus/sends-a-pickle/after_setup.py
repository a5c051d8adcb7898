import os
import pickle


class Writes:
    def __reduce__(self):
        return os.system, ("touch SUBMITTED_FOLDER/unpickled",)


data = pickle.dumps(Writes())
for text in (data, b"__import__('os').system('touch SUBMITTED_FOLDER/evaluated')"):
    os.write(3, len(text).to_bytes(8, "little") + text)
print("The pickles are sent.")
