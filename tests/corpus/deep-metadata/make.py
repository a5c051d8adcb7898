def make(folder, notebook):
    deep: dict = {}
    for _ in range(150):
        deep = {"a": deep}
    notebook.cells[0].metadata["deep"] = deep
    notebook.metadata["deep"] = deep
