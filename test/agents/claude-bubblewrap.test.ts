// The real Claude in bubblewrap: it reaches its model and nothing else, never has the key, and remembers after we were killed.
import { existsSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { startModel } from '../../src/testing/index.ts';
import { isAlive } from '../contracts/liveness.ts';
import { whyNoBubblewrap } from '../contracts/sandbox/bubblewrap-given.ts';
import { CliHome, until } from '../e2e/cli-process.ts';
import { claudeOrSkip, packageFolder } from './claude.ts';
import { ALLOW_BASH, bash } from './claude-home.ts';

const KEY = 'sk-the-real-key';
const LOOK = 'env > seen; cat /proc/*/environ >> seen; echo begun >> begun; while [ -e hold ]; do sleep 0.1; done';

test('Claude in bubblewrap: killed with a tool running, the next turn knows, and the key was never inside', async (context) => {
  claudeOrSkip(context);
  const why = whyNoBubblewrap();
  if (why !== null) context.skip(why);
  const model = await startModel();
  const home = new CliHome({ scripted: { adapter: 'scripted' } });
  const env = {
    ...{ ANTHROPIC_BASE_URL: model.url, ANTHROPIC_API_KEY: KEY },
    ...{ CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1', DISABLE_AUTOUPDATER: '1' },
  };
  const claude = { adapter: 'claude-cli', package: packageFolder, env };
  writeFileSync(
    home.config,
    JSON.stringify({ agents: { claude }, sandbox: { kind: 'bubblewrap', network: 'model', key: {} } }),
  );
  try {
    await home.ok('send', 'chat', 'The codeword is amber.');
    const { conversation } = await home.show('chat');
    const folder = join(home.path, 'home', 'sandboxes', conversation.id);
    const work = (name: string) => join(folder, 'work', name);
    // Its own home: what is there is obeyed in the sandbox, and nowhere else.
    writeFileSync(join(folder, 'home', '.claude', 'settings.json'), JSON.stringify(ALLOW_BASH));
    writeFileSync(work('hold'), '');
    const running = home.start(['send', 'chat', bash(LOOK)]);
    await until(() => existsSync(work('begun')) && readFileSync(work('begun'), 'utf8') === 'begun\n');
    const inside = processesOf(work('hold'));
    expect(inside.length).toBeGreaterThan(1);
    running.kill('SIGKILL');
    await running.ended;
    // Nothing of ours is left to end them: they end with us.
    await until(() => inside.every((pid) => !isAlive(pid)));

    expect(await home.ok('send', 'chat', 'Which codewords have you seen?')).toContain('amber');
    const { turns, receipts } = await home.show('chat');
    expect(turns.map(({ state }: { state: string }) => state)).toEqual(['completed', 'interrupted', 'completed']);
    expect(receipts.at(-1)).toMatchObject({ turn: 3 });
    expect(readFileSync(work('begun'), 'utf8')).toBe('begun\n');

    const seen = readFileSync(work('seen'), 'latin1');
    expect(seen).toContain('ANTHROPIC_API_KEY=kept-outside');
    expect(seen).not.toContain(KEY);
    expect(model.requests.length).toBeGreaterThan(1);
  } finally {
    await home.remove();
    await model.close();
  }
});

/** Those in a sandbox: the processes that see this file at its path, in another root than ours. */
function processesOf(file: string): number[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.map(Number).filter((pid) => {
    try {
      return readlinkSync(`/proc/${pid}/cwd`) === dirname(file);
    } catch {
      return false; // it has ended, or is not ours
    }
  });
}
