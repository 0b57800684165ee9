// Agents that say that a session is loaded, and how much of its history they have.
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { acpAgent } from '../../../../src/agents/acp/adapter.ts';
import { ThroughlineError } from '../../../../src/core/errors.ts';
import { acknowledgement, type Model } from '../../../../src/testing/index.ts';
import { TestSandboxes, until } from '../../../contracts/agent-sandbox.ts';
import { ownAgent } from '../../support/acp-agents.ts';
import { AcpHome } from '../../support/acp-home.ts';
import { codeword, FIRST, FOURTH, SECOND, THIRD, threeTurns } from '../../support/agent-home.ts';

const QUICK = { quietMs: 200 };
const traitsOf = async (tl: Awaited<ReturnType<AcpHome['open']>>) => (await tl.engine.agents())[0]?.traits;

describe('an agent that loads sessions without their history', () => {
  test.each([
    ['empty', /repeats none of the 3 turns/],
    ['wrong', /turn 3 is missing/],
    ['truncated', /turn 3 is missing/],
  ])('%s: each one is noticed, and after the second the agent is not asked to load again', async (how, why) => {
    await using home = await AcpHome.make({
      agent: (model, root) => ownAgent(model, root, ['incomplete', how], QUICK),
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
    // Somebody else may have damaged one session. A second one counts against the agent.
    expect(await traitsOf(again)).toMatchObject({ load: true });
    const other = await again.conversation('other').ask(THIRD);
    expect(other.receipt).toMatchObject({ rung: 'transcript', carried: 2, tried: [{ rung: 'resume' }] });
    expect(await traitsOf(again)).toMatchObject({ load: false, resume: false });
    await again.close();
    // Another process knows it as well and does not try. People are told.
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
    ['before anything was ever loaded', false],
    ['after others were loaded', true],
  ])('a damaged session is lost, and other sessions are still loaded: %s', async (_, loadedBefore) => {
    await using home = await AcpHome.make({ agent: (model, root) => ownAgent(model, root, ['honest'], QUICK) });
    const goOn = async (word: string, ...keys: string[]) => {
      const tl = await home.open();
      const receipts = [];
      for (const key of keys) receipts.push((await tl.conversation(key).ask(codeword(word))).receipt);
      const traits = await traitsOf(tl);
      await tl.close();
      return { ...receipts[0], load: traits?.load };
    };
    const { sessionId } = await goOn('amber', 'one', 'two');
    if (loadedBefore) await goOn('birch', 'one');
    const file = join(home.homeOf('agent'), '.acp-agent', `${sessionId}.json`);
    writeFileSync(file, JSON.stringify((JSON.parse(readFileSync(file, 'utf8')) as unknown[]).slice(2)));
    expect(await goOn('cedar', 'one')).toMatchObject({ rung: 'transcript', load: true });
    home.expectCodewords('amber', ...(loadedBefore ? ['birch'] : []), 'cedar');
    expect(await goOn('birch', 'two')).toMatchObject({ rung: 'resume', proof: 'consistent', load: true });
  });

  test('when nothing can be compared, an answer of yes proves nothing', async () => {
    await using home = await AcpHome.make({
      agent: (model, root) => ownAgent(model, root, ['incomplete', 'empty'], QUICK),
    });
    const tl = await home.open();
    // A prompt with a slash is a command for some agents, and is not repeated as we sent it.
    await tl.conversation('chat').ask('/note The codeword is amber.');
    await tl.close();
    const { receipt } = await (await home.open()).conversation('chat').ask(SECOND);
    expect(receipt).toMatchObject({ rung: 'transcript', carried: 1, tried: [{ rung: 'resume' }] });
    home.expectCodewords('amber', 'birch');
  });

  test('one that never answers a load is ended after a silence, and a new session gets the history', async () => {
    const silent = (options: object) => (model: Model, root: string) =>
      ownAgent(model, root, ['incomplete', 'silent'], { ...options });
    await using home = await AcpHome.make({ agent: silent({ silentMs: 1_000 }), pi: silent({ agent: 'pi' }) });
    const tl = await home.open();
    for (const agent of ['agent', 'pi'])
      await tl.conversation(agent).ask(`${codeword('amber')}\u2028${codeword('birch')}`, { agent });
    await tl.close();
    const again = await home.open();
    const tried = { agent: /sent nothing for 1000 ms/, pi: /cannot load it/ };
    for (const [agent, failure] of Object.entries(tried)) {
      const { receipt } = await again.conversation(agent).ask(THIRD);
      expect(receipt).toMatchObject({ rung: 'transcript', carried: 1, proof: 'counted' });
      expect(receipt.tried).toMatchObject([{ rung: 'resume', failure: expect.stringMatching(failure) }]);
      home.expectCodewords('amber', 'birch', 'cedar');
    }
    await again.close();
    // The block that it got has no such characters. To answer, it has all the time that it needs.
    const patient = { defaultAgent: 'agent', agents: { agent: silent({})(home.model, home.path) } };
    const { receipt } = await (await home.open(patient)).conversation('agent').ask(FOURTH);
    expect(receipt).toMatchObject({ rung: 'resume', proof: 'consistent' });
  });

  test.each([
    ['honest', 'resume', 'consistent'],
    ['words', 'transcript', 'counted'],
  ] as const)('a file and an image of a prompt must be there as well: %s', async (load, rung, proof) => {
    const behaviour = JSON.stringify({ load, embeddedContext: true, image: true });
    await using home = await AcpHome.make({
      agent: (model, root) => ownAgent(model, root, ['honest', behaviour], QUICK),
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
    if (load === 'words')
      expect(receipt.tried).toMatchObject([{ failure: expect.stringContaining('without the text of file:///notes') }]);
    // The model has everything, in whatever way it got there.
    home.expectCodewords('amber', 'birch', 'cedar');
    expect(JSON.stringify(home.model.lastRequest()?.raw)).toContain('"data":"aGk="');
    // Sessions without such things are loaded as before, however many others were lost.
    for (const key of ['another', 'third'])
      expect((await again.conversation(key).ask(THIRD)).receipt).toMatchObject({ rung });
    expect((await again.conversation('plain').ask(SECOND)).receipt).toMatchObject({ rung: 'resume' });
  });

  test('a loaded session must also have the transcript block that we delivered', async () => {
    await using home = await AcpHome.make({
      first: (model, root) => ownAgent(model, root, ['without-load']),
      second: (model, root) => ownAgent(model, root, ['honest']),
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
    ['whole', 'resume'],
    ['without its beginning', 'transcript'],
  ])('a session that began with a replay must have the replayed prompts: %s', async (how, rung) => {
    const options = { quietMs: 200, noTools: { version: '1.0.0', mode: 'quiet' } };
    await using home = await AcpHome.make({ agent: (model, root) => ownAgent(model, root, ['honest'], options) });
    const tl = await home.open();
    await threeTurns(tl);
    const { receipt: replayed } = await tl.conversation('chat').ask(FOURTH, { restore: { rung: 'replay' } });
    await tl.close();
    const file = join(home.homeOf('agent'), '.acp-agent', `${replayed.sessionId}.json`);
    const messages = JSON.parse(readFileSync(file, 'utf8')) as unknown[];
    if (how !== 'whole') writeFileSync(file, JSON.stringify(messages.slice(2)));
    const { receipt } = await (await home.open()).conversation('chat').ask(codeword('ebony'));
    expect(receipt).toMatchObject({ rung, carried: 4 });
    home.expectCodewords('amber', 'birch', 'cedar', 'denim', 'ebony');
  });
});

test('we wait for a history that comes after the answer', async () => {
  await using home = await AcpHome.make({ agent: (model, root) => ownAgent(model, root, ['late']) });
  const tl = await home.open();
  await threeTurns(tl);
  await tl.close();
  const again = await home.open();
  const { receipt } = await again.conversation('chat').ask(FOURTH);
  home.expectTold(FIRST, SECOND, THIRD, FOURTH);
  expect(receipt).toMatchObject({ rung: 'resume', carried: 3, proof: 'consistent' });
  // The repeated history is not part of the turn.
  expect((await again.conversation('chat').ask('Go on.')).receipt.rung).toBe('live');
  const [, , , fourth] = await again.engine.turns('chat');
  expect((await again.engine.answerOf(fourth?.id ?? '')).reply).toBe(acknowledgement(FOURTH));
});

test('we also wait for a late history in which no turn can be compared', async () => {
  await using home = await AcpHome.make({ agent: (model, root) => ownAgent(model, root, ['late']) });
  const tl = await home.open();
  await tl.conversation('chat').ask('/note This.');
  await tl.close();
  const slowly = 'model: slow 500ms\nmodel: say The answer.';
  const { reply, receipt } = await (await home.open()).conversation('chat').ask(slowly);
  expect(receipt).toMatchObject({ rung: 'resume', proof: 'consistent' });
  expect(reply).toBe('The answer.');
});

test('an agent that opens a session and repeats nothing is used only where that was asked for', async () => {
  const resuming = JSON.stringify({ resume: true });
  await using home = await AcpHome.make({ agent: (model, root) => ownAgent(model, root, ['without-load', resuming]) });
  const tl = await home.open();
  expect(await traitsOf(tl)).toMatchObject({ load: false, resume: true });
  await threeTurns(tl);
  const [session] = await tl.engine.sessions('chat');
  await tl.close();
  const again = await home.open();
  const auto = await again.conversation('chat').ask(FOURTH, { restore: { policy: 'auto' } });
  expect(auto.receipt).toMatchObject({ rung: 'resume', sessionId: session?.id, delivered: 0, proof: 'none' });
  home.expectTold(FIRST, SECOND, THIRD, FOURTH);
  await again.close();
  const required = await (await home.open()).conversation('chat').ask(codeword('ebony'));
  expect(required.receipt).toMatchObject({ rung: 'transcript', carried: 4, delivered: 4, proof: 'counted' });
  home.expectCodewords('amber', 'birch', 'cedar', 'denim', 'ebony');
});

test('an error of our own while opening is not reported as a refusal of the agent', async () => {
  const sandboxes = new TestSandboxes();
  try {
    const settings = ownAgent({ url: 'http://127.0.0.1:9' }, sandboxes.root, ['honest']);
    const agent = acpAgent({ name: 'agent', ...settings, installed: sandboxes.root, memory: sandboxes.root });
    const lost = new ThroughlineError('lease_lost', 'The lease is gone.');
    const how = { kind: 'resume', id: 'x', told: () => Promise.reject(lost) } as const;
    const opening = agent.open({
      how,
      sandbox: await sandboxes.sandbox(),
      noTools: false,
      signal: new AbortController().signal,
    });
    await expect(opening).rejects.toBe(lost);
  } finally {
    await sandboxes.dispose();
  }
});

describe('a session that is not there', () => {
  test.each([
    ['-32002', 'Resource not found'],
    ['-32603', 'Internal error: no rollout found for this id'],
  ])('%s %s: a new session gets the history', async (code, words) => {
    await using home = await AcpHome.make({
      agent: (model, root) => ownAgent(model, root, ['odd-codes', code, words]),
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
    // An agent that does not have it says so: it is asked again.
    expect(await traitsOf(again)).toMatchObject({ load: true });
  });

  test('a locked session is waited for and kept', async () => {
    await using home = await AcpHome.make({
      agent: (model, root) => ownAgent(model, root, ['odd-codes', '-32603', 'Session is locked by another process']),
    });
    home.settings = { ...(home.settings as object), lock: { firstMs: 10, longestMs: 20, totalMs: 50 } };
    const tl = await home.open();
    await tl.conversation('chat').ask(FIRST);
    await tl.close();
    rmSync(join(home.homeOf('agent'), '.acp-agent'), { recursive: true });
    const again = await home.open();
    const { turn } = await again.conversation('chat').send(SECOND).accepted;
    await until('it has given up', async () => (await again.engine.turn(turn.id)).failure !== null);
    expect((await again.engine.turn(turn.id)).failure).toMatchObject({ code: 'session_locked' });
    expect((await again.engine.sessions('chat')).map(({ state }) => state)).toEqual(['dormant']);
  });
});
