import { createHash } from 'node:crypto';
import type { Prompt, Receipt } from 'throughline/client';
import { expect, test } from 'vitest';
import { NO_USAGE } from '../../../src/core/turn/usage.ts';
import { checkTold, type SeamFacts, seamOf } from './seam.ts';

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
  ...{
    turn: { agent: 'claude', options: {} },
    previous: { agent: 'claude' },
    imported: false,
    receipts: [RECEIPT],
    ended: null,
    fork: null,
  },
};
const tried = (failure: string) => [{ rung: 'resume', sessionId: 's1', failure }] as const;

const CASES: [string, Partial<SeamFacts>, Partial<Receipt>, string | null][] = [
  [
    'a killed process',
    { ended: 'ann ended its process' },
    { dropped: 12 },
    'warn Restored in part: Process was killed · rebuilt by transcript · 214 carried, 12 dropped · counted · 0 model calls · 1.2 s',
  ],
  [
    'the reason why the first step failed',
    {},
    { tried: tried('the session file is gone.') },
    'good Restored: The session file is gone · rebuilt by transcript · 214 carried, 0 dropped · counted · 0 model calls · 1.2 s',
  ],
  [
    'a process that ended without a known reason',
    {},
    { rung: 'resume', proof: 'proved', modelCalls: 1, condensed: 3 },
    'good Restored: Process had ended · resumed by the agent · 214 carried, 3 condensed, 0 dropped · proved · 1 model call · 1.2 s',
  ],
  [
    'a rebuild that somebody asked for',
    { turn: { agent: 'claude', options: { restore: { rebuild: true } } } },
    {},
    'good Restored: Rebuilt on request · rebuilt by transcript · 214 carried, 0 dropped · counted · 0 model calls · 1.2 s',
  ],
  [
    'turns that were imported',
    { imported: true, previous: null },
    {},
    'good Restored: Imported · rebuilt by transcript · 214 carried, 0 dropped · counted · 0 model calls · 1.2 s',
  ],
  [
    'a move from a place that is gone',
    { ended: 'ann ended its process' },
    { filesLeft: '/srv/old' },
    'warn Restored: Moved here · rebuilt by transcript · without its files · 214 carried, 0 dropped · counted · 0 model calls · 1.2 s',
  ],
  [
    'a handoff',
    { previous: { agent: 'codex' } },
    {},
    'good Restored: Handed over from codex to claude · rebuilt by transcript · 214 carried, 0 dropped · counted · 0 model calls · 1.2 s',
  ],
  [
    'a handoff back to a live session',
    { previous: { agent: 'codex' } },
    { rung: 'live', proof: 'proved' },
    'good Restored: Handed over from codex to claude · in its live session · 214 carried, 0 dropped · proved · 0 model calls · 1.2 s',
  ],
  [
    'a fork',
    { fork: { title: null, n: 4 } },
    {},
    'good Restored: Forked at turn 4 · rebuilt by transcript · 214 carried, 0 dropped · counted · 0 model calls · 1.2 s',
  ],
  [
    'a fork before its first prompt',
    { fork: { title: 'Notes', n: 4 }, receipts: [], turn: null },
    {},
    'good Copied: Forked from “Notes” at turn 4',
  ],
  [
    'a failed restore',
    { ended: 'ann ended its process' },
    { rung: 'none', proof: 'none', carried: 0, dropped: 226, tried: tried('no') },
    'bad Not restored: Context could not be restored · nothing was sent · 0 model calls · 1.2 s',
  ],
  [
    'a session that was shown to lack the context',
    {},
    { rung: 'resume', proof: 'refuted' },
    'bad Refuted: Process had ended · resumed by the agent · 214 carried, 0 dropped · refuted · 0 model calls · 1.2 s',
  ],
  [
    'a fresh session, on purpose',
    {},
    { rung: 'fresh', proof: 'none', carried: 0, dropped: 214 },
    'warn Fresh: Process had ended · without the history · 0 carried, 214 dropped · not proved · 0 model calls · 1.2 s',
  ],
  ['a live session has no seam', {}, { rung: 'live', proof: 'proved' }, null],
  ['a first session has nothing to restore', { previous: null }, { rung: 'new', carried: 0 }, null],
  ['nothing is known', { receipts: [] }, {}, null],
];

test.each(CASES)('%s', (_name, facts, receipt, said) => {
  const receipts = facts.receipts ?? [{ ...RECEIPT, ...receipt }];
  const seam = seamOf({ ...FACTS, ...facts, receipts });
  expect(seam && `${seam.tone} ${seam.verdict}: ${seam.words.join(' · ')}`).toBe(said);
});

test('if a turn found a live session, the seam is from the warm-up before it', () => {
  const warm: Receipt = { ...RECEIPT, turn: null, rung: 'rehydrate', proof: 'proved' };
  const seam = seamOf({ ...FACTS, receipts: [warm, { ...RECEIPT, rung: 'live' }] });
  expect(seam?.receipt).toBe(warm);
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
