"""The topics, a module each: how its exercises are posed and what goes wrong in them."""

from autograder.exercises import multi_head_attention, self_attention
from autograder.exercises.posing import Topic

TOPICS: dict[str, Topic] = {
    topic.name: topic for topic in (self_attention.TOPIC, multi_head_attention.TOPIC)
}
