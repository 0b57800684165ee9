// What happens to an agent that speaks ACP between two turns, and in the middle of one.
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Throughline } from '../../../../src/index.ts';
import { acknowledgement, codewordsIn, conversationOf, type ModelRequest } from '../../../../src/testing/index.ts';
import { until } from '../../../contracts/agent-sandbox.ts';
import { allEvents } from '../../../e2e/support/conversations.ts';
import { sentTo } from '../../../e2e/support/stored.ts';
import { AcpHome, type MakeSettings } from '../../support/acp-home.ts';
import { codeword, FIRST, FOURTH } from '../../support/agent-home.ts';
import { exportedOf } from '../../support/long-conversation.ts';

export interface AgentUnderTest {
  readonly name: string;
  readonly settings: MakeSettings;
  /** Where it keeps its sessions, from its home. */
  readonly storage: string;
  /** `load`: it opens a session again with its history. `incomplete`: without. `none`: it cannot. `sometimes`: it depends on the time. */
  readonly again: 'load' | 'incomplete' | 'none' | 'sometimes';
  /** The line that makes it run a command. */
  readonly run: (command: string) => string;
  /** How long a scenario may take. */
  readonly limitMs?: number;
}

/** The model's earlier answers in a request, in order, as its own messages or in a transcript block. */
function acknowledgementsIn(request: ModelRequest): string[] {
  const said = conversationOf(request).map(({ text }) => text);
  return [...said.join('\n').matchAll(/Acknowledged [0-9a-z]+\./g)].map(([text]) => text);
}

/** With its command: some agents begin with a title that says only what kind of tool it is. */
async function tellsOfTool(tl: Throughline): Promise<boolean> {
  const updates = (await allEvents(tl.engine, 'chat')).map((one) =>
    one.kind === 'turn.update' ? one.payload.update : null,
  );
  return updates.some((one) => one !== null && 'toolCallId' in one && `${one.title}`.includes('effects.log'));
}

const WHICH = 'Which codewords have you seen?';
const TRANSCRIPT = { rung: 'transcript', dropped: 0, modelCalls: 0, proof: 'counted' };

export function acpScenarios(agent: AgentUnderTest): void {
  const { name, settings, again, run, limitMs = 180_000 } = agent;
  const make = () => AcpHome.make({ agent: settings });

  describe(`${name} keeps its context`, { timeout: limitMs }, () => {
    describe('in one conversation', () => inOneConversation(agent));

    test('ten prompts at once from two processes: each request has all that came before it', async () => {
      await using home = await make();
      const hosts = await Promise.all([home.host(), home.host()]);
      const words = Array.from({ length: 10 }, (_, i) => `word-${i + 1}`);
      const answers = await Promise.all(words.map((word, i) => hosts[i % 2]?.calls.ask('chat', codeword(word))));
      const requests = home.model.requests.filter(({ side }) => !side);
      expect(requests).toHaveLength(10);
      // The last process may have opened the session again and delivered the history in another way.
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

    test('Throughline is killed while a tool runs: one side effect, an interrupted turn, and the next one knows', async () => {
      await using home = await make();
      const cwd = home.directory('work');
      const effects = join(cwd, 'effects.log');
      const host = await home.host();
      await host.calls.ask('chat', FIRST, { cwd });
      const asked = host.calls.ask('chat', run('echo line >> effects.log; sleep 60; echo late >> effects.log'));
      asked.catch(() => {});
      const tl = await home.open();
      await until('the tool runs', () => existsSync(effects));
      // Codex reports the tool a moment after it began.
      await until('it was told of', () => tellsOfTool(tl));
      await host.kill();
      const { reply, receipt } = await tl.conversation('chat').ask(WHICH);
      expect(reply).toContain('amber');
      const states = (await tl.engine.turns('chat')).map((turn) => turn.state);
      expect(states).toEqual(['completed', 'interrupted', 'completed']);
      expect(receipt).toMatchObject({ carried: 2, dropped: 0 });
      if (again !== 'sometimes') expect(receipt.unsettled).toBe(again === 'load');
      const request = home.model.lastRequest();
      const said = request ? conversationOf(request).map(({ text }) => text) : [];
      expect(said.join('\n')).toMatch(/\[turn 2\] did not complete: interrupted/);
      expect(said.join('\n')).toMatch(/\[turn 2\] tool .*effects\.log.*: unknown/);
      expect(readFileSync(effects, 'utf8')).toBe('line\n');
    });

    test('a thousand turns that it never saw are delivered without a model call, and dropped ones are counted', async () => {
      await using home = await make();
      const tl = await home.open();
      const words = Array.from({ length: 1_000 }, (_, i) => `word-${i + 1}`);
      await tl.engine.import(exportedOf(words), { key: 'all' });
      const all = await tl.conversation('all', { agent: 'agent' }).ask(WHICH, { restore: { budgetTokens: 200_000 } });
      expect(all.receipt).toMatchObject({ ...TRANSCRIPT, carried: 1_000 });
      expect(all.reply).toBe(`I have seen these codewords: ${words.join(', ')}.`);
      expect(home.model.requests.filter(({ side }) => !side)).toHaveLength(1);
      await tl.engine.import(exportedOf(words), { key: 'some' });
      const some = await tl.conversation('some', { agent: 'agent' }).ask(WHICH, { restore: { budgetTokens: 5_000 } });
      const { carried, dropped } = some.receipt;
      expect(carried).toBeGreaterThan(50);
      expect(carried + dropped).toBe(1_000);
      expect(some.reply).toBe(`I have seen these codewords: ${words.slice(dropped).join(', ')}.`);
    });
  });
}

/** The tests run one after another in one conversation: each goes on from the turns of those before it. */
function inOneConversation({ settings, storage, again }: AgentUnderTest): void {
  let home: AcpHome;
  let tl: Throughline;
  const said: string[] = [];
  const ask = (word: string) => {
    said.push(word);
    return tl.conversation('chat').ask(codeword(word));
  };
  beforeAll(async () => {
    home = await AcpHome.make({ agent: settings });
    tl = await home.open();
    for (const word of ['amber', 'birch', 'cedar']) await ask(word);
  });
  afterAll(() => home[Symbol.asyncDispose]());

  test('a fork in another directory continues separately, each with its own codewords only', async () => {
    await tl.engine.fork('chat', { turn: 2, key: 'fork', cwd: home.directory('other') });
    const { receipt } = await tl.conversation('fork').ask(FOURTH);
    home.expectCodewords('amber', 'birch', 'denim');
    expect(receipt).toMatchObject({ ...TRANSCRIPT, carried: 2, delivered: 2 });
    await ask('ebony');
    home.expectTold(...said.map(codeword));
    await tl.conversation('fork').ask(codeword('flint'));
    home.expectCodewords('amber', 'birch', 'denim', 'flint');
  });

  test('killed, and Throughline opened again: the next request has all before it, in order', async () => {
    const [session] = await tl.engine.sessions('chat');
    const turn = (await tl.engine.turns('chat')).at(-1);
    process.kill(sentTo(home, turn?.id ?? '').pid, 'SIGKILL');
    await tl.close();
    tl = await home.open();
    const carried = said.length;
    const { receipt } = await ask('grape');
    home.expectCodewords(...said);
    if (again === 'load') {
      home.expectTold(...said.map(codeword));
      expect(receipt).toMatchObject({ rung: 'resume', carried, delivered: 0, modelCalls: 0, proof: 'consistent' });
      expect(receipt.sessionId).toBe(session?.id);
      return;
    }
    expect(receipt).toMatchObject({ carried, dropped: 0, modelCalls: 0 });
    if (again === 'sometimes') return;
    expect(receipt).toMatchObject({ ...TRANSCRIPT, delivered: carried });
    expect(receipt.tried.map(({ rung }) => rung)).toEqual(again === 'incomplete' ? ['resume'] : []);
  });

  test('its files are deleted and Throughline starts in another directory: a new session gets the history', async () => {
    await tl.close();
    rmSync(join(home.homeOf('agent'), storage), { recursive: true });
    const here = process.cwd();
    process.chdir(home.directory('elsewhere'));
    const carried = said.length;
    try {
      tl = await home.open();
      const { receipt, reply } = await ask('hazel');
      expect(receipt).toMatchObject({ ...TRANSCRIPT, carried, delivered: carried });
      // The model gets the person's own words, and the reply is exactly its answer.
      expect(reply).toBe(acknowledgement(codeword('hazel')));
      expect(receipt.tried.map(({ rung }) => rung)).toEqual(again === 'none' ? [] : ['resume']);
    } finally {
      process.chdir(here);
    }
    home.expectCodewords(...said);
  });
}
