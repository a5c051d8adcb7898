def make(folder, notebook):
    (folder / "01_self_attention.ipynb").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\xff")
