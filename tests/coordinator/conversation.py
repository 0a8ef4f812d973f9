"""What the fake trunk answers in conversations: a turn's end, then the whole answer. Written with
the literals of the control tokens, which the fake trunk turns into tokens."""

END = "<|close|>message<|sep|><|end_of_msg|>"
THINK = '<|open|>message role="assistant"<|sep|><|open|>think<|sep|>'
PLAIN = '<|open|>message role="assistant"<|sep|><|open|>response<|sep|>'


def thought(text):
    return text + "<|close|>think<|sep|>"


def response(text):
    return "<|open|>response<|sep|>" + text + "<|close|>response<|sep|>"


def argument(key, kind, text):
    return '<|open|>argument key="%s" type="%s"<|sep|>%s<|close|>argument<|sep|>' % (key, kind,
                                                                                     text)


def call(index, name, *arguments):
    return '<|open|>call tool="%s" index="%d"<|sep|>%s<|close|>call<|sep|>' % (
        name, index, "".join(arguments))


def tools(*calls):
    return "<|open|>tools<|sep|>" + "".join(calls) + "<|close|>tools<|sep|>"


SCRIPTS = [
    "greet" + END + THINK + thought("They greet; so do I.") +
    response("Good morning, weaver.") + END,
    "greet" + END + PLAIN + "Good evening.<|close|>response<|sep|>" + END,
    "weather" + END + THINK + thought("Call the tool.") + response("Let me look.") +
    tools(call(1, "get_weather", argument("city", "string", "the old mill"),
               argument("days", "number", "2")),
          call(2, "get_time", argument("zone", "object", '{"name": "river"}'))) + END,
    "rain" + END + THINK + thought("It rains.") + response("Rain at the mill.") + END,
    "count" + END + THINK + thought("Counting.") +
    response("one two three four five six seven") + END,
]
