"""A toy tokenizer in the form of the release's files, learnt from the text below.

tiktoken.model is a rank file: a line per token, base64 of its bytes, a space, its rank. The
single bytes come first, in the order the release has them (printable ones, then the others),
then tokens made by merging the most frequent neighbours of the text, again and again. Ranks
are the order of learning, which is the order in which an encoder must merge.

tokenizer_config.json names the special tokens, which take the 256 ids after the last rank at
the release's distances.
"""
import base64
import collections
import json
import os
import re

PROSE = """
A weaver keeps two things apart, the thread and the pattern. The thread is what it is, and no
patience will make a short one long. The pattern is a promise about the order in which the
threads will cross, and a promise can be kept by one pair of hands or by twenty, in a morning or
in a month, as long as nobody changes the order. When the cloth is done you cannot see how many
hands there were. You can only see whether the order was kept.

In the old mill by the river there were four looms and one stair. The wool was stored upstairs,
in the dry air under the roof, because there was more of it than the weaving room could hold.
Every morning the children carried down what the day would need. On good days the basket came
down before the weaver had finished the row, and then she never had to wait. On bad days she sat
with her hands in her lap and listened to the steps on the stair. She used to say that the loom
was not slow and that she was not slow; it was the stair that was slow, and it would be wise to
begin there if anyone wanted more cloth before the winter.

So they began there. They wrote down which colours followed which, and found that the red of one
row was often the red of the next. They left some of it in the room. They cut the heavy bales
into parts, so that four children could carry one bale together and arrive at the same moment.
They agreed on a rule for the days when a child was ill: another one went, or everybody waited,
but nobody took a brown thread for a red one because the brown one was near. It was better to be
late than to be wrong, since a cloth with a wrong thread is not a cloth that can be sold, and the
buyer will not know why he does not like it.

After a year there was no more cloth in a day than the looms could make, and that was all that
they had asked for. The stair was still the same stair. What had changed was that every step on
it was a step that somebody needed, and that it was taken before it was missed. The weaver, who
was old by then, looked at the cloth against the light and counted the threads, one by one, as
she had always done, and the number was right.
"""

# distance from the first special id, literal, "special" in tokenizer_config.json
NAMED = [
    (0, "[BOS]", True), (1, "[EOS]", True), (2, "<|end_of_msg|>", True),
    (3, "<|open|>", False), (4, "<|close|>", False), (5, "<|sep|>", False),
    (6, "[start_header_id]", True), (7, "[end_header_id]", True), (9, "[EOT]", True),
    (18, "<|media_begin|>", True), (19, "<|media_content|>", True), (20, "<|media_end|>", True),
    (21, "<|media_pad|>", True), (65, "<osagent_mode>", True), (254, "[UNK]", True),
    (255, "[PAD]", True),
]


def single_bytes():
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    return [bytes([b]) for b in printable + sorted(set(range(256)) - set(printable))]


def merged(word, pair):
    """The word with every occurrence of the pair, from the left, made one token."""
    made, i = [], 0
    while i < len(word):
        both = word[i:i + 2] == pair
        made.append(word[i] + word[i + 1] if both else word[i])
        i += 2 if both else 1
    return tuple(made)


def learn(count):
    """The first `count` tokens, in order of rank."""
    tokens = single_bytes()
    pieces = re.findall(r" ?[A-Za-z]+| ?[^\sA-Za-z]+|\s+", PROSE.strip().replace("\n", " "))
    words = collections.Counter(tuple(bytes([b]) for b in p.encode()) for p in pieces)
    while len(tokens) < count:
        pairs = collections.Counter()
        for word, times in words.items():
            for pair in zip(word, word[1:]):
                pairs[pair] += times
        if not pairs:
            raise SystemExit("--vocabulary: the text yields %d tokens, the shape has %d: "
                             "choose a smaller --vocab" % (len(tokens), count))
        best = max(pairs, key=lambda p: (pairs[p], p))
        if best[0] + best[1] not in tokens:  # two cuts of the same bytes are one token
            tokens.append(best[0] + best[1])
        words = collections.Counter({merged(w, best): n for w, n in words.items()})
    return tokens


def special_tokens(first):
    return {str(first + at): {"content": text, "lstrip": False, "normalized": False,
                              "rstrip": False, "single_word": False, "special": special}
            for at, text, special in NAMED}


def write(folder, count):
    if count < 256:
        raise SystemExit("--vocabulary: 256 bytes and 256 special tokens need --vocab 512")
    tokens = learn(count)
    with open(os.path.join(folder, "tiktoken.model"), "wb") as f:
        for rank, token in enumerate(tokens):
            f.write(base64.b64encode(token) + b" %d\n" % rank)
    with open(os.path.join(folder, "tokenizer_config.json"), "w") as f:
        json.dump({
            "added_tokens_decoder": special_tokens(count),
            "auto_map": {"AutoTokenizer": ["tokenization_kimi.TikTokenTokenizer", None]},
            "bos_token": "[BOS]", "eos_token": "[EOS]", "pad_token": "[PAD]",
            "tokenizer_class": "TikTokenTokenizer", "unk_token": "[UNK]",
        }, f, indent=2)
        f.write("\n")
