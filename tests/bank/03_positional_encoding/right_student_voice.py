# shift_matrix: passed
import torch
import torch.nn as nn
import math

# TASK 1
# ok so rows = positions and columns = features. even columns are sin and odd columns are cos


def positional_encoding(seq_len, d_model):
    result = torch.zeros((seq_len, d_model))
    for p in range(0, seq_len):
        for f in range(0, d_model):
            # which pair are we in?  0,0,1,1,2,2,...
            pair = int(f / 2)
            exponent = (2 * pair) / d_model
            denominator = math.pow(10000, exponent)
            the_angle = p / denominator
            is_even = f % 2 == 0
            if is_even == True:
                result[p, f] = math.sin(the_angle)
            if is_even == False:
                result[p, f] = math.cos(the_angle)
    return result


# TASK 2
# used the trig identities from wikipedia:
#   sin(a+b) = sin a cos b + cos a sin b
#   cos(a+b) = cos a cos b - sin a sin b
def shift_matrix(offset, d_model):
    answer = torch.zeros((d_model, d_model))
    f = 0
    while f < d_model:
        b = offset / math.pow(10000, f / d_model)
        # row for the sin
        answer[f][f] = math.cos(b)
        answer[f][f + 1] = math.sin(b)
        # row for the cos
        answer[f + 1][f] = -1 * math.sin(b)
        answer[f + 1][f + 1] = math.cos(b)
        f = f + 2
    return answer


# TASK 3
class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super(PositionalEncoding, self).__init__()
        self.d_model = d_model
        self.max_len = max_len
        big_table = positional_encoding(max_len, d_model)
        # buffer because it should not be trained!!
        self.register_buffer("big_table", big_table)

    def forward(self, x):
        number_of_tokens = x.shape[len(x.shape) - 2]
        if number_of_tokens > self.max_len:
            raise ValueError("the sequence is too long for me")
        else:
            small_table = self.big_table[0:number_of_tokens, :]
            y = x + small_table
            return y
