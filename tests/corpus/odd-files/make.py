import os


def make(folder, notebook):
    os.mkfifo(folder / "pipe")
    (folder / "folder").mkdir()
    (folder / "nowhere").symlink_to(folder / "missing")
    (folder / "itself").symlink_to("itself")
    (folder / "two\nlines").write_text("x")
