// The real Claude on another machine, which is reached by a real sshd: it remembers after we were killed.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startModel } from '../../src/testing/index.ts';
import { startSshd, whyNoSshd } from '../contracts/sandbox/sshd.ts';
import { CliHome, until } from '../e2e/cli-process.ts';
import { marked } from '../faults/harness/marked.ts';
import { claudeOrSkip, packageFolder } from './claude.ts';
import { ALLOW_BASH, bash } from './claude-home.ts';

const MARK = 'claude-by-ssh';

test('Claude by ssh: killed with a tool running, nothing runs on, and the next turn knows', async (context) => {
  claudeOrSkip(context);
  const why = whyNoSshd();
  if (why !== null) context.skip(why);
  const model = await startModel();
  await using sshd = await startSshd();
  const home = new CliHome({ scripted: { adapter: 'scripted' } });
  const mark = `${MARK}-${process.pid}`;
  const env = {
    ...{ ANTHROPIC_BASE_URL: model.url, ANTHROPIC_API_KEY: 'sk-fake', THROUGHLINE_FAULTS_MARK: mark },
    ...{ CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1', DISABLE_AUTOUPDATER: '1' },
  };
  const claude = { adapter: 'claude-cli', package: packageFolder, env };
  writeFileSync(home.config, JSON.stringify({ agents: { claude }, sandbox: sshd.sandbox }));
  mkdirSync(join(sshd.home, '.claude'));
  writeFileSync(join(sshd.home, '.claude', 'settings.json'), JSON.stringify(ALLOW_BASH));
  try {
    await home.ok('send', 'chat', 'The codeword is amber.');
    const { conversation } = await home.show('chat');
    const work = (name: string) => join(sshd.sandbox.root, conversation.id, 'work', name);
    writeFileSync(work('hold'), '');
    const tool = 'echo begun >> begun; while [ -e hold ]; do sleep 0.1; done; echo ended >> begun';
    const running = home.start(['send', 'chat', bash(tool)]);
    await until(() => existsSync(work('begun')) && readFileSync(work('begun'), 'utf8') === 'begun\n');
    expect(marked(mark).length).toBeGreaterThan(1);
    running.kill('SIGKILL');
    await running.ended;
    // Nothing of ours is left to end them: they end because nobody is connected any more.
    await until(() => marked(mark).length === 0);

    expect(await home.ok('send', 'chat', 'Which codewords have you seen?')).toContain('amber');
    const { turns, receipts } = await home.show('chat');
    expect(turns.map(({ state }: { state: string }) => state)).toEqual(['completed', 'interrupted', 'completed']);
    expect(receipts.at(-1)).toMatchObject({ turn: 3 });
    expect(readFileSync(work('begun'), 'utf8')).toBe('begun\n');
    expect(model.requests.length).toBeGreaterThan(1);
  } finally {
    await home.remove();
    await model.close();
  }
});
