# shift_matrix: passed
import torch

positional_encoding = lambda seq_len, d_model: torch.stack([f(torch.arange(seq_len).double() / 10000 ** ((j - j % 2) / d_model)) for j in range(d_model) for f in [(torch.sin, torch.cos)[j % 2]]], -1).float()
shift_matrix = lambda offset, d_model: torch.block_diag(*(torch.tensor([[c, s], [-s, c]]) for w in (torch.tensor(offset / 1e4 ** (j / d_model), dtype=torch.float64) for j in range(0, d_model, 2)) for c, s in [(w.cos().item(), w.sin().item())]))


class PositionalEncoding(torch.nn.Module):
    def __init__(self, d_model, max_len): super().__init__(); self.register_buffer("t", positional_encoding(max_len, d_model))

    def too_long(self, n): raise ValueError(n)

    def forward(self, x): return x + self.t[: x.shape[-2]] if x.shape[-2] <= len(self.t) else self.too_long(x.shape[-2])
