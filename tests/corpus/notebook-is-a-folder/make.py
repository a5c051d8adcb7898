def make(folder, notebook):
    (folder / "01_self_attention.ipynb").mkdir()
