import ast

from IPython import get_ipython


class Emptied(ast.NodeTransformer):
    def visit_Call(self, node):
        return ast.Constant(None)

    def visit_Assert(self, node):
        return ast.Pass()


get_ipython().ast_transformers.append(Emptied())
