import ipywidgets
from IPython.display import display

slider = ipywidgets.IntSlider(description="<script>alert(1)</script>")
display(slider, ipywidgets.HTML("<script>alert(1)</script>"))
out = ipywidgets.Output()
with out:
    print("inside")
display(out)
slider.value = 7
