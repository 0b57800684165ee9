import { describe, expect, test } from 'vitest';
import {
  CONVERSATION_STATES,
  type ConversationState,
  checkFilter,
  checkUnfiltered,
  conversationState,
  type StateFacts,
  TITLE_SOURCES,
  titleWins,
} from './conversation.ts';
import type { ErrorCode } from './errors.ts';
import type { TurnEnd } from './turn/turn.ts';

describe('a title', () => {
  test('replaces one from a lower source, never one from a higher', () => {
    for (const [low, current] of TITLE_SOURCES.entries())
      for (const [high, next] of TITLE_SOURCES.entries()) {
        if (high > low) expect(titleWins(next, current)).toBe(true);
        if (high < low) expect(titleWins(next, current)).toBe(false);
      }
  });

  test('of the caller or the agent may change; the first prompt names a conversation once', () => {
    expect(titleWins('caller', 'caller')).toBe(true);
    expect(titleWins('agent', 'agent')).toBe(true);
    expect(titleWins('prompt', 'prompt')).toBe(false);
  });
});

describe('the state of a conversation', () => {
  const ended = (outcome: TurnEnd, code?: ErrorCode): StateFacts['last'] => ({
    outcome,
    failure: code ? { code } : null,
  });
  test.each<[StateFacts['open'], StateFacts['last'], ConversationState]>([
    [null, null, 'idle'],
    ['queued', null, 'queued'],
    ['running', null, 'running'],
    ['waiting', null, 'asks'],
    // An open turn decides, however earlier turns ended.
    ['queued', ended('failed', 'restore_failed'), 'queued'],
    ['running', ended('failed', 'agent_failed'), 'running'],
    ['waiting', ended('interrupted', 'agent_died'), 'asks'],
    [null, ended('completed'), 'idle'],
    [null, ended('cancelled', 'cancelled'), 'idle'],
    [null, ended('failed', 'agent_failed'), 'failed'],
    [null, ended('failed', 'permission_denied'), 'failed'],
    [null, ended('failed', 'over_budget'), 'failed'],
    [null, ended('failed', 'restore_failed'), 'unrestored'],
    [null, ended('failed', 'context_refuted'), 'unrestored'],
    [null, ended('interrupted', 'context_refuted'), 'unrestored'],
    [null, ended('interrupted', 'timed_out'), 'interrupted'],
    [null, ended('interrupted', 'agent_died'), 'interrupted'],
  ])('with the oldest open turn %s and the last end %j is %s', (open, last, state) => {
    expect(conversationState({ open, last })).toBe(state);
  });
});

describe('a filter of conversations', () => {
  test('has times in milliseconds, dates, days and times with a zone, and one state or several', () => {
    expect(checkFilter({})).toEqual({});
    expect(checkFilter({ agent: 'a', state: 'asks' })).toEqual({ agent: 'a', states: ['asks'] });
    expect(checkFilter({ state: ['idle', 'asks', 'idle'] })).toEqual({ states: ['asks', 'idle'] });
    expect(checkFilter({ since: 5, until: new Date(9) })).toEqual({ since: 5, until: 9 });
    const day = Date.UTC(2026, 0, 31);
    expect(checkFilter({ since: '2026-01-31' })).toEqual({ since: day });
    expect(checkFilter({ since: '2026-01-31T01:00+01:00', until: '2026-01-31T00:00:00.5Z' })).toEqual({
      since: day,
      until: day + 500,
    });
  });

  test.each([
    [{ state: 'busy' }, /no conversation state "busy".*/],
    [{ state: [] }, /no conversation state/],
    [{ state: ['asks', ''] }, /no conversation state ""/],
    [{ since: 'yesterday' }, /"since" must be a time/],
    [{ until: '2026-13-31' }, /"until" must be a time/],
    [{ since: '2026-02-30T12:00Z' }, /"since" must be a time/],
    [{ since: '2026-01-31T12:00' }, /"since" must be a time/],
    [{ since: -1 }, /"since" must be a time/],
    [{ since: 8.64e15 }, /"since" must be a time/],
    [{ until: new Date(Number.NaN) }, /"until" must be a time/],
    [{ agent: '' }, /agent must be/],
  ])('%j is refused', (filter, message) => {
    expect(() => checkFilter(filter as never)).toThrow(message);
  });

  test('is refused together with another way to find conversations', () => {
    expect(() => checkUnfiltered('session', { state: 'asks' })).toThrow(/by "session" or by "state", not by both/);
    expect(checkUnfiltered('session', {})).toBeUndefined();
    expect(CONVERSATION_STATES).toHaveLength(7);
  });
});
