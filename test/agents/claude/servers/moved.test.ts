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
 * Two machines that share only the database. Each has a data home, and the home of a user with Claude's own sessions. The first machine
 * is lost with all its files. What is left of the session is our copy of its transcript in PostgreSQL.
 */
test('a conversation with Claude whose machine is lost can be moved to another, and its session is rebuilt from PostgreSQL', async (context) => {
  if (NO_POSTGRES !== null) return context.skip(NO_POSTGRES);
  if (findClaude() === null) return context.skip(NOT_INSTALLED);
  await using end = new AsyncDisposableStack();
  const model = end.adopt(await startModel(), (one) => one.close());
  const store = postgres().url(await postgres().database());
  const [first, second] = [0, 1].map(() => {
    const home = end.adopt(new CliHome(), (one) => one.remove());
    const userFolder = realpathSync(mkdtempSync(join(tmpdir(), 'throughline-user-')));
    end.defer(() => rmSync(userFolder, { recursive: true, force: true, maxRetries: 5 }));
    const env = claudeEnvironment(model, userHome(userFolder));
    home.configure({ store, agents: { claude: { adapter: 'claude-sdk', package: packageFolder, env } } });
    return { home, userFolder };
  }) as [{ home: CliHome; userFolder: string }, { home: CliHome; userFolder: string }];

  const firstServer = await serveProcess(first.home);
  for (const prompt of ['The codeword is amber.', 'The codeword is cobalt.']) {
    const { turn } = await firstServer.caller.ok('POST', '/conversations/notes/turns', { prompt });
    await firstServer.caller.finished(turn);
  }
  firstServer.running.kill('SIGKILL');
  await firstServer.running.ended;
  for (const folder of [first.home.path, first.userFolder]) {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
    mkdirSync(folder);
  }

  const secondServer = await serveProcess(second.home);
  const refused = await secondServer.caller.ask('POST', '/conversations/notes/turns', { prompt: 'And now?' });
  expect(refused.status, 'a conversation is not moved by itself').toBe(422);
  await secondServer.caller.ok('POST', '/conversations/notes/move');
  const { turn } = await secondServer.caller.ok('POST', '/conversations/notes/turns', {
    prompt: 'Which codewords have you seen?',
  });
  expect((await secondServer.caller.finished(turn)).reply).toContain('amber, cobalt');
  const { receipts } = await secondServer.caller.ok('GET', '/conversations/notes/sessions');
  expect(receipts.at(-1)).toMatchObject({
    ...{ rung: 'rehydrate', carried: 2, dropped: 0, proof: 'proved' },
    filesLeft: join(first.home.path, 'home'),
  });
  const again = await secondServer.caller.ok('POST', '/conversations/notes/turns', {
    prompt: 'Which codewords have you seen?',
  });
  expect((await secondServer.caller.finished(again.turn)).reply).toContain('amber, cobalt');
  expect(await secondServer.caller.ok('GET', '/conversations/notes/verify')).toMatchObject({ broken: null });
  secondServer.running.kill('SIGTERM');
  expect(await secondServer.running.ended).toMatchObject({ code: 0 });
});
