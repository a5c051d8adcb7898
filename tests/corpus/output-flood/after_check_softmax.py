for _ in range(3000):
    print("x" * 1000)
# %%
from IPython.display import display

for number in range(3000):
    display({"text/plain": "y" * 2000}, raw=True)
# %%
print("z" * 30_000_000)
