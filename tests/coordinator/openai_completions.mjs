// The official client: models, completions plain and streamed, n, usage, errors by their
// classes, abort, timeouts. Run by openai_test.py with the server's URL.
import assert from "node:assert/strict";
import OpenAI from "openai";

const url = process.argv[2];
const client = new OpenAI({ baseURL: url + "/v1", apiKey: "none", maxRetries: 0 });
const model = "kimi-k3";
const prompt = [3, 7, 11, 5, 9];

const tests = {
  async models() {
    const list = [];
    for await (const m of client.models.list()) list.push(m.id);
    assert.deepEqual(list, [model]);
    assert.equal((await client.models.retrieve(model)).id, model);
    await assert.rejects(client.models.retrieve("gpt-4"), OpenAI.NotFoundError);
  },

  async plain() {
    const a = await client.completions.create({ model, prompt, max_tokens: 6, temperature: 0 });
    assert.equal(a.object, "text_completion");
    assert.equal(a.choices[0].finish_reason, "length");
    assert.equal(a.usage.completion_tokens, 6);
    assert.equal(a.usage.prompt_tokens, 5);
    assert.equal(a.kapok.token_ids.length, 6);
    const b = await client.completions.create({ model, prompt, max_tokens: 6, temperature: 0 });
    assert.equal(a.kapok.logits_digest, b.kapok.logits_digest);
  },

  async streamed() {
    const whole = await client.completions.create({ model, prompt, max_tokens: 9, seed: 3 });
    const stream = await client.completions.create({
      model, prompt, max_tokens: 9, seed: 3, stream: true,
      stream_options: { include_usage: true } });
    const ids = [];
    let finish, usage;
    for await (const chunk of stream) {
      const choice = chunk.choices[0];
      if (choice?.finish_reason) finish = choice.finish_reason;
      else if (choice) ids.push(...chunk.kapok.token_ids);
      if (chunk.usage) usage = chunk.usage;
    }
    assert.deepEqual(ids, whole.kapok.token_ids);
    assert.equal(finish, "length");
    assert.deepEqual(usage, whole.usage);
  },

  async choices() {
    const a = await client.completions.create({ model, prompt, max_tokens: 4, n: 3, seed: 1 });
    assert.deepEqual(a.choices.map((c) => c.index), [0, 1, 2]);
    assert.equal(a.usage.completion_tokens, 12);
  },

  async errors() {
    const ask = (more) => client.completions.create({ model, prompt, max_tokens: 2, ...more });
    await assert.rejects(ask({ temperature: 9 }), (e) =>
      e instanceof OpenAI.BadRequestError && e.param === "temperature" && e.status === 400);
    await assert.rejects(ask({ model: "other" }), (e) =>
      e instanceof OpenAI.NotFoundError && e.code === "model_not_found");
    await assert.rejects(ask({ prompt: [1e9] }), OpenAI.BadRequestError);
    await assert.rejects(ask({ suffix: "x" }), (e) => e.param === "suffix");
    await assert.rejects(ask({ max_tokens: 2e6 }), (e) =>
      e.code === "context_length_exceeded" && /\d+.*\d+/.test(e.message));
  },

  async aborted() {
    const stream = await client.completions.create({
      model, prompt, max_tokens: 2000, temperature: 0, stream: true });
    let seen = 0;
    for await (const _ of stream) if (++seen === 5) stream.controller.abort();
    await idle();
  },

  async timeouts() {
    const ask = client.completions.create({ model, prompt, max_tokens: 2000, temperature: 0 },
                                          { timeout: 300 });
    await assert.rejects(ask, OpenAI.APIConnectionTimeoutError);
    await idle();
  },

  async together() {
    const ask = (i) => client.completions.create({ model, prompt: [i, i + 1, 40], seed: i,
                                                   max_tokens: 12 });
    const many = await Promise.all([...Array(16).keys()].map(ask));
    for (const i of [0, 7, 15])
      assert.equal((await ask(i)).kapok.logits_digest, many[i].kapok.logits_digest);
  },
};

// Until nothing runs: what was given up must not go on.
async function idle() {
  for (let i = 0; i < 100; i++) {
    const r = (await (await fetch(url + "/v1/kapok/status")).json()).requests;
    if (r.running + r.waiting === 0) return;
    await new Promise((done) => setTimeout(done, 50));
  }
  assert.fail("requests still run five seconds after they were given up");
}

for (const [name, test] of Object.entries(tests)) {
  await test();
  console.log("ok", name);
}
