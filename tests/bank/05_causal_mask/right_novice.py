# causal_mask: passed | mask_scores: passed | MultiHeadAttention: passed | TransformerBlock: passed
# Assignment 5
# I worked on this with my neighbour but wrote the code myself.
import math  # for the square root

import torch  # tensors
import torch.nn as nn  # layers


def causal_mask(seq_len):
    """
    This function makes the mask.

    Input: seq_len, the number of tokens
    Output: a table with True and False
    """
    # Step 1: a table full of False
    table = torch.zeros(seq_len, seq_len)
    # Step 2: go over all the rows
    for i in range(0, seq_len, 1):
        # Step 3: go over all the columns
        for j in range(0, seq_len, 1):
            # Step 4: a token sees itself and what was before it
            if j < i:
                table[i, j] = 1
            elif j == i:
                table[i, j] = 1
            else:
                table[i, j] = 0
    # Step 5: it has to be bool!!! (lost an hour on this)
    table = table.bool()
    # print(table)
    return table


def mask_scores(scores, mask):
    """
    This function puts minus infinity where the mask is False.
    """
    minus_infinity = -float("inf")
    # masked_fill wants True where it should FILL, so I turn it around
    not_mask = torch.logical_not(mask)
    new_scores = torch.clone(scores)  # do not change the old ones
    new_scores = new_scores.masked_fill(not_mask, minus_infinity)
    return new_scores


class MultiHeadAttention(nn.Module):
    """
    This class is the attention from week 2 but now with a mask.
    """

    def __init__(self, d_model, n_heads, causal=False):
        super(MultiHeadAttention, self).__init__()
        # check it first
        if not d_model % n_heads == 0:
            raise ValueError("d_model can not be divided by n_heads")
        self.d_model = d_model
        self.n_heads = n_heads
        self.d_head = int(d_model / n_heads)
        self.causal = causal
        self.qkv = nn.Linear(d_model, d_model * 3)
        self.out_proj = nn.Linear(d_model, d_model)
        self.softmax = nn.Softmax(dim=-1)

    def forward(self, x, need_weights=False):
        # remember the shape
        old_shape = list(x.shape)
        seq = old_shape[-2]
        # make it always (batch, seq, d_model)
        x = x.reshape(-1, seq, self.d_model)
        batch = x.shape[0]
        # get q k v
        everything = self.qkv(x)
        q = everything[:, :, 0 : self.d_model]
        k = everything[:, :, self.d_model : 2 * self.d_model]
        v = everything[:, :, 2 * self.d_model : 3 * self.d_model]
        # split the heads
        q = q.reshape(batch, seq, self.n_heads, self.d_head)
        k = k.reshape(batch, seq, self.n_heads, self.d_head)
        v = v.reshape(batch, seq, self.n_heads, self.d_head)
        # (batch, heads, seq, d_head)
        q = q.permute(0, 2, 1, 3)
        k = k.permute(0, 2, 1, 3)
        v = v.permute(0, 2, 1, 3)
        # the scores
        scores = torch.matmul(q, k.permute(0, 1, 3, 2))
        scores = scores / math.sqrt(self.d_head)
        # the mask (BEFORE the softmax)
        if self.causal == True:
            mask = causal_mask(seq)
            scores = mask_scores(scores, mask)
        weights = self.softmax(scores)
        # the output
        output = torch.matmul(weights, v)
        output = output.permute(0, 2, 1, 3)
        output = output.reshape(batch, seq, self.d_model)
        output = self.out_proj(output)
        # back to the old shape
        output = output.reshape(old_shape)
        weights = weights.reshape(old_shape[:-2] + [self.n_heads, seq, seq])
        if need_weights == True:
            return (output, weights)
        else:
            return output


class TransformerBlock(nn.Module):
    """
    This class is the block.
    """

    def __init__(self, d_model, n_heads, d_ff, causal=False):
        super(TransformerBlock, self).__init__()
        self.attn = MultiHeadAttention(d_model, n_heads, causal)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.ff = nn.Sequential(
            nn.Linear(d_model, d_ff),
            nn.ReLU(),
            nn.Linear(d_ff, d_model),
        )

    def forward(self, x):
        # part 1
        out1 = self.attn(x)
        out2 = x + out1
        out3 = self.norm1(out2)
        # part 2
        out4 = self.ff(out3)
        out5 = out3 + out4
        out6 = self.norm2(out5)
        return out6
