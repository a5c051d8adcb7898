from nbformat.v4 import new_markdown_cell


def make(folder, notebook):
    notebook.cells.insert(1, new_markdown_cell("half a pair: \udc80"))
