"""The topics, a module each: how its exercises are posed and what goes wrong in them."""

from autograder.exercises import (
    causal_mask,
    multi_head_attention,
    positional_encoding,
    self_attention,
    training,
    transformer_block,
)
from autograder.exercises.posing import Topic

TOPICS: dict[str, Topic] = {
    topic.name: topic
    for topic in (
        self_attention.TOPIC,
        multi_head_attention.TOPIC,
        positional_encoding.TOPIC,
        transformer_block.TOPIC,
        causal_mask.TOPIC,
        training.TOPIC,
    )
}
