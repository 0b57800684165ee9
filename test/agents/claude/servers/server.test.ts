import { mkdirSync, readdirSync, symlinkSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { expect, test } from 'vitest';
import { startModel } from '../../../../src/testing/index.ts';
import { CliHome } from '../../../e2e/cli/process.ts';
import { serveProcess } from '../../../e2e/http/support/served-process.ts';
import { until } from '../../../faults/harness/until.ts';
import { claudeEnvironment, claudeOrSkip, packageFolder, userHome } from '../../support/claude.ts';

test('a server without settings uses the Claude on PATH, with the key and address of its environment', async (context) => {
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
    const first = await caller.ok('POST', '/conversations/first/turns', { prompt: 'The codeword is amber.' });
    expect(first.turn.agent).toBe('claude');
    expect(await caller.finished(first.turn)).toMatchObject({ turn: { state: 'completed', failure: null } });
    const second = await caller.ok('POST', '/conversations/first/turns', { prompt: 'Which codewords have you seen?' });
    expect((await caller.finished(second.turn)).reply).toContain('I have seen these codewords: amber.');
    // The demo runs the same Claude with its own scripted model. It sends no request to the model of the user.
    const demo = '/conversations/demo-claude';
    await until('the demo was answered', async () => (await caller.ok('GET', demo)).head === 2);
    const { conversation, turns } = await caller.ok('GET', `${demo}/view`);
    expect(conversation.title).toBe('Demo: the real Claude, a scripted model');
    expect(turns[1].reply).toContain('I have seen these codewords: amber-heron.');
    expect(JSON.stringify(model.requests)).not.toContain('amber-heron');
    running.kill('SIGINT');
    expect(await running.ended).toMatchObject({ code: 0 });
  } finally {
    await home.remove();
    await model.close();
  }
});

test('the demo of a server runs the real Claude without the login, cloud and proxy of the user', async (context) => {
  claudeOrSkip(context);
  const home = new CliHome();
  try {
    mkdirSync(join(home.path, 'home', 'agents'), { recursive: true });
    symlinkSync(packageFolder, join(home.path, 'home', 'agents', 'claude'));
    const ofUser = {
      ANTHROPIC_BASE_URL: 'http://127.0.0.1:9',
      ANTHROPIC_API_KEY: 'sk-of-the-user',
      ANTHROPIC_AUTH_TOKEN: 'x',
      ANTHROPIC_MODEL: 'theirs',
      CLAUDE_CODE_OAUTH_TOKEN: 'x',
      CLAUDE_CODE_USE_BEDROCK: '1',
      AWS_ACCESS_KEY_ID: 'x',
      AWS_SECRET_ACCESS_KEY: 'x',
      HTTPS_PROXY: 'http://127.0.0.1:9',
      HTTP_PROXY: 'http://127.0.0.1:9',
    };
    const userFolder = userHome(home.path, { env: { ANTHROPIC_BASE_URL: 'http://127.0.0.1:9' } });
    const env = { ...ofUser, HOME: userFolder, THROUGHLINE_CONFIG: '' };
    const running = home.start(['serve', '--demo', '--port', '0'], { env });
    await running.until('stdout', /Press Ctrl-C to stop\./);
    expect(running.stdout).toContain('Its agent is the real Claude. Its model is scripted');
    const demo = () => home.lines('summary', 'demo-claude');
    await until('the demo was answered', async () => (await demo())[0].contexts === 2, { every: 500 });
    const { turns } = await home.show('demo-claude');
    expect(turns.map(({ state, failure }: { state: string; failure: unknown }) => [state, failure])).toEqual([
      ['completed', null],
      ['completed', null],
    ]);
    expect(turns[1].reply).toContain('amber-heron');
    expect(readdirSync(join(userFolder, '.claude'))).toEqual(['settings.json']);
    running.kill('SIGINT');
    expect(await running.ended).toMatchObject({ code: 0 });
  } finally {
    await home.remove();
  }
});
