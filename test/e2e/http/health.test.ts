import { spawn } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, onTestFinished, test } from 'vitest';
import { systemProcesses } from '../../../src/host/processes.ts';
import { CliHome } from '../cli/process.ts';
import type { Caller } from './support/caller.ts';
import { ServedHome } from './support/served-home.ts';
import { serveProcess } from './support/served-process.ts';

test('the details of /health report leases with their sessions, the size of the store and its commit times; kill ends such a session', async () => {
  await using home = await ServedHome.start({ agents: { scripted: {}, other: {} } });
  const { caller } = home;
  const { turn } = await caller.ok('POST', '/conversations/warm/turns', { prompt: 'Hello.', agent: 'other' });
  await caller.finished(turn);
  const ann = (await home.key('ann', ['read', 'prompt', 'admin'])).caller;
  const waiting = await ann.ok('POST', '/conversations/hers/turns', { prompt: '/ask May I?', permissions: 'ask' });
  await expect.poll(async () => (await ann.ok('GET', '/conversations/hers')).state).toBe('asks');

  const detailsFor = async (one: Caller) => (await one.ok('GET', '/health?details=true')).details;
  const details = await detailsFor(caller);
  const { p50, p95, max } = details.store.commitMs;
  expect(details).toMatchObject({ version: 'test', sandboxes: { root: expect.stringContaining(home.path), count: 2 } });
  expect([details.store.bytes > 50_000, details.store.commits > 5]).toEqual([true, true]);
  expect([p50 > 0, p50 <= p95, p95 <= max]).toEqual([true, true, true]);
  const [session] = (await caller.ok('GET', '/conversations/warm/sessions')).sessions;
  const { id, openedAt, usedAt } = session;
  const lease = { conversationId: turn.conversationId, key: 'warm', title: 'Hello.', holder: 'this server' };
  expect(details.leases).toEqual([
    { ...lease, until: expect.any(Number), open: 0, sessions: [{ id, agent: 'other', openedAt, usedAt }] },
  ]);
  expect(Math.abs(details.leases[0].until - Date.now())).toBeLessThan(10 * 60_000);
  expect((await detailsFor(ann)).leases).toMatchObject([{ key: 'hers', open: 1, sessions: [{ agent: 'scripted' }] }]);

  // The last measurement, only of the owner's own sandboxes.
  expect(details.diskUse).toEqual({ sandboxes: 1, bytes: 0 });
  await caller.ok('GET', `/sandboxes/${turn.conversationId}?measure=true`);
  expect((await detailsFor(caller)).diskUse).toEqual({ sandboxes: 1, bytes: expect.toSatisfy((bytes) => bytes > 0) });
  expect((await detailsFor(ann)).diskUse).toEqual({ sandboxes: 1, bytes: 0 });

  await caller.ok('POST', '/conversations/warm/kill');
  expect((await detailsFor(caller)).leases.flatMap((one: { sessions: unknown[] }) => one.sessions)).toEqual([]);
  expect(Object.keys(await caller.ok('GET', '/health'))).toEqual(['status', 'live', 'ready', 'reasons']);
  await ann.ok('POST', `/turns/${waiting.turn.id}/cancel`);
  await ann.finished(waiting.turn);
});

test('the findings of the doctor name a process on the command line, and none over HTTP', async () => {
  const home = new CliHome();
  onTestFinished(() => home.remove());
  await home.ok('send', 'chat', 'Hello.');
  // As an agent that a crash left behind.
  const agent = spawn('sleep', ['3600'], { detached: true, stdio: 'ignore' });
  onTestFinished(() => void agent.kill('SIGKILL'));
  const pid = agent.pid as number;
  const edit = new DatabaseSync(join(home.path, 'home', 'throughline.db'));
  edit.prepare('UPDATE sessions SET process = ?').run(JSON.stringify(systemProcesses.identify(pid)));
  edit.close();
  const { caller } = await serveProcess(home);
  const { findings } = await caller.ok('GET', '/doctor');
  const subject = expect.stringMatching(/^session \S+ of conversation \S+$/);
  expect(findings).toMatchObject([{ check: 'processes', subject, problem: expect.stringContaining('still runs') }]);
  expect(JSON.stringify(findings)).not.toContain(`process ${pid}`);
  const { stdout } = await home.run('doctor', '--no-agents');
  expect(stdout).toContain(` (process ${pid}): Its agent, scripted, still runs`);
});

test('only the operator of the server may read the findings of the doctor', async () => {
  await using home = await ServedHome.start();
  expect(await home.caller.ok('GET', '/doctor')).toEqual({ findings: [] });
  expect((await home.caller.with({ 'throughline-owner': 'ann' }).get('/doctor')).status).toBe(200);
  const own = (await home.key('local', ['read', 'admin'])).caller;
  expect((await own.get('/doctor')).status).toBe(200);
  const ann = (await home.key('ann', ['read', 'prompt', 'approve', 'admin'])).caller;
  expect(await ann.get('/doctor')).toMatchObject({
    status: 403,
    body: { code: 'forbidden', detail: expect.stringContaining('all owners') },
  });
});

test('a real server runs the doctor in another process, once for all requests at the same time', async () => {
  const home = new CliHome();
  onTestFinished(() => home.remove());
  await home.ok('send', 'notes', '--agent', 'scripted', 'Hello.');
  const runs = join(home.path, 'runs-of-doctor');
  // Every run of the doctor adds its process id to the file.
  const record = `if (process.argv[2] === 'doctor') fs.appendFileSync(${JSON.stringify(runs)}, process.pid + '\\n');`;
  const script = encodeURIComponent(`import fs from 'node:fs'; ${record}`);
  const env = { NODE_OPTIONS: `--import=data:text/javascript,${script}` };
  const { caller, pid } = await serveProcess(home, { env });
  expect(await caller.ok('GET', '/doctor')).toEqual({ findings: [] });
  const details = (await caller.ok('GET', '/health?details=true')).details;
  expect(details).toMatchObject({ store: { bytes: expect.any(Number) }, leases: [] });
  // A sandbox without a conversation, as a copy of another data home leaves it.
  mkdirSync(`${details.sandboxes.root}/0198c0de-0000-7000-8000-000000000000/work`, { recursive: true });
  const answers = await Promise.all([1, 2, 3].map(() => caller.ok('GET', '/doctor')));
  expect(answers[0]).toMatchObject({
    findings: [{ check: 'sandboxes', remedy: expect.any(String), repairedBy: '--fix', isNote: false }],
  });
  expect([answers[1], answers[2]]).toEqual([answers[0], answers[0]]);
  const pids = readFileSync(runs, 'utf8').trim().split('\n');
  expect(pids, 'one run for the first request, and one for the three others').toHaveLength(2);
  expect(pids).not.toContain(String(pid));
});
