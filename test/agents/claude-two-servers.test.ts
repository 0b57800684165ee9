import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startModel } from '../../src/testing/index.ts';
import { CliHome } from '../e2e/cli-process.ts';
import { serveProcess } from '../e2e/http/support/served-process.ts';
import { NO_POSTGRES, postgresServer } from '../postgres/server.ts';
import { claudeEnvironment, claudeOrSkip, packageFolder, userHome } from './claude.ts';

const postgres = postgresServer();

test('two servers on one PostgreSQL: what Claude was told at the first, which is killed, it knows at the second', async (context) => {
  if (NO_POSTGRES !== null) return context.skip(NO_POSTGRES);
  claudeOrSkip(context);
  const shared = realpathSync(mkdtempSync(join(tmpdir(), 'throughline-place-')));
  const model = await startModel();
  const [first, second] = [new CliHome(), new CliHome()];
  try {
    const env = claudeEnvironment(model, userHome(shared));
    const claude = { adapter: 'claude-sdk', package: packageFolder, env };
    const sandbox = { place: 'team', root: join(shared, 'sandboxes') };
    const store = postgres().url(await postgres().database());
    for (const home of [first, second]) home.configure({ store, agents: { claude }, sandbox });
    const a = await serveProcess(first);
    const told = await a.caller.ok('POST', '/conversations/notes/turns', { prompt: 'The codeword is amber.' });
    expect(await a.caller.finished(told.turn)).toMatchObject({ turn: { state: 'completed' } });
    a.running.kill('SIGKILL');
    await a.running.ended;
    const b = await serveProcess(second);
    const asked = await b.caller.ok('POST', '/conversations/notes/turns', { prompt: 'Which codewords have you seen?' });
    expect((await b.caller.finished(asked.turn)).reply).toContain('I have seen these codewords: amber.');
    const { receipts } = await b.caller.ok('GET', '/conversations/notes/sessions');
    expect(receipts.at(-1)).toMatchObject({ rung: 'resume' });
    b.running.kill('SIGTERM');
    expect(await b.running.ended).toMatchObject({ code: 0 });
  } finally {
    await Promise.all([first.remove(), second.remove()]);
    await model.close();
    rmSync(shared, { recursive: true, force: true, maxRetries: 5 });
  }
});
