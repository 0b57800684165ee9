import { describe, expect, test } from 'vitest';
import type { Failure } from '../errors.ts';
import type { RecordPart } from './record.ts';
import { type AttemptFacts, decideAfterAttempt, endOfSent, type PromptFacts, type SentFacts } from './turn-decision.ts';
import { NO_USAGE } from './usage.ts';

const FAILED: Failure = { code: 'agent_failed', message: 'Overloaded.' };
const LOCKED: Failure = { code: 'session_locked', message: 'Locked.' };
const TOO_LONG: Failure = { code: 'too_long', message: 'Too long.' };
const DIED: Failure = { code: 'agent_died', message: 'It has died.' };
const REFUTED: Failure = { code: 'context_refuted', message: 'It lacks turn 2.' };
const CANCELLED: Failure = { code: 'cancelled', message: 'Cancelled.' };

const PROMPT: PromptFacts = { harmless: true, again: true, untaken: false, delivered: 3, images: 0, reusable: true };
const FACTS: AttemptFacts = {
  stop: null,
  failure: null,
  prompt: PROMPT,
  sentBefore: false,
  isFirst: true,
  tries: 1,
  mostAttempts: 2,
  retryMs: 500,
  lockWaitMs: 100,
  shrunk: false,
  chosenId: false,
};
const unsent = { prompt: null };
const prompt = (facts: Partial<PromptFacts>) => ({ prompt: { ...PROMPT, ...facts } });

describe('after an attempt in which no prompt was sent', () => {
  test.each<[string, Partial<AttemptFacts>, object]>([
    ['a failed restore ends the turn', { ...unsent, failure: FAILED }, { as: 'unsent', failure: FAILED }],
    ['a cancel ends it', { ...unsent, stop: 'cancelled' }, { as: 'unsent', failure: CANCELLED }],
    ['a cancel beats the failure', { ...unsent, stop: 'cancelled', failure: FAILED }, { failure: CANCELLED }],
    ['the end of this program leaves it queued', { ...unsent, stop: 'shutdown' }, { next: 'leave' }],
    ['… also after a failed restore', { ...unsent, stop: 'shutdown', failure: FAILED }, { next: 'leave' }],
    [
      'a turn that was sent before ends with that attempt',
      { ...unsent, failure: FAILED, sentBefore: true },
      { as: 'earlier', failure: FAILED },
    ],
    [
      '… and is interrupted by the end of this program',
      { ...unsent, stop: 'shutdown', sentBefore: true },
      { as: 'earlier', failure: { code: 'interrupted' } },
    ],
  ])('%s', (_, facts, verdict) => {
    expect(decideAfterAttempt({ ...FACTS, ...facts })).toMatchObject(verdict);
  });
});

describe('after a prompt that was sent, the turn ends', () => {
  test.each<[string, Partial<AttemptFacts>, object]>([
    ['when it completed', {}, { as: 'sent', failure: null }],
    ['when it completed although it was to stop', { stop: 'shutdown' }, { as: 'sent', failure: null }],
    [
      'when a tool had begun, or the end was not seen',
      { failure: FAILED, ...prompt({ harmless: false }) },
      { as: 'sent' },
    ],
    [
      'when the agent reports that a retry does not help',
      { failure: FAILED, ...prompt({ again: false }) },
      { as: 'sent' },
    ],
    ['when the attempts are used up', { failure: FAILED, tries: 2 }, { as: 'sent', failure: FAILED }],
    ['as cancelled when it was to stop', { failure: FAILED, stop: 'cancelled' }, { as: 'sent', failure: CANCELLED }],
    [
      'by its own failure when a tool had begun before it was to stop',
      { failure: FAILED, stop: 'cancelled', ...prompt({ harmless: false }) },
      { as: 'sent', failure: FAILED },
    ],
    ['when its session stayed locked', { failure: LOCKED, lockWaitMs: null }, { as: 'sent', failure: LOCKED }],
    [
      'when it failed with images, and then without',
      { failure: FAILED, shrunk: true, ...prompt({ again: false, images: 1 }) },
      { as: 'sent' },
    ],
    [
      'when the agent died with images of earlier turns, which says nothing about them',
      { failure: DIED, ...prompt({ again: false, images: 1 }) },
      { as: 'sent', failure: DIED },
    ],
    [
      'when the agent did not accept the prompt, with or without history before it',
      { failure: FAILED, ...prompt({ again: false, untaken: true, images: 1 }) },
      { as: 'untaken' },
    ],
    ['when a prompt without history is too long', { failure: TOO_LONG, ...prompt({ delivered: 0 }) }, { as: 'sent' }],
    ['when half of the history is too long as well', { failure: TOO_LONG, shrunk: true }, { as: 'sent' }],
    ['when the context was refuted again and again', { failure: REFUTED, tries: 8 }, { as: 'sent' }],
    [
      'as untaken when the agent did not accept its first prompt',
      { failure: FAILED, ...prompt({ untaken: true, again: false }) },
      { as: 'untaken' },
    ],
    [
      'as sent when the agent may have accepted an earlier attempt',
      { failure: FAILED, isFirst: false, ...prompt({ untaken: true, again: false }) },
      { as: 'sent' },
    ],
    [
      '… also when that was an attempt of this worker',
      { failure: FAILED, sentBefore: true, tries: 2, ...prompt({ untaken: true }) },
      { as: 'sent' },
    ],
  ])('%s', (_, facts, verdict) => {
    expect(decideAfterAttempt({ ...FACTS, ...facts })).toMatchObject({ next: 'end', ...verdict });
  });
});

describe('after a harmless failure, the turn is tried again', () => {
  test.each<[string, Partial<AttemptFacts>, object]>([
    ['after a pause, in the same session', { failure: FAILED }, { waitMs: 500, aside: null }],
    ['after a longer pause each time', { failure: FAILED, tries: 3, mostAttempts: 5 }, { waitMs: 2_000 }],
    [
      'in a new session when this one cannot take the prompt back',
      { failure: FAILED, ...prompt({ reusable: false }) },
      { aside: { state: 'closed' } },
    ],
    ['when a locked session may be free by then', { failure: LOCKED, tries: 20 }, { waitMs: 100, aside: null }],
    [
      'without images of earlier turns',
      { failure: FAILED, ...prompt({ again: false, images: 2 }) },
      { waitMs: 0, shrink: true, aside: { state: 'closed' }, tried: 'failed with images of earlier turns' },
    ],
    [
      'with half of the history',
      { failure: TOO_LONG },
      { waitMs: 0, shrink: true, aside: { state: 'closed' }, tried: 'refused as too long' },
    ],
    [
      'without the session that lacked its context',
      { failure: REFUTED },
      { waitMs: 0, shrink: false, tried: REFUTED.message, aside: { state: 'lost', reason: REFUTED.message } },
    ],
  ])('%s', (_, facts, verdict) => {
    expect(decideAfterAttempt({ ...FACTS, ...facts })).toMatchObject({ next: 'again', ...verdict });
  });
});

test.each<[string, Partial<AttemptFacts>, object]>([
  ['continues in its session', { failure: FAILED }, { next: 'again', aside: null }],
  [
    'ends without it',
    { failure: FAILED, ...prompt({ reusable: false }) },
    { next: 'end', as: 'sent', failure: FAILED },
  ],
  ['ends when the history was too long', { failure: TOO_LONG }, { next: 'end', as: 'sent', failure: TOO_LONG }],
  ['ends when its context is refuted', { failure: REFUTED }, { next: 'end', as: 'sent', failure: REFUTED }],
])('a turn whose caller chose the id of its session %s', (_, facts, expected) => {
  expect(decideAfterAttempt({ ...FACTS, ...facts, chosenId: true })).toMatchObject(expected);
});

describe('the end of a turn that was sent', () => {
  const text = (said: string): RecordPart[] => [{ type: 'text', text: said }];
  const [SEEN, STORED] = [text('begun'), text('begun, and ended')];
  const [SPENT, STORED_USAGE] = [
    { ...NO_USAGE, inputTokens: 5 },
    { inputTokens: 7, modelCalls: 1 },
  ];
  const INTERRUPTED: Failure = { code: 'interrupted', message: 'The program ended.' };
  const SENT: SentFacts = {
    failure: DIED,
    crashed: false,
    seen: SEEN,
    usage: SPENT,
    isUsageReported: false,
    found: STORED,
    ended: true,
    usageFound: STORED_USAGE,
  };
  const recovered = { failure: null, recovered: true, parts: STORED };
  test.each<[string, Partial<SentFacts>, object]>([
    [
      'is its completion when the agent reported that, with what it said',
      { failure: null },
      { failure: null, recovered: false, parts: SEEN, usage: SPENT },
    ],
    ['is read from the storage when the agent died', {}, recovered],
    ['is read from the storage when this program died', { failure: INTERRUPTED, crashed: true }, recovered],
    [
      'is unknown when the agent died and the storage does not show it',
      { ended: false },
      { failure: DIED, recovered: false, parts: STORED, usage: { inputTokens: 12 } },
    ],
    [
      'is unknown when this program died and the storage does not show it',
      { failure: INTERRUPTED, crashed: true, ended: false, found: [], usageFound: {} },
      { failure: INTERRUPTED, recovered: false, parts: SEEN, usage: SPENT },
    ],
    ['stays an interruption by this program', { failure: INTERRUPTED }, { failure: INTERRUPTED, recovered: false }],
    ['stays a cancellation, with all that is known', { failure: CANCELLED }, { failure: CANCELLED, parts: STORED }],
    ['stays a failure that the agent reported', { failure: FAILED }, { failure: FAILED, recovered: false }],
    ['has the usage that the storage shows', {}, { usage: { ...NO_USAGE, inputTokens: 12, modelCalls: 1 } }],
    ['has no usage twice that the agent has reported', { isUsageReported: true }, { usage: SPENT }],
  ])('%s', (_, facts, end) => {
    expect(endOfSent({ ...SENT, ...facts })).toMatchObject(end);
  });
});
