// Scenarios for every ACP agent: kills, deleted files, forks, several processes and long histories. The agent must keep its context.
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Throughline } from '../../../../src/index.ts';
import { acknowledgement, codewordsIn, conversationOf, type ModelRequest } from '../../../../src/testing/index.ts';
import { until } from '../../../contracts/agent-sandbox.ts';
import { allEvents, WHICH_CODEWORDS } from '../../../e2e/support/conversations.ts';
import { sentTo } from '../../../e2e/support/stored.ts';
import { AcpHome, type MakeSettings } from '../../support/acp-home.ts';
import { codeword, FIRST, FOURTH } from '../../support/agent-home.ts';
import { exportedConversation } from '../../support/long-conversation.ts';

export interface AgentUnderTest {
  readonly name: string;
  readonly settings: MakeSettings;
  /** Where it stores its sessions, relative to its home. */
  readonly storage: string;
  /**
   * How it opens a stored session. `load`: with its history. `incomplete`: without it. `none`: it cannot. `sometimes`: it depends on
   * the timing.
   */
  readonly reopens: 'load' | 'incomplete' | 'none' | 'sometimes';
  /** A line of a prompt that makes it run a command. */
  readonly run: (command: string) => string;
  /** How long a scenario may take. */
  readonly limitMs?: number;
}

/** The earlier answers of the model in a request, in order: its own messages, and those in a transcript block. */
function acknowledgementsIn(request: ModelRequest): string[] {
  const texts = conversationOf(request).map(({ text }) => text);
  return [...texts.join('\n').matchAll(/Acknowledged [0-9a-z]+\./g)].map(([text]) => text);
}

/** Whether a tool call with its command is recorded. Some agents first send a title that names only the kind of tool. */
async function hasToolCall(tl: Throughline): Promise<boolean> {
  const updates = (await allEvents(tl.engine, 'chat')).map((one) =>
    one.kind === 'turn.update' ? one.payload.update : null,
  );
  return updates.some((one) => one !== null && 'toolCallId' in one && `${one.title}`.includes('effects.log'));
}

const TRANSCRIPT = { rung: 'transcript', dropped: 0, modelCalls: 0, proof: 'counted' };

export function acpScenarios(agent: AgentUnderTest): void {
  const { name, settings, reopens, run, limitMs = 180_000 } = agent;
  const makeHome = () => AcpHome.make({ agent: settings });

  describe(`${name} keeps its context`, { timeout: limitMs }, () => {
    describe('in one conversation', () => inOneConversation(agent));

    test('when two processes send ten prompts at once, each request has all earlier ones', async () => {
      await using home = await makeHome();
      const hosts = await Promise.all([home.host(), home.host()]);
      const words = Array.from({ length: 10 }, (_, i) => `word-${i + 1}`);
      const answers = await Promise.all(words.map((word, i) => hosts[i % 2]?.calls.ask('chat', codeword(word))));
      const requests = home.model.requests.filter(({ side }) => !side);
      expect(requests).toHaveLength(10);
      // A process that takes over opens the session again. It may deliver the history as messages or as a transcript block.
      const order = requests.map((request) => codewordsIn(request).at(-1) ?? '');
      expect(order.toSorted()).toEqual(words.toSorted());
      for (const [k, request] of requests.entries()) {
        expect(codewordsIn(request)).toEqual(order.slice(0, k + 1));
        const before = order.slice(0, k).map((word) => acknowledgement(codeword(word)));
        expect(acknowledgementsIn(request)).toEqual(before);
      }
      const receipts = answers
        .map((answer) => answer?.receipt)
        .toSorted((a, b) => (a?.carried ?? 0) - (b?.carried ?? 0));
      expect(receipts).toMatchObject(words.map((_, i) => ({ carried: i, dropped: 0, modelCalls: 0 })));
    });

    test('after a kill of Throughline during a tool the turn is interrupted, the tool does not run again, and the next turn says so', async () => {
      await using home = await makeHome();
      const cwd = home.directory('work');
      const effects = join(cwd, 'effects.log');
      const host = await home.host();
      await host.calls.ask('chat', FIRST, { cwd });
      // The host is killed before it can answer.
      const unanswered = host.calls.ask('chat', run('echo line >> effects.log; sleep 60; echo late >> effects.log'));
      unanswered.catch(() => {});
      const tl = await home.open();
      await until('the tool runs', () => existsSync(effects));
      // Codex reports the tool a moment after it has begun.
      await until('the tool call is recorded', () => hasToolCall(tl));
      await host.kill();
      const { reply, receipt } = await tl.conversation('chat').ask(WHICH_CODEWORDS);
      expect(reply).toContain('amber');
      const states = (await tl.engine.turns('chat')).map((turn) => turn.state);
      expect(states).toEqual(['completed', 'interrupted', 'completed']);
      expect(receipt).toMatchObject({ carried: 2, dropped: 0 });
      if (reopens !== 'sometimes') expect(receipt.unsettled).toBe(reopens === 'load');
      const request = home.model.lastRequest();
      const texts = request ? conversationOf(request).map(({ text }) => text) : [];
      expect(texts.join('\n')).toMatch(/\[turn 2\] did not complete: interrupted/);
      expect(texts.join('\n')).toMatch(/\[turn 2\] tool .*effects\.log.*: unknown/);
      expect(readFileSync(effects, 'utf8')).toBe('line\n');
    });

    test('a thousand turns of another agent are delivered without a model call, and dropped ones are counted', async () => {
      await using home = await makeHome();
      const tl = await home.open();
      const words = Array.from({ length: 1_000 }, (_, i) => `word-${i + 1}`);
      await tl.engine.import(exportedConversation(words), { key: 'all' });
      const all = await tl
        .conversation('all', { agent: 'agent' })
        .ask(WHICH_CODEWORDS, { restore: { budgetTokens: 200_000 } });
      expect(all.receipt).toMatchObject({ ...TRANSCRIPT, carried: 1_000 });
      expect(all.reply).toBe(`I have seen these codewords: ${words.join(', ')}.`);
      expect(home.model.requests.filter(({ side }) => !side)).toHaveLength(1);
      await tl.engine.import(exportedConversation(words), { key: 'some' });
      const some = await tl
        .conversation('some', { agent: 'agent' })
        .ask(WHICH_CODEWORDS, { restore: { budgetTokens: 5_000 } });
      const { carried, dropped } = some.receipt;
      expect(carried).toBeGreaterThan(50);
      expect(carried + dropped).toBe(1_000);
      expect(some.reply).toBe(`I have seen these codewords: ${words.slice(dropped).join(', ')}.`);
    });
  });
}

/** The tests share one conversation: each continues after the turns of the tests before it. */
function inOneConversation({ settings, storage, reopens }: AgentUnderTest): void {
  let home: AcpHome;
  let tl: Throughline;
  /** The codewords so far. */
  const words: string[] = [];
  const ask = (word: string) => {
    words.push(word);
    return tl.conversation('chat').ask(codeword(word));
  };
  beforeAll(async () => {
    home = await AcpHome.make({ agent: settings });
    tl = await home.open();
    for (const word of ['amber', 'birch', 'cedar']) await ask(word);
  });
  afterAll(() => home[Symbol.asyncDispose]());

  test('a fork in another directory and the original each have only their own codewords', async () => {
    await tl.engine.fork('chat', { turn: 2, key: 'fork', cwd: home.directory('other') });
    const { receipt } = await tl.conversation('fork').ask(FOURTH);
    home.expectCodewords('amber', 'birch', 'denim');
    expect(receipt).toMatchObject({ ...TRANSCRIPT, carried: 2, delivered: 2 });
    await ask('ebony');
    home.expectConversation(...words.map(codeword));
    await tl.conversation('fork').ask(codeword('flint'));
    home.expectCodewords('amber', 'birch', 'denim', 'flint');
  });

  test('after a kill of the agent and a restart, the next request has everything before it in order', async () => {
    const [session] = await tl.engine.sessions('chat');
    const turn = (await tl.engine.turns('chat')).at(-1);
    process.kill(sentTo(home, turn?.id ?? '').pid, 'SIGKILL');
    await tl.close();
    tl = await home.open();
    const carried = words.length;
    const { receipt } = await ask('grape');
    home.expectCodewords(...words);
    if (reopens === 'load') {
      home.expectConversation(...words.map(codeword));
      expect(receipt).toMatchObject({ rung: 'resume', carried, delivered: 0, modelCalls: 0, proof: 'consistent' });
      expect(receipt.sessionId).toBe(session?.id);
      return;
    }
    expect(receipt).toMatchObject({ carried, dropped: 0, modelCalls: 0 });
    if (reopens === 'sometimes') return;
    expect(receipt).toMatchObject({ ...TRANSCRIPT, delivered: carried });
    expect(receipt.tried.map(({ rung }) => rung)).toEqual(reopens === 'incomplete' ? ['resume'] : []);
  });

  test('after its files are deleted and Throughline is started in another directory, a new session gets the history', async () => {
    await tl.close();
    rmSync(join(home.homeOf('agent'), storage), { recursive: true });
    const originalDirectory = process.cwd();
    process.chdir(home.directory('elsewhere'));
    const carried = words.length;
    try {
      tl = await home.open();
      const { receipt, reply } = await ask('hazel');
      expect(receipt).toMatchObject({ ...TRANSCRIPT, carried, delivered: carried });
      // The acknowledgement depends on the prompt: so the model got the user's prompt unchanged, and the reply is exactly its answer.
      expect(reply).toBe(acknowledgement(codeword('hazel')));
      expect(receipt.tried.map(({ rung }) => rung)).toEqual(reopens === 'none' ? [] : ['resume']);
    } finally {
      process.chdir(originalDirectory);
    }
    home.expectCodewords(...words);
  });
}
