// Runs each measure of bench/ briefly: when a change of the program breaks a measure, a test must fail.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import type { Finding, Measure } from '../bench/finding.ts';

const bench = (path: string) => fileURLToPath(new URL(`../bench/${path}`, import.meta.url));

/** Only in `npm run test:long`: each of these starts servers, programs or sandboxes, which takes longer. */
const LONG = [
  'http-accept',
  'http-burst',
  'http-client',
  'http-overhead',
  'page-size',
  'pages',
  'postgres',
  'postgres-load',
  'postgres-servers',
  'sandboxes',
  'send',
];
/**
 * Some need Claude's package, a browser, or the products that PostgreSQL is compared with. The others take long, and other tests cover
 * what they do.
 */
const LEFT_OUT = [
  ...(process.env.THROUGHLINE_LONG === '1' ? [] : LONG),
  ...['claude-memory', 'claude-restore', 'claude-ssh', 'claude-warm', 'held', 'http-readers', 'task-queue', 'timeline'],
  ...['postgres-langgraph', 'postgres-queues'],
];

const MEASURES = readdirSync(bench('measures'))
  .map((file) => file.replace('.ts', ''))
  .filter((name) => !LEFT_OUT.includes(name));

test.each(MEASURES)('the measure "%s" returns finite values', async (name) => {
  const { default: measure }: { default: Measure } = await import(`../bench/measures/${name}.ts`);
  const findings = await measure({ quick: true });
  expect(findings.filter(({ value }) => Number.isFinite(value)).length).toBeGreaterThan(0);
  expect(findings.filter(({ value }) => !Number.isFinite(value))).toEqual([]);
});

// `npm run bench` runs each measure in a process of its own.
test('a measure in a process of its own prints its findings', async () => {
  const child = spawn(process.execPath, [bench('one.ts'), 'plan', 'quick'], { stdio: ['ignore', 'pipe', 'pipe'] });
  const [out, errors, [status]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')]);
  expect(errors).toBe('');
  expect(status).toBe(0);
  const findings: Finding[] = JSON.parse(out.trim().split('\n').at(-1) ?? '');
  expect(findings.length).toBeGreaterThan(0);
});
