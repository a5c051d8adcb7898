# causal_mask: passed | mask_scores: passed | MultiHeadAttention: passed | TransformerBlock: passed
import torch
from torch import einsum, nn


def causal_mask(seq_len):
    r = torch.arange(seq_len)
    return torch.ge(r.view(-1, 1), r.view(1, -1))


def mask_scores(scores, mask):
    return torch.where(mask, scores, -torch.inf)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, causal=False):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError(f"cannot split {d_model} features into {n_heads} heads")
        self.n_heads, self.causal = n_heads, causal
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x, need_weights=False):
        d = self.qkv.in_features
        w = self.qkv.weight.view(3, self.n_heads, d // self.n_heads, d)
        b = self.qkv.bias.view(3, self.n_heads, 1, d // self.n_heads)
        q, k, v = (einsum("...td,hed->...hte", x, w[i]) + b[i] for i in range(3))
        scores = einsum("...te,...se->...ts", q, k) * (d // self.n_heads) ** -0.5
        if self.causal:
            scores = mask_scores(scores, causal_mask(x.shape[-2]))
        weights = torch.softmax(scores, -1)
        heads = einsum("...hts,...hse->...the", weights, v)
        o = self.out_proj.weight.view(d, self.n_heads, -1)
        output = einsum("...the,dhe->...td", heads, o) + self.out_proj.bias
        return (output, weights) if need_weights else output


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, causal=False):
        super().__init__()
        self.attn = MultiHeadAttention(d_model, n_heads, causal=causal)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))

    def forward(self, x):
        y = self.norm1(x + self.attn(x))
        z = einsum("...d,fd->...f", y, self.ff[0].weight) + self.ff[0].bias
        z = einsum("...f,df->...d", z.clamp(min=0), self.ff[2].weight) + self.ff[2].bias
        return self.norm2(y + z)
