def make(folder, notebook):
    (folder / "notes.txt").chmod(0o400)
