# next_token_loss: failed raised | TinyTransformer: failed raised | train_step: failed raised | generate: failed raised
import torch
from torch.nn import functional as F


def next_token_loss(logits, tokens):
    return F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten()


def train_step(model, optimizer, tokens):
    optimizer.zero_grad()
    loss = next_token_loss(model(tokens), tokens)
    loss.backward()
    optimizer.step()
    return loss.item()
