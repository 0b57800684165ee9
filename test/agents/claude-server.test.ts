import { mkdirSync, symlinkSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { expect, test } from 'vitest';
import { startModel } from '../../src/testing/index.ts';
import { CliHome } from '../e2e/cli-process.ts';
import { serveProcess } from '../e2e/http/support/served-process.ts';
import { claudeEnvironment, claudeOrSkip, userHome } from './claude.ts';

test('a server without settings, with a key and an address in its environment: the first prompt to claude just works', async (context) => {
  const { program } = claudeOrSkip(context);
  const model = await startModel();
  const home = new CliHome();
  try {
    const bin = join(home.path, 'bin');
    mkdirSync(bin);
    symlinkSync(program, join(bin, 'claude'));
    const { PATH, ...environment } = claudeEnvironment(model, userHome(home.path));
    const env = { ...environment, PATH: `${bin}${delimiter}${PATH}`, THROUGHLINE_CONFIG: '' };
    const { caller, running } = await serveProcess(home, '--demo', { env });
    await caller.ok('POST', '/conversations', { key: 'first' });
    const told = await caller.ok('POST', '/conversations/first/turns', { prompt: 'The codeword is amber.' });
    expect(told.turn.agent).toBe('claude');
    expect(await caller.finished(told.turn)).toMatchObject({ turn: { state: 'completed', failure: null } });
    const asked = await caller.ok('POST', '/conversations/first/turns', { prompt: 'Which codewords have you seen?' });
    expect((await caller.finished(asked.turn)).reply).toContain('I have seen these codewords: amber.');
    // The demo has an agent of its own, and says that it is scripted.
    const demo = await caller.ok('GET', '/conversations/demo/view');
    expect(demo.turns.map((turn: { agent: string }) => turn.agent)).toEqual(['scripted', 'scripted']);
    running.kill('SIGINT');
    expect(await running.ended).toMatchObject({ code: 0 });
  } finally {
    await home.remove();
    await model.close();
  }
}, 60_000);
