# next_token_loss: passed | TinyTransformer: passed | train_step: passed | generate: passed
import torch
from torch import nn


def positional_encoding(seq_len, d_model):
    angles = torch.outer(
        torch.arange(seq_len, dtype=torch.float64),
        1 / 10000 ** (torch.arange(0, d_model, 2, dtype=torch.float64) / d_model),
    )
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1).float()


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.register_buffer("table", positional_encoding(max_len, d_model))

    def forward(self, x):
        if x.shape[-2] > len(self.table):
            raise ValueError("sequence longer than the table")
        return x + self.table[: x.shape[-2]]


def split_heads(x, n_heads):
    return x.reshape(*x.shape[:-1], n_heads, x.shape[-1] // n_heads).transpose(-3, -2)


def merge_heads(x):
    return x.transpose(-3, -2).flatten(-2)


def causal_mask(seq_len):
    return torch.tril(torch.ones(seq_len, seq_len)).bool()


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, n_heads, causal=False):
        super().__init__()
        if d_model % n_heads != 0:
            raise ValueError(f"{n_heads} heads do not divide {d_model}")
        self.n_heads = n_heads
        self.causal = causal
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(self, x, need_weights=False):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q, k, v = [split_heads(t, self.n_heads) for t in (q, k, v)]
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        if self.causal:
            scores = scores.masked_fill(~causal_mask(x.shape[-2]), float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        output = self.out_proj(merge_heads(weights @ v))
        if need_weights:
            return output, weights
        return output


class TransformerBlock(nn.Module):
    def __init__(self, d_model, n_heads, d_ff, causal=False):
        super().__init__()
        self.attn = MultiHeadAttention(d_model, n_heads, causal)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model))

    def forward(self, x):
        x = self.norm1(x + self.attn(x))
        x = self.norm2(x + self.ff(x))
        return x


def next_token_loss(logits, tokens):
    """
    Computes the loss for predicting the next token.

    Parameters
    ----------
    logits : torch.Tensor
        raw scores of shape (batch, seq, vocab)
    tokens : torch.Tensor
        token ids of shape (batch, seq)

    Returns
    -------
    torch.Tensor
        a scalar
    """
    # I first forgot the shift. The logits at position t must predict the token at t + 1!
    shifted_logits = logits[:, :-1, :].contiguous()
    shifted_tokens = tokens[:, 1:].contiguous()

    # cross_entropy wants (N, C) and (N,), so flatten batch and time
    n_examples = shifted_tokens.numel()
    n_classes = logits.size(2)
    flat_logits = shifted_logits.view(n_examples, n_classes)
    flat_tokens = shifted_tokens.view(n_examples)

    # do NOT softmax here, cross_entropy does that for us
    loss_function = nn.CrossEntropyLoss(reduction="mean")
    loss = loss_function(flat_logits, flat_tokens)
    return loss


class TinyTransformer(nn.Module):
    """
    A very small GPT.

    embedding -> + positions -> block -> block -> ... -> linear
    """

    def __init__(self, vocab_size, d_model, n_heads, d_ff, n_layers, max_len, causal=True):
        super(TinyTransformer, self).__init__()

        # remember the settings, could be useful
        self.vocab_size = vocab_size
        self.d_model = d_model
        self.n_heads = n_heads
        self.d_ff = d_ff
        self.n_layers = n_layers
        self.max_len = max_len
        self.causal = causal

        # the layers
        self.embed = nn.Embedding(num_embeddings=vocab_size, embedding_dim=d_model)
        self.blocks = nn.ModuleList([])
        for layer_number in range(n_layers):
            block = TransformerBlock(d_model=d_model, n_heads=n_heads, d_ff=d_ff, causal=causal)
            self.blocks.append(block)
        self.unembed = nn.Linear(in_features=d_model, out_features=vocab_size, bias=True)

        # not a parameter, it is not learned
        pe = positional_encoding(max_len, d_model)
        self.register_buffer("positional_table", pe)

    def forward(self, tokens):
        """Returns the logits, shape (batch, seq, vocab)."""
        batch_size = tokens.size(0)
        seq_len = tokens.size(1)

        # check the length first
        if seq_len > self.max_len:
            raise ValueError("The sequence has " + str(seq_len) + " tokens, max is " + str(self.max_len))

        # step 1: embed
        x = self.embed(tokens)  # (batch, seq, d_model)

        # step 2: add positions (same for every sequence of the batch)
        pe = self.positional_table[0:seq_len, :]
        pe = pe.unsqueeze(0).repeat(batch_size, 1, 1)
        x = x + pe

        # step 3: all blocks, one after the other
        for block in self.blocks:
            x = block(x)

        # step 4: back to the vocabulary
        logits = self.unembed(x)
        return logits


def train_step(model, optimizer, tokens):
    """
    Does one step of training and returns the loss as a python number.
    """
    # 1. forget old gradients
    optimizer.zero_grad()
    # 2. forward
    logits = model(tokens)
    loss = next_token_loss(logits, tokens)
    # 3. backward
    loss.backward()
    # 4. update
    optimizer.step()
    # 5. .item() makes a float of a tensor with one number
    loss_value = loss.item()
    return loss_value


def generate(model, prompt, n_new):
    """
    Appends n_new tokens to the prompt, always the most likely one.
    """
    # keep a copy so that the prompt stays as it is
    sequence = prompt.clone()

    # no gradients needed
    with torch.no_grad():
        for step in range(n_new):
            # the model can only read max_len tokens
            if sequence.size(1) > model.max_len:
                visible = sequence[:, sequence.size(1) - model.max_len:]
            else:
                visible = sequence

            # only the last position is interesting
            logits = model(visible)
            last_logits = logits[:, visible.size(1) - 1, :]

            # greedy
            next_token = torch.argmax(last_logits, dim=1)
            next_token = next_token.reshape(-1, 1)
            sequence = torch.cat([sequence, next_token], dim=1)

    return sequence
