import sys
import warnings

print("loading on CPU", file=sys.stderr)


def softmax(scores, dim=-1):
    warnings.warn("slow", stacklevel=1)
    print("step 1 of 1", file=sys.stderr)
    shifted = scores - scores.amax(dim, keepdim=True)
    return shifted.exp() / shifted.exp().sum(dim, keepdim=True)
