%%bash
echo from bash
# %%
!echo from the shell
# %%
%load_ext autoreload
%autoreload 2
# %%
%load_ext not_there
# %%
%matplotlib inline
%timeit -n1 -r1 1 + 1
# %%
%%not_there
x
# %%
%reset -f out
# %%
%config InlineBackend.figure_format = "svg"
%pip install nothing-of-that-name
