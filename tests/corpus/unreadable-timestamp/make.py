def make(folder, notebook):
    (folder / "timestamp.txt").write_bytes(b"\xff\xfe tomorrow \0 99999999999999999999")
