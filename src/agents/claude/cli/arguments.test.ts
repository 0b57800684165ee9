import { expect, test } from 'vitest';
import { KEPT_TO_ITSELF } from '../by-itself.ts';
import type { ClaudeRefusal } from '../connection.ts';
import type { Abilities } from './abilities.ts';
import { argumentsFor, checkRequest } from './arguments.ts';

const ALL: Abilities = {
  version: '2.1.325',
  warm: true,
  assignsIds: true,
  partialMessages: true,
  settings: true,
  strictMcp: true,
  noTools: true,
};
const OLD: Abilities = {
  ...ALL,
  warm: false,
  assignsIds: false,
  partialMessages: false,
  settings: false,
  strictMcp: false,
  noTools: false,
};
const id = '44444444-4444-4444-8444-444444444444';
const ALONE = { env: KEPT_TO_ITSELF };
const plain = { model: null, noTools: false, env: {} };

test('a new session is given its id, a resumed one is resumed', () => {
  const fresh = argumentsFor({ how: { kind: 'new', id }, ...plain }, {}, ALL);
  expect(fresh.slice(-2)).toEqual(['--session-id', id]);
  const resumed = argumentsFor({ how: { kind: 'resume', id }, ...plain }, {}, ALL);
  expect(resumed.slice(-2)).toEqual(['--resume', id]);
  expect(resumed).not.toContain('--session-id');
});

test('a session that goes back says where to, and which prompt that drops', () => {
  const how = { kind: 'resume', id, rewind: { at: 'leaf', drops: 'prompt' } } as const;
  const args = argumentsFor({ how, ...plain }, {}, ALL);
  expect(args.slice(-6)).toEqual(['--resume', id, '--resume-session-at', 'leaf', '--resume-drops-turn', 'prompt']);
});

test('no settings file is edited: the period after which Claude deletes sessions is given inline', () => {
  const args = argumentsFor({ how: { kind: 'resume', id }, ...plain }, {}, ALL);
  expect(args[args.indexOf('--settings') + 1]).toBe('{"cleanupPeriodDays":36500}');
});

test('an old version gets nothing that it does not know', () => {
  const args = argumentsFor({ how: { kind: 'new', id }, ...plain, ...ALONE, model: 'sonnet' }, {}, OLD);
  expect(args).toEqual(['--print', '--output-format', 'stream-json', '--verbose', '--model', 'sonnet']);
});

test('without tools there are no setting files and no servers either', () => {
  const args = argumentsFor({ how: { kind: 'resume', id }, ...plain, noTools: true }, {}, ALL);
  expect(args.join(' ')).toMatch(/--strict-mcp-config .*--tools {2}--setting-sources {2}--resume/);
});

test('tools that would wake Claude up are left out, unless background tasks are asked for; its tool for questions always', () => {
  const forbidden = (env: Record<string, string>) => {
    const args = argumentsFor({ how: { kind: 'resume', id }, ...plain, env }, {}, ALL);
    return args[args.indexOf('--disallowedTools') + 1];
  };
  expect(forbidden({ ...KEPT_TO_ITSELF })).toBe('Monitor,ScheduleWakeup,CronCreate,AskUserQuestion');
  for (const value of ['0', 'false', '']) {
    expect(forbidden({ CLAUDE_CODE_DISABLE_BACKGROUND_TASKS: value })).toBe('AskUserQuestion');
  }
});

test('what is no id never reaches Claude, which would take it for a title', () => {
  const reason = (how: Parameters<typeof checkRequest>[0]['how'], noTools = false, can = ALL) => {
    try {
      checkRequest({ how, noTools }, can);
      return null;
    } catch (error) {
      return (error as ClaudeRefusal).reason;
    }
  };
  for (const bad of ['', 'my notes', '../../etc/passwd', `${id} `, `--help`]) {
    expect(reason({ kind: 'resume', id: bad })).toBe('not_found');
    expect(reason({ kind: 'new', id: bad })).toBe('refused');
  }
  expect(reason({ kind: 'resume', id })).toBeNull();
  expect(reason({ kind: 'resume', id }, true, OLD)).toBe('refused');
});
