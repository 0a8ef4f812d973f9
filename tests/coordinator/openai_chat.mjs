// The official client in conversations: plain, streamed, reasoning, tools with a round trip,
// logprobs, stop, n, json_schema, errors, abort. The fake trunk answers by conversation.py.
import assert from "node:assert/strict";
import OpenAI from "openai";

const url = process.argv[2];
const client = new OpenAI({ baseURL: url + "/v1", apiKey: "none", maxRetries: 0 });
const model = "kimi-k3";
const user = (content) => ({ role: "user", content });
const ask = (content, more) =>
  client.chat.completions.create({ model, messages: [user(content)], temperature: 0,
                                   max_tokens: 200, ...more });

const tools = ["get_weather", "get_time"].map((name) => ({
  type: "function",
  function: { name, description: "what it says", parameters: { type: "object" } } }));

// Puts a streamed choice together.
async function gather(stream) {
  const all = { content: "", reasoning: "", calls: [], finish: null, usage: null, chunks: 0 };
  for await (const chunk of stream) {
    all.chunks++;
    if (chunk.usage) all.usage = chunk.usage;
    if (chunk.kapok?.logits_digest) all.kapok = chunk.kapok;
    const choice = chunk.choices[0];
    if (!choice) continue;
    all.content += choice.delta.content ?? "";
    all.reasoning += choice.delta.reasoning_content ?? "";
    all.calls.push(...(choice.delta.tool_calls ?? []));
    all.finish = choice.finish_reason ?? all.finish;
  }
  return all;
}

const tests = {
  async plain() {
    const a = await ask("greet");
    const m = a.choices[0].message;
    assert.equal(a.object, "chat.completion");
    assert.equal(m.role, "assistant");
    assert.equal(m.content, "Good morning, weaver.");
    assert.equal(m.reasoning_content, "They greet; so do I.");
    assert.equal(a.choices[0].finish_reason, "stop");
    assert.equal(a.usage.completion_tokens, a.kapok.token_ids.length);
  },

  async instruct() {
    const a = await ask("greet", { thinking: { type: "disabled" } });
    assert.equal(a.choices[0].message.content, "Good evening.");
    assert.equal(a.choices[0].message.reasoning_content, undefined);
  },

  async streamed() {
    const whole = await ask("greet");
    const s = await gather(await ask("greet", { stream: true,
                                                stream_options: { include_usage: true } }));
    assert.equal(s.content, "Good morning, weaver.");
    assert.equal(s.reasoning, "They greet; so do I.");
    assert.equal(s.finish, "stop");
    assert.ok(s.chunks > 10);
    assert.equal(s.usage.completion_tokens, whole.usage.completion_tokens);
    assert.deepEqual(s.kapok.token_ids, whole.kapok.token_ids);
    assert.equal(s.kapok.logits_digest, whole.kapok.logits_digest);
  },

  async called() {
    const messages = [user("weather")];
    const first = await client.chat.completions.create({ model, messages, tools,
                                                         temperature: 0, max_tokens: 300 });
    const m = first.choices[0].message;
    assert.equal(first.choices[0].finish_reason, "tool_calls");
    assert.equal(m.content, "Let me look.");
    assert.deepEqual(m.tool_calls.map((c) => c.function.name), ["get_weather", "get_time"]);
    assert.deepEqual(JSON.parse(m.tool_calls[0].function.arguments),
                     { city: "the old mill", days: 2 });
    assert.deepEqual(JSON.parse(m.tool_calls[1].function.arguments),
                     { zone: { name: "river" } });
    messages.push(m);
    const result = (i, content) =>
      ({ role: "tool", tool_call_id: m.tool_calls[i].id, content });
    messages.push(result(1, "noon"), result(0, "rain"));
    const ordered = [...messages];
    messages.push(user("rain"));
    const second = await client.chat.completions.create({ model, messages, tools,
                                                          temperature: 0, max_tokens: 100 });
    assert.equal(second.choices[0].message.content, "Rain at the mill.");
    assert.ok(second.usage.prompt_tokens_details.cached_tokens > 0, "nothing was kept");
    // Results are put into the order of the calls: the other order is the same prompt.
    const swapped = [...ordered.slice(0, 2), ordered[3], ordered[2], user("rain")];
    const third = await client.chat.completions.create({ model, messages: swapped, tools,
                                                         temperature: 0, max_tokens: 100 });
    assert.equal(third.kapok.logits_digest, second.kapok.logits_digest);
    assert.equal(third.usage.prompt_tokens, second.usage.prompt_tokens);
  },

  async calledStreamed() {
    const s = await gather(await ask("weather", { tools, stream: true, max_tokens: 300 }));
    assert.equal(s.finish, "tool_calls");
    assert.deepEqual(s.calls.map((c) => [c.index, c.function.name]),
                     [[0, "get_weather"], [1, "get_time"]]);
    const runner = client.chat.completions.stream({ model, messages: [user("weather")], tools,
                                                    temperature: 0, max_tokens: 300 });
    const final = await runner.finalChatCompletion();
    assert.equal(final.choices[0].message.tool_calls.length, 2);
  },

  async stopped() {
    for (const stop of ["three", "ee f", ["nothing", "four five"]]) {
      const a = await ask("count", { stop });
      const text = a.choices[0].message.content;
      assert.equal(a.choices[0].finish_reason, "stop");
      assert.equal(text, "one two three four five six seven".split(
        Array.isArray(stop) ? stop[1] : stop)[0]);
      const s = await gather(await ask("count", { stop, stream: true }));
      assert.equal(s.content, text);
    }
  },

  async cutShort() {
    const a = await ask("greet", { max_tokens: 3 });
    assert.equal(a.choices[0].finish_reason, "length");
    assert.equal(a.choices[0].message.content, null);
    assert.ok(a.choices[0].message.reasoning_content.length > 0);
    const b = await ask("greet", { max_tokens: undefined, max_completion_tokens: 3 });
    assert.equal(b.usage.completion_tokens, 3);
  },

  async logprobs() {
    const a = await ask("greet", { logprobs: true, top_logprobs: 2 });
    const list = a.choices[0].logprobs.content;
    assert.equal(list.length, a.usage.completion_tokens);
    for (const t of list) {
      assert.ok(t.logprob <= 0 && t.logprob > -0.01);
      assert.equal(t.top_logprobs.length, 2);
      assert.equal(t.top_logprobs[0].token, t.token);
      assert.ok(Array.isArray(t.bytes));
    }
  },

  async choices() {
    const a = await ask("greet", { n: 3, temperature: 1, seed: 4 });
    assert.equal(a.choices.length, 3);
    for (const c of a.choices) assert.equal(c.message.content, "Good morning, weaver.");
  },

  async formats() {
    const schema = { name: "s", schema: { type: "object", required: ["b", "a"] } };
    for (const response_format of [{ type: "json_object" },
                                   { type: "json_schema", json_schema: schema },
                                   { type: "text" }])
      assert.equal((await ask("greet", { response_format, max_tokens: 5 })).object,
                   "chat.completion");
    const bare = await ask("greet", { max_tokens: 2 });
    const formatted = await ask("greet", { max_tokens: 2,
                                           response_format: { type: "json_object" } });
    assert.ok(formatted.usage.prompt_tokens > bare.usage.prompt_tokens + 20);
  },

  async history() {
    const messages = [{ role: "developer", content: "Be brief." }, user("greet"),
                      { role: "assistant", content: "Good morning, weaver.",
                        reasoning_content: "They greet; so do I." },
                      user([{ type: "text", text: "count" }])];
    const a = await client.chat.completions.create({ model, messages, temperature: 0,
                                                     max_tokens: 200 });
    assert.equal(a.choices[0].message.content, "one two three four five six seven");
  },

  async errors() {
    const rejects = async (more, param) =>
      assert.rejects(ask("greet", more), (e) => {
        assert.ok(e instanceof OpenAI.BadRequestError, String(e));
        assert.equal(e.param, param);
        return true;
      });
    await rejects({ reasoning_effort: "medium" }, "reasoning_effort");
    await rejects({ thinking: { type: "perhaps" } }, "thinking");
    await rejects({ tool_choice: "required" }, "tool_choice");
    await rejects({ tools, tool_choice: { type: "function", function: { name: "no" } } },
                  "tool_choice");
    await rejects({ tools: [{ type: "web" }] }, "tools");
    await rejects({ parallel_tool_calls: false }, "parallel_tool_calls");
    await rejects({ response_format: { type: "xml" } }, "response_format");
    await rejects({ top_logprobs: 2 }, "top_logprobs");
    await rejects({ modalities: ["audio"] }, "modalities");
    await rejects({ messages: [] }, "messages");
    await rejects({ messages: [{ role: "judge", content: "x" }] }, "messages");
    await rejects({ messages: [user([{ type: "image_url", image_url: { url: "x" } }])] },
                  "messages[0]");
    await rejects({ messages: [{ role: "user" }] }, "messages[0]");
  },

  async aborted() {
    const stream = await ask("anything at all", { stream: true, max_tokens: 2000,
                                                  logit_bias: { 646: -100 } });
    let seen = 0;
    for await (const _ of stream) if (++seen === 5) stream.controller.abort();
    for (let i = 0; i < 100; i++) {
      const r = (await (await fetch(url + "/v1/kapok/status")).json()).requests;
      if (r.running + r.waiting === 0) return;
      await new Promise((done) => setTimeout(done, 50));
    }
    assert.fail("it still runs");
  },
};

for (const [name, test] of Object.entries(tests)) {
  await test();
  console.log("ok", name);
}
