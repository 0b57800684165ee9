import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startModel } from '../../../../src/testing/index.ts';
import { CliHome } from '../../../e2e/cli/process.ts';
import { serveProcess } from '../../../e2e/http/support/served-process.ts';
import { NO_POSTGRES, postgresServer } from '../../../postgres/server.ts';
import { claudeEnvironment, findClaude, NOT_INSTALLED, packageFolder, userHome } from '../../support/claude.ts';

const postgres = postgresServer();

/*
 * Two machines that share only the database: each has a data home, and a person's home with Claude's own sessions. The first one is lost with
 * everything on it. What is left of the session is our copy of its transcript in PostgreSQL.
 */
test('the machine of a conversation with Claude is lost: moved to another one, its session is rebuilt from the copy in PostgreSQL', async (context) => {
  if (NO_POSTGRES !== null) return context.skip(NO_POSTGRES);
  if (findClaude() === null) return context.skip(NOT_INSTALLED);
  await using end = new AsyncDisposableStack();
  const model = end.adopt(await startModel(), (one) => one.close());
  const store = postgres().url(await postgres().database());
  const [first, second] = [0, 1].map(() => {
    const home = end.adopt(new CliHome(), (one) => one.remove());
    const person = realpathSync(mkdtempSync(join(tmpdir(), 'throughline-person-')));
    end.defer(() => rmSync(person, { recursive: true, force: true, maxRetries: 5 }));
    const env = claudeEnvironment(model, userHome(person));
    home.configure({ store, agents: { claude: { adapter: 'claude-sdk', package: packageFolder, env } } });
    return { home, person };
  }) as [{ home: CliHome; person: string }, { home: CliHome; person: string }];

  const a = await serveProcess(first.home);
  for (const prompt of ['The codeword is amber.', 'The codeword is cobalt.']) {
    const { turn } = await a.caller.ok('POST', '/conversations/notes/turns', { prompt });
    await a.caller.finished(turn);
  }
  a.running.kill('SIGKILL');
  await a.running.ended;
  for (const folder of [first.home.path, first.person]) {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    mkdirSync(folder);
  }

  const b = await serveProcess(second.home);
  const refused = await b.caller.ask('POST', '/conversations/notes/turns', { prompt: 'And now?' });
  expect(refused.status, 'not by itself').toBe(422);
  await b.caller.ok('POST', '/conversations/notes/move');
  const { turn } = await b.caller.ok('POST', '/conversations/notes/turns', {
    prompt: 'Which codewords have you seen?',
  });
  expect((await b.caller.finished(turn)).reply).toContain('amber, cobalt');
  const { receipts } = await b.caller.ok('GET', '/conversations/notes/sessions');
  expect(receipts.at(-1)).toMatchObject({
    ...{ rung: 'rehydrate', carried: 2, dropped: 0, proof: 'proved' },
    filesLeft: join(first.home.path, 'home'),
  });
  const again = await b.caller.ok('POST', '/conversations/notes/turns', { prompt: 'Which codewords have you seen?' });
  expect((await b.caller.finished(again.turn)).reply).toContain('amber, cobalt');
  expect(await b.caller.ok('GET', '/conversations/notes/verify')).toMatchObject({ broken: null });
  b.running.kill('SIGTERM');
  expect(await b.running.ended).toMatchObject({ code: 0 });
});
