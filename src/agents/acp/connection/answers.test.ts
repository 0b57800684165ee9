import { RequestError } from '@agentclientprotocol/sdk';
import { describe, expect, test } from 'vitest';
import { quirksOf } from '../known/known.ts';
import { failureOf, isAuthRequired, refusalOf, wordsOf } from './answers.ts';
import { AgentGone } from './connection.ts';

describe('why an agent did not open a session', () => {
  test.each([
    [-32002, 'Resource not found', undefined, 'not_found'],
    [-32002, 'whatever', undefined, 'not_found'],
    [-32602, 'Invalid params', { message: 'Session not found: 7' }, 'not_found'],
    [-32603, 'Internal error', { details: 'No conversation found with session ID 7' }, 'not_found'],
    [-32603, 'Internal error', 'no rollout found for thread id 7', 'not_found'],
    [-32603, 'Internal error', { details: 'Provided value "x" is not a UUID and does not match any' }, 'not_found'],
    [-32603, 'Session is locked by another process', undefined, 'locked'],
    [-32603, 'session 7 is already in use', undefined, 'locked'],
    [-32603, 'Internal error', { details: 'out of memory' }, 'refused'],
    [-32601, 'Method not found', undefined, 'refused'],
  ] as const)('%i %s %j is %s', (code, message, data, reason) => {
    expect(refusalOf(new RequestError(code, message, data))).toMatchObject({ ok: false, reason });
  });

  test('an error that the agent did not send is not interpreted', () => {
    expect(refusalOf(new Error('not found'))).toMatchObject({ reason: 'refused' });
  });

  test('an error that asks for a login is recognised', () => {
    expect(isAuthRequired(new RequestError(-32000, 'Authentication required'), {})).toBe(true);
    expect(isAuthRequired(new RequestError(-32000, 'Session not found'), {})).toBe(false);
    // goose 1.50.0 answers so to opening and loading. The session is not lost.
    const unset = { details: 'Failed to resolve provider: Configuration value not found: GOOSE_PROVIDER' };
    expect(isAuthRequired(new RequestError(-32603, 'Internal error', unset), quirksOf('goose', null))).toBe(true);
    expect(isAuthRequired(new RequestError(-32603, 'Internal error', unset), {})).toBe(false);
    expect(isAuthRequired(new RequestError(-32000, 'No API key found for the provider'), {})).toBe(true);
    expect(isAuthRequired(new Error('Authentication required'), {})).toBe(false);
  });
});

describe('how a prompt ended when the agent answered with an error', () => {
  test.each([
    ['Internal error: Prompt is too long', undefined, 'too_long'],
    ['Internal error: Input exceeds the maximum length of 1048576 characters.', undefined, 'too_long'],
    ['Internal error', { message: '…', codex_error_info: 'context_window_exceeded' }, 'too_long'],
    ['Internal error', { message: "Codex ran out of room in the model's context window." }, 'too_long'],
    ['Internal error: API Error: 529 overloaded', undefined, 'agent_failed'],
    ['session is locked', undefined, 'session_locked'],
  ])('%s %j: %s', (message, data, code) => {
    expect(failureOf(new RequestError(-32603, message, data))).toMatchObject({ kind: 'failed', code });
  });

  test('when the process has ended, the outcome is unknown', () => {
    expect(failureOf(new AgentGone('it ended'))).toEqual({ kind: 'lost', message: 'it ended' });
  });
});

test('a long error is cut', () => {
  expect(wordsOf(new RequestError(-32603, 'x'.repeat(10_000), 'y'.repeat(10_000)))).toHaveLength(1_000);
});
