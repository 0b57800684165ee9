import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { faultOf } from '../../test/values/thrown.ts';
import { parsePlan } from '../core/tasks/task-plan.ts';
import { parseTaskFile, readTaskFile } from './task-file.ts';

const read = (text: string) => {
  const { plan, locate } = parseTaskFile(text, 'tasks.yaml');
  return parsePlan(plan, locate);
};

test('a task file is YAML, and so also JSON', () => {
  const yaml = read('defaults: {agent: claude}\ntasks:\n  - name: a\n    goal: |\n      One.\n      Two.\n');
  expect(yaml.tasks).toMatchObject([{ name: 'a', agent: 'claude', goal: 'One.\nTwo.' }]);
  expect(read('{"tasks": [{"goal": "x"}]}').tasks).toMatchObject([{ goal: 'x' }]);
  expect(read('- goal: x\n- goal: y').tasks).toHaveLength(2);
});

test.each<[string, string, string]>([
  ['an unknown field', 'tasks:\n  - goal: x\n    colour: red', 'line 3: Unknown field "colour"'],
  ['no goal', 'tasks:\n  - goal: x\n  - name: y', 'line 3: A task needs a goal'],
  ['a wrong value', 'tasks:\n  - goal: x\n    maxIterations: many', 'line 3: "maxIterations" must be a whole number'],
  [
    'a wrong value inside',
    'tasks:\n  - goal: x\n    gate:\n      command: y\n      timeout: 0',
    'line 5: "timeout" must be',
  ],
  ['a wrong default', 'defaults:\n  budget: 5\ntasks:\n  - goal: x', 'line 2: A budget needs a unit'],
  [
    'a circle',
    'tasks:\n  - {goal: x, name: a, after: b}\n  - {goal: y, name: b, after: a}',
    'line 3: These tasks wait',
  ],
  [
    'one session for two',
    '- goal: x\n  session: s\n- goal: y\n  session: s',
    'line 4: The session "s" is already named',
  ],
  ['no YAML', 'tasks:\n  - goal: "x', 'line 2: Missing closing "quote'],
  ['a field twice', 'tasks:\n  - goal: x\n    goal: y', 'line 3: Map keys must be unique'],
  ['nothing', '', 'tasks.yaml: A plan must be an object with "tasks"'],
  ['an endless alias', `a: &a [x]\ntasks: ${'*a, '.repeat(3)}`, 'line'],
])('names the line of %s', (_, text, message) => {
  expect(faultOf(() => read(text))?.message).toContain(message);
});

test('aliases that expand exponentially are refused, without filling the memory', () => {
  const rows = ['a0: &a0 [x, x, x, x, x, x, x, x, x, x]'];
  for (let i = 1; i < 9; i += 1)
    rows.push(
      `a${i}: &a${i} [${Array(10)
        .fill(`*a${i - 1}`)
        .join(', ')}]`,
    );
  expect(faultOf(() => read(rows.join('\n')))).toMatchObject({ code: 'invalid' });
});

test('very deep nesting is reported with our own message', () => {
  const fault = faultOf(() => read(`tasks: ${'['.repeat(20_000)}`));
  expect(fault?.message).toMatch(/^tasks\.yaml, line 1: It is nested too deep\.$/);
});

test.each([
  ['very deeply nested brackets', `tasks: ${'['.repeat(20_000)}`],
  ['an alias of a value that contains it', 'tasks: &all [*all]'],
  ['a key that every object has', 'tasks:\n  - {goal: x, __proto__: {gate: "true"}}'],
  ['another such key', 'tasks:\n  - {goal: x, constructor: y}'],
  ['a merge of fields', 'base: &base {goal: x}\ntasks:\n  - <<: *base'],
  ['two documents', 'tasks: [{goal: x}]\n---\ntasks: [{goal: y}]'],
  ['a tag', 'tasks: !!js/function "x"'],
])('%s: refused as an invalid file, and not as an internal error', (_, text) => {
  const fault = faultOf(() => read(text));
  expect(fault).toMatchObject({ code: 'invalid', message: expect.stringMatching(/^tasks\.yaml/) });
  expect(fault).toHaveProperty('hint', expect.any(String));
});

test.each([
  ['keys', 'invalid', () => Array.from({ length: 20_000 }, (_, i) => `k${i}: ${i}`).join('\n')],
  ['keys in braces', 'too_large', () => `{${Array.from({ length: 20_000 }, (_, i) => `k${i}: ${i}`).join(', ')}}`],
  ['keys with one twice', 'invalid', () => `${Array.from({ length: 20_000 }, (_, i) => `k${i}: 1`).join('\n')}\nk0: 2`],
  ['items', 'too_large', () => '- a\n'.repeat(2_000_000)],
  ['aliases', 'too_large', () => Array.from({ length: 2_000 }, (_, i) => `- &a${i} x\n- *a${i}`).join('\n')],
  ['lines of an unclosed quote', 'too_large', () => `goal: "${'x\n'.repeat(4_000_000)}"`],
])('a file of very many %s is refused within a short time', (_, code, text) => {
  const start = process.threadCpuUsage();
  expect(faultOf(() => read(text()))).toMatchObject({ code });
  const { user, system } = process.threadCpuUsage(start);
  expect((user + system) / 1_000).toBeLessThan(2_500);
});

test('a plan of the largest size is accepted', () => {
  const fields =
    'agent: a\n    maxIterations: 3\n    retryInterrupted: 1\n    permissions: ask\n    milestone: m\n    budget: 5 USD';
  const tasks = Array.from(
    { length: 1_000 },
    (_, i) => `  - name: n${i}\n    goal: |\n      One.\n\n      Two.\n    ${fields}\n`,
  );
  expect(read(`tasks:\n${tasks.join('')}`).tasks).toHaveLength(1_000);
});

test('a file is read completely, unless it is larger than a server accepts', () => {
  const folder = mkdtempSync(join(tmpdir(), 'throughline-tasks-'));
  try {
    const file = join(folder, 'tasks.yaml');
    writeFileSync(file, `tasks: [{goal: "é${'x'.repeat(90_000)}"}]`);
    const { plan, locate, base } = readTaskFile(file);
    expect(parsePlan(plan, locate).tasks[0]?.goal).toHaveLength(90_001);
    expect(base).toBe(folder);
    writeFileSync(file, `# ${'x'.repeat(8 * 1024 * 1024)}`);
    expect(faultOf(() => readTaskFile(file))).toMatchObject({ code: 'too_large' });
    expect(faultOf(() => readTaskFile(folder))).toMatchObject({ code: 'invalid' });
  } finally {
    rmSync(folder, { recursive: true });
  }
});
