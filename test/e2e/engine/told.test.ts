// What a session was told for a turn: exactly the content that its agent got, stored with its hash.
import { createHash } from 'node:crypto';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import type { PublicTold } from '../../../src/core/public/turn.ts';
import type { ContentBlock, Prompt } from '../../../src/core/turn/content.ts';
import type { Agent } from '../../../src/ports/agent.ts';
import { refusedWith, run, WHICH_CODEWORDS } from '../support/conversations.ts';
import { Home } from '../support/home.ts';

const FORGETFUL = { memory: 'process' } as const;
const FILE = '{"type":"user","text":"The codeword is amber."}\n';
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const storedRows = (home: Home) => home.query<{ n: number }>('SELECT count(*) AS n FROM told')[0]?.n;

/** Adds to `seen` every prompt that a session of the agent is sent. `wording`: how the adapter changes it before. */
function recordPrompts(seen: Prompt[], wording?: (content: Prompt) => Prompt): (agent: Agent) => Agent {
  return (agent) => ({
    ...agent,
    open: async (request) => {
      const opened = await agent.open(request);
      if (!opened.ok) return opened;
      const { session } = opened;
      const prompt = session.prompt.bind(session);
      if (wording) session.wording = wording;
      session.prompt = (given) => {
        const content = wording?.(given.content) ?? given.content;
        seen.push(content);
        return prompt({ ...given, content });
      };
      return opened;
    },
  });
}

/** The agent, which opens a session under the id of a transcript as if it had read the transcript. */
function rehydrating(agent: Agent): Agent {
  return {
    ...agent,
    traits: async (sandbox) => ({ ...(await agent.traits(sandbox)), rehydrate: true }),
    open: async (request) => {
      const { how } = request;
      if (how.kind !== 'rehydrate') return agent.open(request);
      const opened = await agent.open({ ...request, how: { kind: 'new', id: how.id } });
      return opened.ok ? { ...opened, wrote: FILE } : opened;
    },
  };
}

/** The prompts that were told. Checks the hash of every part. */
function promptsOf({ parts }: PublicTold): Prompt[] {
  for (const part of parts) {
    expect(part.sha256).toBe(sha256(part.as === 'transcript' ? part.text : JSON.stringify(part.content)));
  }
  return parts.flatMap((part) => (part.as === 'prompt' ? [part.content] : []));
}

test('told() gives what was sent for every turn: the prompt alone, with the missed turns, or with the whole history', async () => {
  await using home = new Home({ a: {}, b: {} });
  const seen: Prompt[] = [];
  const engine = await home.engine({ agent: recordPrompts(seen) });
  const first = await run(engine, 'chat', 'The codeword is amber.', { agent: 'a' });
  const second = await run(engine, 'chat', 'The codeword is birch.');
  expect(storedRows(home)).toBe(0); // both were sent as they are stored in their turns, and nothing is stored twice
  const other = await run(engine, 'chat', WHICH_CODEWORDS, { agent: 'b' });
  const back = await run(engine, 'chat', WHICH_CODEWORDS, { agent: 'a' });
  expect(storedRows(home)).toBe(2);
  const told = await Promise.all([first, second, other, back].map(({ turn }) => engine.told(turn.id)));
  expect(told.map(promptsOf)).toEqual(seen.map((content) => [content]));
  expect(seen.map((content) => content.length)).toEqual([1, 1, 2, 2]);
  expect(JSON.stringify(seen[2])).toContain('The codeword is birch.');
  expect(told[2]).toMatchObject({ turnId: other.turn.id, attempt: 1, rung: 'transcript' });
  expect(told[3]).toMatchObject({ rung: 'live', sessionId: first.turn.sessionId });
});

test('an image of an earlier turn is told again, and stored once', async () => {
  await using home = new Home({ a: {}, b: {} });
  const seen: Prompt[] = [];
  const engine = await home.engine({ agent: recordPrompts(seen) });
  const image: ContentBlock = { type: 'image', mimeType: 'image/png', data: 'A'.repeat(20_000) };
  const { turn } = await engine.submit('chat', [{ type: 'text', text: 'Look.' }, image], { agent: 'a' });
  await engine.answerOf(turn.id, { waitMs: 60_000 });
  const { turn: other } = await run(engine, 'chat', WHICH_CODEWORDS, { agent: 'b' });
  const told = await engine.told(other.id);
  expect(promptsOf(told)).toEqual([seen[1]]);
  expect(seen[1]).toContainEqual(image);
  expect(home.query('SELECT hash FROM contents')).toHaveLength(1);
  const [{ bytes = 0 } = {}] = home.query<{ bytes: number }>('SELECT length(body) AS bytes FROM told');
  expect(bytes).toBeLessThan(3_000);
});

test('told() gives every prompt that a replay sent again', async () => {
  await using home = new Home({ a: { ...FORGETFUL, toolsInPlace: true } });
  const seen: Prompt[] = [];
  const before = await home.open();
  await run(before.engine, 'chat', 'The codeword is amber.');
  await run(before.engine, 'chat', 'The codeword is birch.');
  await before.close();
  const engine = await home.engine({ agent: recordPrompts(seen) });
  const { turn, receipt } = await run(engine, 'chat', WHICH_CODEWORDS, { restore: { rebuild: true, rung: 'replay' } });
  expect(receipt).toMatchObject({ rung: 'replay' });
  const told = await engine.told(turn.id);
  expect(promptsOf(told)).toEqual(seen);
  expect(told.parts).toMatchObject([{ turn: 1 }, { turn: 2 }, { turn: 3 }]);
  expect(storedRows(home)).toBe(1);
});

test('told() gives the prompts that a warm-up replayed, also after its process has ended', async () => {
  await using home = new Home({ a: { toolsInPlace: true } });
  const seen: Prompt[] = [];
  const before = await home.engine({ agent: recordPrompts(seen) });
  await run(before, 'chat', 'The codeword is amber.');
  expect(await before.warm('chat', { restore: { rebuild: true, rung: 'replay' } })).toMatchObject({ rung: 'replay' });
  await before.close();
  const engine = await home.engine({ agent: recordPrompts(seen) });
  const { turn, receipt } = await run(engine, 'chat', WHICH_CODEWORDS);
  expect(receipt).toMatchObject({ rung: 'resume' });
  expect(promptsOf(await engine.told(turn.id))).toEqual(seen.slice(1));
  expect(seen).toHaveLength(3);
});

test('told() gives the transcript that was written, also by a warm-up', async () => {
  await using home = new Home({ a: { ids: 'assigned' } });
  const seen: Prompt[] = [];
  const agent = (one: Agent) => recordPrompts(seen)(rehydrating(one));
  const engine = await home.engine({ agent });
  await run(engine, 'chat', 'The codeword is amber.');
  const restore = { rebuild: true, rung: 'rehydrate' } as const;
  const { turn } = await run(engine, 'chat', 'Go on.', { restore });
  const written = { as: 'transcript', text: FILE, sha256: sha256(FILE) };
  const sent = (n: number) => ({ as: 'prompt', turn: n, content: seen.at(-1) });
  expect((await engine.told(turn.id)).parts).toMatchObject([written, sent(2)]);
  expect(await engine.warm('chat', { restore })).toMatchObject({ rung: 'rehydrate', turn: null });
  const warmed = await run(engine, 'chat', 'Go on.');
  expect(warmed.receipt).toMatchObject({ rung: 'live' });
  expect((await engine.told(warmed.turn.id)).parts).toMatchObject([written, sent(3)]);
  // The transcript counts for one turn only.
  const next = await run(engine, 'chat', 'Go on.');
  expect((await engine.told(next.turn.id)).parts).toMatchObject([sent(4)]);
  expect(await engine.told(turn.id)).toMatchObject({ parts: [written, { turn: 2 }] });
});

test('told() gives a prompt as its adapter changed it', async () => {
  await using home = new Home();
  const seen: Prompt[] = [];
  const wording = (content: Prompt): Prompt => [{ type: 'text', text: 'No command:' }, ...content];
  const engine = await home.engine({ agent: recordPrompts(seen, wording) });
  const { turn } = await run(engine, 'chat', 'Hello.');
  const told = await engine.told(turn.id);
  expect(told.parts).toMatchObject([{ content: [{ text: 'No command:' }, { text: 'Hello.' }] }]);
  expect(promptsOf(told)).toEqual(seen);
});

test('told() gives each attempt that was sent, and by default the last one', async () => {
  await using home = new Home({ a: { ...FORGETFUL, maxPromptTokens: 1_500, window: 8_000 } });
  const seen: Prompt[] = [];
  const before = await home.open();
  for (const word of ['amber', 'birch'])
    await run(before.engine, 'chat', `The codeword is ${word}. ${'x'.repeat(3_000)}`);
  await before.close();
  const engine = await home.engine({ agent: recordPrompts(seen) });
  const { turn } = await run(engine, 'chat', WHICH_CODEWORDS, { restore: { budgetTokens: 4_000 } });
  expect(turn).toMatchObject({ attempt: 2 });
  expect(seen).toHaveLength(2);
  expect(promptsOf(await engine.told(turn.id, { attempt: 1 }))).toEqual([seen[0]]);
  expect(promptsOf(await engine.told(turn.id, { attempt: 2 }))).toEqual([seen[1]]);
  expect(await engine.told(turn.id)).toMatchObject({ attempt: 2 });
  await refusedWith('not_found', engine.told(turn.id, { attempt: 3 }), /No attempt 3 at turn 3 was sent/);
  await refusedWith('invalid', engine.told(turn.id, { attempt: 0 }), /attempt must be/);
});

test('told() refuses turns that were not sent, ended elsewhere, belong to another owner or were erased', async () => {
  await using home = new Home({ a: {}, b: {} });
  const tl = await home.open();
  const { engine } = tl;
  const first = await run(engine, 'chat', 'The codeword is amber.', { agent: 'a' });
  await run(engine, 'chat', WHICH_CODEWORDS, { agent: 'b' });
  const { turn: hanging } = await engine.submit('chat', '/hang');
  const { turn: queued } = await engine.submit('chat', 'Hello.');
  await refusedWith('conflict', engine.told(queued.id), /Nothing was sent yet for turn 4: it is queued/);
  await engine.cancel(queued.id);
  await engine.cancel(hanging.id);
  await engine.answerOf(hanging.id, { waitMs: 60_000 });
  await refusedWith('not_found', engine.told(queued.id), /Turn 4 ended before anything was sent/);
  const fork = await engine.fork('chat', { turn: 2 });
  const [copy] = await engine.turns(fork.id);
  await refusedWith('not_found', engine.told(copy?.id ?? ''), /Turn 1 ended elsewhere/);
  await refusedWith('not_found', engine.as('ann').told(first.turn.id), /There is no turn/);
  const chat = tl.conversation('chat');
  expect(await chat.told(1)).toEqual(await engine.told(first.turn.id));
  expect(await chat.told()).toMatchObject({ turnId: hanging.id });
  await refusedWith(
    'not_found',
    tl
      .conversation('empty')
      .ensure()
      .then(() => tl.conversation('empty').told()),
    /no turn/,
  );
  expect(storedRows(home)).toBe(1);
  await engine.erase('chat');
  expect(storedRows(home)).toBe(0);
  await refusedWith('not_found', engine.told(first.turn.id), /There is no turn/);
});

test('told() refuses content that no longer matches its hash', async () => {
  await using home = new Home({ a: {}, b: {} });
  const tl = await home.open();
  const plain = await run(tl.engine, 'chat', 'The codeword is amber.', { agent: 'a' });
  const block = await run(tl.engine, 'chat', WHICH_CODEWORDS, { agent: 'b' });
  const change = (sql: string) => {
    const db = new DatabaseSync(home.file);
    db.exec(sql);
    db.close();
  };
  change(`UPDATE turns SET prompt = replace(prompt, 'amber', 'birch') WHERE n = 1`);
  await refusedWith(
    'storage_damaged',
    tl.engine.told(plain.turn.id),
    /what the session of turn 1 was told does not match its hash/,
  );
  await tl.engine.told(block.turn.id);
  change("UPDATE told SET body = x'28b52ffd'");
  await refusedWith('storage_damaged', tl.engine.told(block.turn.id), /damaged/);
  change('DELETE FROM told');
  await refusedWith(
    'storage_damaged',
    tl.engine.told(block.turn.id),
    /what the session of turn 2 was told does not match its hash/,
  );
  // The conversation itself continues, and can be erased.
  expect((await run(tl.engine, 'chat', 'Hello.')).turn.state).toBe('completed');
  await tl.engine.erase('chat');
});
