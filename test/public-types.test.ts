import { describe, expect, test } from 'vitest';
import { parseSettings } from '../src/core/input/settings.ts';
import { parsePlan } from '../src/core/tasks/task-plan.ts';
import type {
  AgentSettings,
  ConversationSpec,
  Message,
  OpenOptions,
  SendOptions,
  Settings,
  TaskPlan,
} from '../src/index.ts';
import { faultOf } from './values/thrown.ts';

/*
 * A misspelt name does not compile. The compiler checks this file: `@ts-expect-error` is itself an error if the line below it compiles. At
 * run time the same values are refused, by the descriptions from which the types are derived.
 */

const claude = { adapter: 'claude-sdk' } as const;

describe('settings', () => {
  test('valid settings compile and are accepted', () => {
    const settings: Settings = {
      $schema: 'throughline.schema.json',
      defaultAgent: 'claude',
      agents: {
        claude: { ...claude, model: 'sonnet', env: { A: 'b' }, options: { permissionMode: 'plan', home: 'sandbox' } },
        codex: { adapter: 'acp', command: ['codex-acp'], options: { mode: 'read-only', config: { fast: true } } },
        scripted: { adapter: 'scripted', options: { ids: 'rotating' }, limits: { turnSeconds: null } },
      },
      restore: { policy: 'auto', rung: null },
      limits: { ownerPerDay: '5 USD', owners: { ann: { tokens: 5 } }, conversationPerDay: null },
      permissions: { mode: undefined },
    };
    expect(faultOf(() => parseSettings(settings))).toBeNull();
  });

  const wrong: [string, Settings][] = [
    // @ts-expect-error
    ['a name', { agnets: {} }],
    // @ts-expect-error
    ['an adapter', { agents: { a: { adapter: 'claude' } } }],
    // @ts-expect-error
    ['no adapter', { agents: { a: {} } }],
    // @ts-expect-error
    ['a setting of an agent', { agents: { a: { ...claude, modle: 'sonnet' } } }],
    // @ts-expect-error
    ['a setting of other adapters', { agents: { a: { adapter: 'scripted', model: 'sonnet' } } }],
    // @ts-expect-error
    ['a time of an agent', { agents: { a: { ...claude, limits: { turnSecond: 1 } } } }],
    // @ts-expect-error
    ['a rung', { restore: { rung: 'replays' } }],
    // @ts-expect-error
    ['a unit', { limits: { ownerPerDay: { eur: 5 } } }],
    // @ts-expect-error
    ['a mode of permissions', { permissions: { mode: 'maybe' } }],
    // @ts-expect-error
    ['a name in a small object', { tasks: { paralel: 1 } }],
  ];
  test.each(wrong)('are refused if wrong: %s', (_, settings) => {
    expect(faultOf(() => parseSettings(settings))).toMatchObject({ code: 'invalid' });
  });
});

test('the type of the options depends on the adapter', () => {
  const agents: AgentSettings[] = [
    // @ts-expect-error
    { adapter: 'claude-sdk', options: { permisionMode: 'plan' } },
    // @ts-expect-error
    { adapter: 'claude-cli', options: { permissionMode: 'yolo' } },
    // @ts-expect-error
    { adapter: 'claude-cli', options: { agents: { reviewer: { description: 'x' } } } },
    // @ts-expect-error
    { adapter: 'claude-sdk', options: { hooks: { Stop: [{ hooks: [{ command: 'x' }] }] } } },
    // @ts-expect-error
    { adapter: 'claude-sdk', options: { hooks: { Stop: [{ hooks: [{ type: 'command', comand: 'x' }] }] } } },
    // @ts-expect-error
    { adapter: 'acp', options: { permissionMode: 'plan' } },
    // @ts-expect-error
    { adapter: 'acp', options: { mcpServers: { notes: { comand: 'notes' } } } },
    // @ts-expect-error
    { adapter: 'scripted', options: { ids: 'random' } },
  ];
  expect(agents).toHaveLength(8); // only the compiler checks here; the tests of each adapter check what it refuses at run time
});

describe('task plans', () => {
  test('valid plans compile and are accepted', () => {
    const plans: TaskPlan[] = [
      { goal: 'a' },
      [{ goal: 'a', gate: { command: 'true', timeout: 5 }, budget: '1 USD' }],
      {
        parallel: 2,
        defaults: { agent: 'a', gate: null },
        tasks: [
          { goal: 'a', name: 'n' },
          { goal: 'b', after: 'n' },
        ],
      },
    ];
    for (const plan of plans) expect(faultOf(() => parsePlan(plan))).toBeNull();
  });

  const wrong: [string, TaskPlan][] = [
    // @ts-expect-error
    ['a field', { goal: 'a', gaol: 'b' }],
    // @ts-expect-error
    ['no goal', [{ name: 'a' }]],
    // @ts-expect-error
    ['a default that only a task can have', { tasks: [{ goal: 'a' }], defaults: { goal: 'b' } }],
    // @ts-expect-error
    ['a field of a gate', { goal: 'a', gate: { comand: 'true' } }],
    // @ts-expect-error
    ['a choice', { goal: 'a', sessions: 'new' }],
    // @ts-expect-error
    ['a budget without a unit', { goal: 'a', budget: 5 }],
  ];
  test.each(wrong)('are refused if wrong: %s', (_, plan) => {
    expect(faultOf(() => parsePlan(plan))).toMatchObject({ code: 'invalid' });
  });
});

test('misspelt options of verbs do not compile', () => {
  const open: OpenOptions[] = [
    // @ts-expect-error
    { hom: '/x' },
    // @ts-expect-error
    { settings: { agents: { a: { ...claude, options: { window: 'large' } } } } },
  ];
  const send: SendOptions[] = [
    // @ts-expect-error
    { requestID: 'x' },
    // @ts-expect-error
    { restore: { polcy: 'auto' } },
    // @ts-expect-error
    { limits: { turnMs: 5 } },
  ];
  // @ts-expect-error
  const conversation: ConversationSpec = { agnet: 'claude' };
  const messages: Message[] = [
    // @ts-expect-error
    { role: 'usr', content: 'Hello.' },
    // @ts-expect-error
    { content: 'Hello.' },
  ];
  expect([open, send, conversation, messages]).toBeDefined(); // only the compiler checks here
});
