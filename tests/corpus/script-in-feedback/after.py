from IPython.display import HTML, SVG, Javascript, Latex, Markdown, display

BAD = "<script>document.title = 1</script><img src=x onerror='alert(1)'>"
display(HTML(BAD), Javascript("alert(1)"), Markdown(BAD), Latex(BAD))
display(SVG(data="<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'><script>1</script></svg>"))
display({"image/png": '" onerror="alert(1)', "text/plain": BAD}, raw=True)
display({"text/html": BAD, "text/plain": "</pre>" + BAD, "application/javascript": "alert(1)"}, raw=True)
print("\x1b[31m" + BAD + "\x1b[0m</pre></section></main>" + BAD)
# %%
import sys

print("<a href='javascript:alert(1)' onmouseover='alert(1)'>here</a>", file=sys.stderr)
# </pre><script>alert("source")</script>
raise type("<script>alert(1)</script>", (Exception,), {})("<script>alert(1)</script>")
