import { createHash } from 'node:crypto';
import type { Prompt, Receipt } from 'throughline/client';
import { expect, test } from 'vitest';
import { NO_USAGE } from '../../../src/core/turn/usage.ts';
import { checkTold, isLarge, lossOf, type SeamFacts, seamOf } from './seam.ts';

const RECEIPT: Receipt = {
  ...{
    turn: 5,
    attempt: 1,
    agent: 'claude',
    rung: 'transcript',
    sessionId: 's2',
    carried: 214,
    condensed: 0,
    dropped: 0,
  },
  ...{ shortened: 0, leftOut: { outputs: 0, images: 0, files: 0 }, unknownBefore: null, delivered: 214 },
  ...{
    deliveredTokens: 9_000,
    window: null,
    unsettled: false,
    modelCalls: 0,
    usage: NO_USAGE,
    toolsRan: [],
    proof: 'counted',
  },
  ...{ before: 'counted', after: null, tried: [], lockWaits: { count: 0, ms: 0 }, ms: 1_200 },
};
const FACTS: SeamFacts = {
  ...{ n: 5, turn: { agent: 'claude', options: {} }, previous: { agent: 'claude', imported: false, sessionId: 's1' } },
  ...{ receipts: [RECEIPT], ended: null, fork: null },
};
const tried = (failure: string) => [{ rung: 'resume', sessionId: 's1', failure }] as const;
const imported = { agent: 'claude', imported: true, sessionId: 's1' };

const CASES: [string, Partial<SeamFacts>, Partial<Receipt>, string | null][] = [
  [
    'a killed process',
    { ended: 'ann ended its process' },
    {},
    'transcript good, delivered: Claude Code was killed. A new session was told all 214 turns.',
  ],
  [
    'a part that did not fit',
    { ended: 'ann ended its process' },
    { carried: 202, dropped: 12 },
    'transcript look, delivered: Claude Code was killed. It knows 202 of 214 turns; the 12 oldest did not fit.',
  ],
  [
    'the reason why the first step failed',
    {},
    { tried: tried('the session file is gone.'), rung: 'rehydrate', proof: 'proved' },
    'rehydrate good, proved: The session file is gone. The file was rebuilt from the record, all 214 turns.',
  ],
  [
    'a process that ended without a known reason',
    {},
    { rung: 'resume', proof: 'consistent', carried: 211, condensed: 3 },
    'resume good, matches: Claude Code was restarted. It reopened its own session, all 214 turns, 3 in short form.',
  ],
  [
    'a replay, with its price',
    {},
    { rung: 'replay', carried: 46, modelCalls: 46, usage: { ...NO_USAGE, costMicros: 3_100_000 } },
    'replay good, 46 calls, 3.10 USD: Claude Code was restarted. A new session was asked the 46 prompts again; its answers are new.',
  ],
  [
    'a rebuild that somebody asked for',
    { turn: { agent: 'claude', options: { restore: { rebuild: true } } } },
    {},
    'transcript good, delivered: You asked for a new session. A new session was told all 214 turns.',
  ],
  [
    'turns that were imported',
    { previous: imported },
    {},
    'import good, delivered: Brought in from Claude Code with 4 turns. A new session was told all 214 turns.',
  ],
  [
    'imported turns before the next prompt',
    { previous: { ...imported, sessionId: null }, turn: null, receipts: [] },
    {},
    'import good, –: Brought in with 4 turns. Not yet opened here.',
  ],
  [
    'a move from a place that is gone',
    { ended: 'ann ended its process' },
    { filesLeft: '/srv/old' },
    'transcript look, delivered: The conversation was moved here without its files. A new session was told all 214 turns.',
  ],
  [
    'a handoff',
    { previous: { agent: 'codex', imported: false, sessionId: 's1' } },
    {},
    'handoff good, delivered:  Claude Code took over from Codex and was told all 214 turns.',
  ],
  [
    'a handoff back to a live session',
    { previous: { agent: 'codex', imported: false, sessionId: 's1' } },
    { rung: 'live', proof: 'proved', delivered: 2 },
    'handoff good, proved:  Claude Code took over from Codex and was told the 2 turns since. Its own session went on, all 214 turns.',
  ],
  [
    'a fork',
    { fork: { title: 'Notes', n: 4 } },
    {},
    'fork good, delivered: Branched from “Notes” after turn 4. This copy was told all 214 turns.',
  ],
  [
    'a fork before its first prompt',
    { fork: { title: null, n: 4 }, receipts: [], turn: null },
    {},
    'fork good, –: Branched from another conversation after turn 4. Not yet opened here.',
  ],
  [
    'a failed restore',
    { ended: 'ann ended its process' },
    { rung: 'none', proof: 'none', carried: 0, dropped: 226, tried: tried('no') },
    'failed broken, –:  No session could be given the history. Your prompt was not sent.',
  ],
  [
    'no proof',
    {},
    { proof: 'none' },
    'transcript look, not proved: Claude Code was restarted. A new session was told all 214 turns. Nothing confirms that they arrived.',
  ],
  [
    'a session that was shown to lack the context',
    {},
    { rung: 'resume', proof: 'refuted' },
    'resume broken, contradicted: Claude Code was restarted. It reopened its own session, all 214 turns. What the agent has says otherwise.',
  ],
  [
    'a fresh session, on purpose',
    { turn: { agent: 'claude', options: { restore: { policy: 'off' } } } },
    { rung: 'fresh', proof: 'none', carried: 0, dropped: 214 },
    'fresh look, –:  It started without the history, as you asked. It knows none of the 214 turns above.',
  ],
  ['a live session has no seam', {}, { rung: 'live', proof: 'proved' }, null],
  ['a first session has nothing to restore', { previous: null }, { rung: 'new', carried: 0 }, null],
  ['nothing is known', { receipts: [] }, {}, null],
];

test.each(CASES)('%s', (_name, facts, receipt, said) => {
  const receipts = facts.receipts ?? [{ ...RECEIPT, ...receipt }];
  const seam = seamOf({ ...FACTS, ...facts, receipts });
  const { kind, tone, proof, happened, means } = seam ?? {};
  expect(seam && `${kind} ${tone}, ${proof?.word ?? '–'}: ${happened} ${means}`).toBe(said);
});

test('if a turn found a live session, the seam is from the warm-up before it', () => {
  const warm: Receipt = { ...RECEIPT, turn: null, rung: 'rehydrate', proof: 'proved' };
  const seam = seamOf({ ...FACTS, receipts: [warm, { ...RECEIPT, rung: 'live' }] });
  expect(seam?.receipt).toBe(warm);
});

test('if a second attempt reopened the session of the first, the seam is where that was told the history', () => {
  const told: Receipt = { ...RECEIPT, attempt: 1 };
  const seam = seamOf({ ...FACTS, receipts: [told, { ...RECEIPT, attempt: 2, rung: 'resume' }] });
  expect(seam?.receipt).toBe(told);
});

test('a loss of half the conversation or more is large', () => {
  const loss = (carried: number, dropped: number) => lossOf({ ...RECEIPT, carried, dropped });
  expect(loss(4, 0)).toBeNull();
  expect([loss(3, 2), loss(2, 2), loss(0, 2)].map((one) => one && isLarge(one))).toEqual([false, true, true]);
});

test('what was sent to a session is verified by its hash: the text of a transcript, the JSON of a prompt', async () => {
  const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
  const content: Prompt = [{ type: 'text', text: 'Grüße 🦅' }];
  const prompt = { as: 'prompt', turn: 1, content, sha256: sha256(JSON.stringify(content)) } as const;
  const transcript = { as: 'transcript', text: 'line\n', sha256: sha256('line\n') } as const;
  expect(await checkTold(prompt)).toBe('matches');
  expect(await checkTold(transcript)).toBe('matches');
  expect(await checkTold({ ...transcript, text: 'line' })).toBe('differs');
  expect(await checkTold({ ...prompt, content: [{ type: 'text', text: 'Grüsse 🦅' }] })).toBe('differs');
});
