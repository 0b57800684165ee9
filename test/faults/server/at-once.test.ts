import { mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { lockFile } from '../../../src/host/file-lock.ts';
import { CliHome, type Ended, type Running } from '../../e2e/cli/process.ts';
import { until } from '../harness/until.ts';

const ROUNDS = 4;

/*
 * Servers of one data home are started at the same moment, again and again. Each time one serves, and the others say which one. Before each
 * round except the first, the serving one is killed, and what it leaves must not hinder the next.
 */
test.each([
  ['with a socket', 2, 'home'],
  ['where the path is too long for a socket', 2, join('home', 'long-'.repeat(30))],
  ['three of them', 3, 'home'],
])('one serves, and the others say which: %s', async (_, count, folder) => {
  const home = new CliHome();
  const env = { THROUGHLINE_HOME: join(home.path, folder) };
  const start = () => home.start(['serve', '--json', '--port', '0', '--log-level', 'silent'], { env });
  /** How often each reason was given by the servers that did not serve. */
  const said = { serves: 0, starts: 0 };
  try {
    for (let round = 0; round < ROUNDS; round += 1) {
      const all = Array.from({ length: count }, start);
      const outcomes = await Promise.all(all.map(outcomeOf));
      const serving = outcomes.flatMap(({ url }, index) => (url === null ? [] : [{ url, running: all[index] }]));
      expect(serving, JSON.stringify(outcomes)).toHaveLength(1);
      const [{ url, running } = { url: '' }] = serving;
      for (const { ended } of outcomes) {
        if (ended === null) continue;
        expect(ended).toMatchObject({ code: 1, stdout: '' });
        const { error } = JSON.parse(ended.stderr);
        const serves = `This data home already has a running server: ${url}, process ${running?.pid}.`;
        // On a very busy machine the others may give up before the first one has started.
        const starts = 'Another server of this data home is starting or stopping.';
        expect(error.code).toBe('conflict');
        expect([serves, starts]).toContain(error.message);
        said[error.message === serves ? 'serves' : 'starts'] += 1;
      }
      expect((await fetch(`${url}/healthz`)).status).toBe(200);
      running?.kill('SIGKILL');
      await running?.ended;
    }
    expect(said.serves, JSON.stringify(said)).toBeGreaterThan(0);
  } finally {
    await home.remove();
  }
});

/** Pretends to be a server that starts or stops: it holds the lock, and its address is not known. */
function silentServer(home: CliHome) {
  const directory = join(home.path, 'home', 'server');
  mkdirSync(directory, { recursive: true });
  const held = lockFile(join(directory, 'lock'));
  if (held === null) throw new Error('Another process holds the lock.');
  return { held, isLookedAt: () => (statSync(directory).mode & 0o777) === 0o700 };
}

test('a server that waits for one that starts takes over when that one gives up', async () => {
  const home = new CliHome();
  try {
    const { held, isLookedAt } = silentServer(home);
    const next = home.start(['serve', '--json', '--port', '0', '--log-level', 'silent']);
    await until('the next one has come to the lock', isLookedAt);
    held.release();
    expect(await outcomeOf(next)).toMatchObject({ url: expect.stringContaining('http://') });
  } finally {
    await home.remove();
  }
});

test('a server reports after a while that another one is starting or stopping', async () => {
  const home = new CliHome();
  const { held } = silentServer(home);
  try {
    const { code, stderr } = await home.run('serve', '--port', '0');
    expect([code, stderr]).toEqual([1, expect.stringContaining('is starting or stopping. Try again')]);
  } finally {
    held.release();
    await home.remove();
  }
});

/** The address of the server, or how it ended instead. */
async function outcomeOf(running: Running): Promise<{ url: string | null; ended: Ended | null }> {
  const serves = running.until('stdout', /^\{"kind":"serving".*\}$/m);
  const [line] = await serves.catch(() => []);
  if (line === undefined) return { url: null, ended: await running.ended };
  return { url: JSON.parse(line).url, ended: null };
}
