// Agents that report a session as loaded, with all, a part or nothing of its history.
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { acpAgent } from '../../../../src/agents/acp/adapter.ts';
import { ThroughlineError } from '../../../../src/core/errors.ts';
import { systemClock } from '../../../../src/host/clock.ts';
import { acknowledgement, type Model } from '../../../../src/testing/index.ts';
import { TestSandboxes, until } from '../../../contracts/agent-sandbox.ts';
import { smallAgent } from '../../support/acp-agents.ts';
import { AcpHome } from '../../support/acp-home.ts';
import { codeword, FIRST, FOURTH, SECOND, THIRD, threeTurns } from '../../support/agent-home.ts';

/** A short wait for more history, so that tests with an incomplete one are fast. */
const QUICK = { quietMs: 200 };
const traitsOf = async (tl: Awaited<ReturnType<AcpHome['open']>>) => (await tl.engine.agents())[0]?.traits;

describe('an agent that loads sessions without their history', () => {
  test.each([
    ['empty', /repeats none of the 3 turns/],
    ['wrong', /turn 3 is missing/],
    ['truncated', /turn 3 is missing/],
  ])('%s: each such load is noticed, and after the second one Throughline no longer uses load', async (load, why) => {
    await using home = await AcpHome.make({
      agent: (model, root) => smallAgent(model, root, ['incomplete', load], QUICK),
    });
    const tl = await home.open();
    await threeTurns(tl);
    for (const prompt of [FIRST, SECOND]) await tl.conversation('other').ask(prompt);
    expect(await traitsOf(tl)).toMatchObject({ load: true });
    await tl.close();
    const again = await home.open();
    const { receipt } = await again.conversation('chat').ask(FOURTH);
    home.expectCodewords('amber', 'birch', 'cedar', 'denim');
    expect(receipt).toMatchObject({ rung: 'transcript', carried: 3, proof: 'counted' });
    expect(receipt.tried).toMatchObject([{ rung: 'resume', failure: expect.stringMatching(why) }]);
    const states = (await again.engine.sessions('chat')).map(({ state }) => state);
    expect(states).toEqual(['live', 'lost']);
    // One incomplete session may have been damaged by somebody else. After a second one the agent is no longer trusted.
    expect(await traitsOf(again)).toMatchObject({ load: true });
    const other = await again.conversation('other').ask(THIRD);
    expect(other.receipt).toMatchObject({ rung: 'transcript', carried: 2, tried: [{ rung: 'resume' }] });
    expect(await traitsOf(again)).toMatchObject({ load: false, resume: false });
    await again.close();
    // Another process reads what was learnt, does not try a load, and reports the problem.
    const later = await home.open();
    expect(await traitsOf(later)).toMatchObject({ load: false, resume: false });
    const [{ problem } = { problem: null }] = await later.engine.agents();
    expect(problem).toMatch(/repeats none of the 2 turns|turn 2 is missing/);
    const [, file = ''] = /delete (\S+)\.$/.exec(problem ?? '') ?? [];
    expect(existsSync(file)).toBe(true);
    const last = await later.conversation('chat').ask(codeword('ebony'));
    expect(last.receipt).toMatchObject({ rung: 'transcript', carried: 4, tried: [] });
    home.expectCodewords('amber', 'birch', 'cedar', 'denim', 'ebony');
  });

  test.each([
    ['before any session was loaded', false],
    ['after a session was loaded', true],
  ])('a session that was damaged %s is lost, and other sessions are still loaded', async (_, loadedBefore) => {
    await using home = await AcpHome.make({ agent: (model, root) => smallAgent(model, root, ['complete'], QUICK) });
    /** Asks in each of these conversations. Returns the first receipt. */
    const askIn = async (word: string, ...keys: string[]) => {
      const tl = await home.open();
      const receipts = [];
      for (const key of keys) receipts.push((await tl.conversation(key).ask(codeword(word))).receipt);
      const traits = await traitsOf(tl);
      await tl.close();
      return { ...receipts[0], load: traits?.load };
    };
    const { sessionId } = await askIn('amber', 'one', 'two');
    if (loadedBefore) await askIn('birch', 'one');
    const file = join(home.homeOf('agent'), '.acp-agent', `${sessionId}.json`);
    writeFileSync(file, JSON.stringify((JSON.parse(readFileSync(file, 'utf8')) as unknown[]).slice(2)));
    expect(await askIn('cedar', 'one')).toMatchObject({ rung: 'transcript', load: true });
    home.expectCodewords('amber', ...(loadedBefore ? ['birch'] : []), 'cedar');
    expect(await askIn('birch', 'two')).toMatchObject({ rung: 'resume', proof: 'consistent', load: true });
  });

  test('a load without a history is not trusted, even if no prompt could be compared', async () => {
    await using home = await AcpHome.make({
      agent: (model, root) => smallAgent(model, root, ['incomplete', 'empty'], QUICK),
    });
    const tl = await home.open();
    // A prompt with a slash is a command for some agents. They do not send it back unchanged, so it is not compared.
    await tl.conversation('chat').ask('/note The codeword is amber.');
    await tl.close();
    const { receipt } = await (await home.open()).conversation('chat').ask(SECOND);
    expect(receipt).toMatchObject({ rung: 'transcript', carried: 1, tried: [{ rung: 'resume' }] });
    home.expectCodewords('amber', 'birch');
  });

  test('an agent that does not answer a load is ended after `silentMs`, and a new session gets the history', async () => {
    const hanging = (options: object) => (model: Model, root: string) =>
      smallAgent(model, root, ['incomplete', 'hangs'], { ...options });
    await using home = await AcpHome.make({ agent: hanging({ silentMs: 1_000 }), pi: hanging({ agent: 'pi' }) });
    const tl = await home.open();
    for (const agent of ['agent', 'pi'])
      await tl.conversation(agent).ask(`${codeword('amber')}\u2028${codeword('birch')}`, { agent });
    await tl.close();
    const again = await home.open();
    const failures = { agent: /sent nothing for 1000 ms/, pi: /cannot load it/ };
    for (const [agent, failure] of Object.entries(failures)) {
      const { receipt } = await again.conversation(agent).ask(THIRD);
      expect(receipt).toMatchObject({ rung: 'transcript', carried: 1, proof: 'counted' });
      expect(receipt.tried).toMatchObject([{ rung: 'resume', failure: expect.stringMatching(failure) }]);
      home.expectCodewords('amber', 'birch', 'cedar');
    }
    await again.close();
    // The new session can be loaded: a transcript block has no line separators. Here `silentMs` has its default.
    const withDefault = { defaultAgent: 'agent', agents: { agent: hanging({})(home.model, home.path) } };
    const { receipt } = await (await home.open(withDefault)).conversation('agent').ask(FOURTH);
    expect(receipt).toMatchObject({ rung: 'resume', proof: 'consistent' });
  });

  test.each([
    ['complete', 'resume', 'consistent'],
    ['text only', 'transcript', 'counted'],
  ] as const)('a loaded session must also have the files and images of its prompts: %s', async (load, rung, proof) => {
    const behaviour = JSON.stringify({ load, embeddedContext: true, image: true });
    await using home = await AcpHome.make({
      agent: (model, root) => smallAgent(model, root, ['complete', behaviour], QUICK),
    });
    const tl = await home.open();
    const prompt = [
      { type: 'text', text: codeword('amber') },
      { type: 'resource', resource: { uri: 'file:///notes', text: codeword('birch') } },
      { type: 'image', data: 'aGk=', mimeType: 'image/png' },
    ] as const;
    for (const key of ['chat', 'another', 'third']) await tl.conversation(key).ask(prompt);
    await tl.conversation('plain').ask(FIRST);
    await tl.close();
    const again = await home.open();
    const { receipt } = await again.conversation('chat').ask(THIRD);
    expect(receipt).toMatchObject({ rung, proof, carried: 1, dropped: 0 });
    if (load === 'text only')
      expect(receipt.tried).toMatchObject([{ failure: expect.stringContaining('without the text of file:///notes') }]);
    // In both cases the model has everything.
    home.expectCodewords('amber', 'birch', 'cedar');
    expect(JSON.stringify(home.model.lastRequest()?.raw)).toContain('"data":"aGk="');
    // Sessions without files and images are still loaded, although three others were lost.
    for (const key of ['another', 'third'])
      expect((await again.conversation(key).ask(THIRD)).receipt).toMatchObject({ rung });
    expect((await again.conversation('plain').ask(SECOND)).receipt).toMatchObject({ rung: 'resume' });
  });

  test('a loaded session must also have the transcript block that we delivered', async () => {
    await using home = await AcpHome.make({
      first: (model, root) => smallAgent(model, root, ['without-load']),
      second: (model, root) => smallAgent(model, root, ['complete']),
    });
    const tl = await home.open();
    await threeTurns(tl);
    await tl.conversation('chat').ask(FOURTH, { agent: 'second' });
    await tl.close();
    const { receipt } = await (await home.open()).conversation('chat').ask(codeword('ebony'), { agent: 'second' });
    expect(receipt).toMatchObject({ rung: 'resume', carried: 4, delivered: 0, proof: 'consistent' });
    home.expectCodewords('amber', 'birch', 'cedar', 'denim', 'ebony');
  });

  test.each([
    ['complete', 'resume'],
    ['without its first turn', 'transcript'],
  ])('a loaded session that began with a replay must have the replayed prompts: %s', async (history, rung) => {
    const options = { quietMs: 200, noTools: { version: '1.0.0', mode: 'quiet' } };
    await using home = await AcpHome.make({ agent: (model, root) => smallAgent(model, root, ['complete'], options) });
    const tl = await home.open();
    await threeTurns(tl);
    const { receipt: replayed } = await tl
      .conversation('chat')
      .ask(FOURTH, { restore: { rebuild: true, rung: 'replay' } });
    await tl.close();
    const file = join(home.homeOf('agent'), '.acp-agent', `${replayed.sessionId}.json`);
    const messages = JSON.parse(readFileSync(file, 'utf8')) as unknown[];
    if (history !== 'complete') writeFileSync(file, JSON.stringify(messages.slice(2)));
    const { receipt } = await (await home.open()).conversation('chat').ask(codeword('ebony'));
    expect(receipt).toMatchObject({ rung, carried: 4 });
    home.expectCodewords('amber', 'birch', 'cedar', 'denim', 'ebony');
  });
});

test('Throughline waits for a history that the agent sends after its answer to a load', async () => {
  await using home = await AcpHome.make({ agent: (model, root) => smallAgent(model, root, ['late']) });
  const tl = await home.open();
  await threeTurns(tl);
  await tl.close();
  const again = await home.open();
  const { receipt } = await again.conversation('chat').ask(FOURTH);
  home.expectConversation(FIRST, SECOND, THIRD, FOURTH);
  expect(receipt).toMatchObject({ rung: 'resume', carried: 3, proof: 'consistent' });
  // The history is not part of the new turn.
  expect((await again.conversation('chat').ask('Go on.')).receipt.rung).toBe('live');
  const [, , , fourth] = await again.engine.turns('chat');
  expect((await again.engine.answerOf(fourth?.id ?? '')).reply).toBe(acknowledgement(FOURTH));
});

test('Throughline also waits for a late history whose turns cannot be compared', async () => {
  await using home = await AcpHome.make({ agent: (model, root) => smallAgent(model, root, ['late']) });
  const tl = await home.open();
  await tl.conversation('chat').ask('/note This.');
  await tl.close();
  const slowPrompt = 'model: slow 500ms\nmodel: say The answer.';
  const { reply, receipt } = await (await home.open()).conversation('chat').ask(slowPrompt);
  expect(receipt).toMatchObject({ rung: 'resume', proof: 'consistent' });
  expect(reply).toBe('The answer.');
});

test('a session that is resumed without its history is used with the policy auto, and not with required', async () => {
  const behaviour = JSON.stringify({ resume: true });
  await using home = await AcpHome.make({
    agent: (model, root) => smallAgent(model, root, ['without-load', behaviour]),
  });
  const tl = await home.open();
  expect(await traitsOf(tl)).toMatchObject({ load: false, resume: true });
  await threeTurns(tl);
  const [session] = await tl.engine.sessions('chat');
  await tl.close();
  const again = await home.open();
  const auto = await again.conversation('chat').ask(FOURTH, { restore: { policy: 'auto' } });
  expect(auto.receipt).toMatchObject({ rung: 'resume', sessionId: session?.id, delivered: 0, proof: 'none' });
  home.expectConversation(FIRST, SECOND, THIRD, FOURTH);
  await again.close();
  const required = await (await home.open()).conversation('chat').ask(codeword('ebony'));
  expect(required.receipt).toMatchObject({ rung: 'transcript', carried: 4, delivered: 4, proof: 'counted' });
  home.expectCodewords('amber', 'birch', 'cedar', 'denim', 'ebony');
});

test('an error of Throughline while a session is opened is not reported as a refusal of the agent', async () => {
  const sandboxes = new TestSandboxes();
  try {
    const settings = smallAgent({ url: 'http://127.0.0.1:9' }, sandboxes.root, ['complete']);
    const agent = acpAgent({
      name: 'agent',
      ...settings,
      installed: sandboxes.root,
      memory: sandboxes.root,
      clock: systemClock,
    });
    const leaseLost = new ThroughlineError('lease_lost', 'The lease is gone.');
    const how = { kind: 'resume', id: 'x', told: () => Promise.reject(leaseLost) } as const;
    const opening = agent.open({
      how,
      sandbox: await sandboxes.sandbox(),
      noTools: false,
      signal: new AbortController().signal,
    });
    await expect(opening).rejects.toBe(leaseLost);
  } finally {
    await sandboxes.dispose();
  }
});

describe('the agent cannot open a session:', () => {
  test.each([
    ['-32002', 'Resource not found'],
    ['-32603', 'Internal error: no rollout found for this id'],
  ])('error %s "%s": the session is lost, and a new one gets the history', async (code, message) => {
    await using home = await AcpHome.make({
      agent: (model, root) => smallAgent(model, root, ['odd-codes', code, message]),
    });
    const tl = await home.open();
    await tl.conversation('chat').ask(FIRST);
    await tl.close();
    rmSync(join(home.homeOf('agent'), '.acp-agent'), { recursive: true });
    const again = await home.open();
    const { receipt } = await again.conversation('chat').ask(SECOND);
    expect(receipt).toMatchObject({ rung: 'transcript', carried: 1, tried: [{ rung: 'resume' }] });
    const [, lost] = await again.engine.sessions('chat');
    expect(lost?.state).toBe('lost');
    // The agent reported the error, so Throughline still trusts its loads.
    expect(await traitsOf(again)).toMatchObject({ load: true });
  });

  test('a locked session: the turn fails after some attempts, and the session is kept', async () => {
    await using home = await AcpHome.make({
      agent: (model, root) => smallAgent(model, root, ['odd-codes', '-32603', 'Session is locked by another process']),
    });
    home.settings = { ...(home.settings as object), lock: { firstMs: 10, longestMs: 20, totalMs: 50 } };
    const tl = await home.open();
    await tl.conversation('chat').ask(FIRST);
    await tl.close();
    rmSync(join(home.homeOf('agent'), '.acp-agent'), { recursive: true });
    const again = await home.open();
    const { turn } = await again.conversation('chat').send(SECOND).accepted;
    await until('the turn has failed', async () => (await again.engine.turn(turn.id)).failure !== null);
    expect((await again.engine.turn(turn.id)).failure).toMatchObject({ code: 'session_locked' });
    expect((await again.engine.sessions('chat')).map(({ state }) => state)).toEqual(['dormant']);
  });
});
