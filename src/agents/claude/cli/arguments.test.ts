import { expect, test } from 'vitest';
import type { ClaudeRefusal } from '../connection.ts';
import { ISOLATION_DEFAULTS } from '../environment.ts';
import { argumentsFor, checkId } from './arguments.ts';

const id = '44444444-4444-4444-8444-444444444444';
const plain = { model: null, noTools: false, env: {} };

test('a new session is given its id, a resumed one is resumed', () => {
  const fresh = argumentsFor({ how: { kind: 'new', id }, ...plain }, {});
  expect(fresh.slice(-2)).toEqual(['--session-id', id]);
  const resumed = argumentsFor({ how: { kind: 'resume', id }, ...plain }, {});
  expect(resumed.slice(-2)).toEqual(['--resume', id]);
  expect(resumed).not.toContain('--session-id');
});

test('a session that goes back says where to, and which prompt that drops', () => {
  const how = { kind: 'resume', id, rewind: { at: 'leaf', drops: 'prompt' } } as const;
  const args = argumentsFor({ how, ...plain }, {});
  expect(args.slice(-6)).toEqual(['--resume', id, '--resume-session-at', 'leaf', '--resume-drops-turn', 'prompt']);
});

test('no settings file is edited: the period after which Claude deletes sessions is given inline', () => {
  const args = argumentsFor({ how: { kind: 'resume', id }, ...plain }, {});
  expect(args[args.indexOf('--settings') + 1]).toBe('{"cleanupPeriodDays":36500}');
});

test('without tools there are no setting files and no servers either', () => {
  const args = argumentsFor({ how: { kind: 'resume', id }, ...plain, noTools: true }, {});
  expect(args.join(' ')).toMatch(/--strict-mcp-config .*--tools {2}--setting-sources {2}--resume/);
});

test('tools that would wake Claude up are left out, unless background tasks are asked for; its tool for questions always', () => {
  const forbidden = (env: Record<string, string>) => {
    const args = argumentsFor({ how: { kind: 'resume', id }, ...plain, env }, {});
    return args[args.indexOf('--disallowedTools') + 1];
  };
  expect(forbidden({ ...ISOLATION_DEFAULTS })).toBe('Monitor,ScheduleWakeup,CronCreate,AskUserQuestion');
  for (const value of ['0', 'false', '']) {
    expect(forbidden({ CLAUDE_CODE_DISABLE_BACKGROUND_TASKS: value })).toBe('AskUserQuestion');
  }
});

test('only a UUID reaches Claude, which would take anything else for the title of a session', () => {
  const reason = (how: Parameters<typeof checkId>[0]) => {
    try {
      checkId(how);
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
});
