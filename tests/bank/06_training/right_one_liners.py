# next_token_loss: passed | TinyTransformer: passed | train_step: passed | generate: passed
from functools import reduce
import math, torch
from torch import nn
from torch.nn import functional as F

positional_encoding = lambda n, d: (lambda a: torch.stack([a.sin(), a.cos()], -1).flatten(1).float())(torch.arange(n).double()[:, None] * 10000 ** (-torch.arange(0, d, 2).double() / d))


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, causal=False):
        super().__init__()
        if d_model % n_heads: raise ValueError((d_model, n_heads))
        self.h, self.causal, self.qkv, self.out_proj = n_heads, causal, nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)

    def forward(self, x, need_weights=False):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.h, -1)).movedim(-3, 0).transpose(-3, -2)
        s = q @ k.mT / math.sqrt(q.shape[-1])
        w = (s + torch.full(s.shape[-2:], -math.inf).triu(1) if self.causal else s).softmax(-1)
        y = self.out_proj((w @ v).transpose(-3, -2).flatten(-2))
        return (y, w) if need_weights else y


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, causal=False):
        super().__init__()
        self.attn, self.norm1, self.norm2, self.ff = MultiHeadAttention(d_model, n_heads, causal), nn.LayerNorm(d_model), nn.LayerNorm(d_model), nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))

    def forward(self, x): return self.norm2((y := self.norm1(x + self.attn(x))) + self.ff(y))


next_token_loss = lambda logits, tokens: F.cross_entropy(logits[:, :-1].mT, tokens[:, 1:])


class TinyTransformer(nn.Module):
    def __init__(self, vocab_size, d_model, n_heads, d_ff, n_layers, max_len, causal=True):
        super().__init__()
        self.max_len, self.pe = max_len, nn.Buffer(positional_encoding(max_len, d_model))
        self.embed, self.blocks, self.unembed = nn.Embedding(vocab_size, d_model), nn.ModuleList(TransformerBlock(d_model, n_heads, d_ff, causal) for _ in range(n_layers)), nn.Linear(d_model, vocab_size)

    def forward(self, tokens):
        if (n := tokens.shape[1]) > self.max_len: raise ValueError(n)
        return self.unembed(reduce(lambda x, f: f(x), self.blocks, self.embed(tokens) + self.pe[:n]))


train_step = lambda model, optimizer, tokens: [optimizer.zero_grad(), l := next_token_loss(model(tokens), tokens), l.backward(), optimizer.step(), l.item()][-1]

generate = torch.no_grad()(lambda model, prompt, n_new: reduce(lambda t, _: torch.cat([t, model(t[:, -model.max_len:])[:, -1:].argmax(-1)], 1), range(n_new), prompt))
