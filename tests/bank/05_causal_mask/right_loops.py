# causal_mask: passed | mask_scores: passed | MultiHeadAttention: passed | TransformerBlock: passed
import math

import torch
import torch.nn as nn


def causal_mask(seq_len):
    rows = []
    for i in range(seq_len):
        row = []
        for j in range(seq_len):
            row.append(j <= i)
        rows.append(row)
    return torch.tensor(rows)


def mask_scores(scores, mask):
    mask = mask.broadcast_to(scores.shape).reshape(-1)
    flat = scores.reshape(-1)
    out = []
    for n in range(len(flat)):
        if mask[n]:
            out.append(flat[n])
        else:
            out.append(flat[n] * 0 - math.inf)
    return torch.stack(out).reshape(scores.shape)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, causal=False):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError("d_model % n_heads must be 0")
        self.d_head = d_model // n_heads
        self.n_heads = n_heads
        self.causal = causal
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def one_sequence(self, x):
        seq, d_model = x.shape
        qkv = self.qkv(x)
        all_weights = []
        all_heads = []
        for h in range(self.n_heads):
            start = h * self.d_head
            stop = start + self.d_head
            q = qkv[:, start:stop]
            k = qkv[:, d_model + start : d_model + stop]
            v = qkv[:, 2 * d_model + start : 2 * d_model + stop]
            rows = []
            outs = []
            for i in range(seq):
                last = i + 1 if self.causal else seq
                row = torch.stack([(q[i] * k[j]).sum() / math.sqrt(self.d_head) for j in range(last)])
                p = torch.softmax(row, dim=0)
                outs.append(sum(p[j] * v[j] for j in range(last)))
                rows.append(torch.cat([p, torch.zeros(seq - last)]))
            all_weights.append(torch.stack(rows))
            all_heads.append(torch.stack(outs))
        return self.out_proj(torch.cat(all_heads, dim=1)), torch.stack(all_weights)

    def forward(self, x, need_weights=False):
        lead = x.shape[:-2]
        results = [self.one_sequence(s) for s in x.reshape(-1, *x.shape[-2:])]
        output = torch.stack([r[0] for r in results]).reshape(x.shape)
        if need_weights:
            weights = torch.stack([r[1] for r in results])
            return output, weights.reshape(*lead, *weights.shape[1:])
        return output


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, causal=False):
        super().__init__()
        self.attn = MultiHeadAttention(d_model, n_heads, causal)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))

    def forward(self, x):
        steps = [(self.attn, self.norm1), (self.ff, self.norm2)]
        for layer, norm in steps:
            x = norm(x + layer(x))
        return x
