// Throughline is killed in the middle of a turn, while a tool of the real Claude runs. All through the command line.
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startModel } from '../../src/testing/index.ts';
import { isAlive } from '../contracts/liveness.ts';
import { CliHome } from '../e2e/cli-process.ts';
import { claudeEnvironment, claudeOrSkip, packageFolder, userHome } from './claude.ts';
import type { ClaudeAdapter } from './claude-home.ts';

/** Leaves a trace as it begins, and another one as it ends; it ends when the file `hold` is gone. */
const COMMAND =
  'echo $$ > pid; echo begun >> effects.log; while [ -e hold ]; do sleep 0.1; done; echo ended >> effects.log';
const PROMPT = `model: tool Bash ${JSON.stringify({ command: COMMAND })}`;
const RECALL = 'Which codewords have you seen?';

export function killedInTheMiddle(adapter: ClaudeAdapter): void {
  test(`${adapter}: killed with a tool running, the turn is interrupted, and nothing happens twice`, async (context) => {
    claudeOrSkip(context);
    const model = await startModel();
    const home = new CliHome({ scripted: { adapter: 'scripted' } });
    const env = claudeEnvironment(model, userHome(home.path, { permissions: { allow: ['Bash'] } }));
    const claude = { adapter, package: packageFolder, env };
    writeFileSync(home.config, JSON.stringify({ agents: { claude } }));
    const work = join(home.path, 'work');
    mkdirSync(work);
    const effects = () => readFileSync(join(work, 'effects.log'), 'utf8').trim().split('\n');
    try {
      await home.ok('send', 'chat', 'The codeword is amber.', '--cwd', work);
      writeFileSync(join(work, 'hold'), '');
      const running = home.start(['send', 'chat', PROMPT, '--request-id', 'once']);
      for (const until = Date.now() + 20_000; !existsSync(join(work, 'effects.log')) && Date.now() < until; ) {
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      const tool = Number(readFileSync(join(work, 'pid'), 'utf8'));
      running.kill('SIGKILL');
      await running.ended;

      // The same request again is the same turn, and it is not run again.
      const again = await home.run('send', 'chat', PROMPT, '--request-id', 'once');
      expect(again.code, again.stderr).toBe(7);
      const { turns } = await home.show('chat');
      expect(turns).toHaveLength(2);
      expect(turns[1]).toMatchObject({ state: 'interrupted', requestId: 'once' });
      expect(isAlive(turns[1].sent.process.pid)).toBe(false);
      expect(isAlive(tool)).toBe(false);
      rmSync(join(work, 'hold'));
      expect(effects()).toEqual(['begun']);

      expect(await home.ok('send', 'chat', RECALL)).toContain('amber');
      const told = JSON.stringify(model.lastRequest()?.messages);
      expect(told).toContain('effects.log');
      expect(told).toContain('interrupted');
      expect(effects()).toEqual(['begun']);

      // Whoever wants it again says so: a new turn, and only now the tool runs again.
      await home.ok('retry', turns[1].id);
      const after = (await home.show('chat')).turns;
      expect(after.at(-1)).toMatchObject({ n: 4, state: 'completed', retryOf: turns[1].id });
      expect(effects()).toEqual(['begun', 'begun', 'ended']);
      expect(model.systemTexts().join('\n')).not.toMatch(/codeword|amber/i);
    } finally {
      rmSync(join(work, 'hold'), { force: true });
      await home.remove();
      await model.close();
    }
  });
}
