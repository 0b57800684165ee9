// Throughline is killed in the middle of a turn, while a tool of a real agent runs. All through the command line.
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, type TestContext, test } from 'vitest';
import { type Model, startModel } from '../../../src/testing/index.ts';
import { isAlive } from '../../contracts/liveness.ts';
import { CliHome, until } from '../../e2e/cli/process.ts';
import { runsIn, saidIn } from './said.ts';

/** Writes its own pid and the agent's, a line when it begins, and one when it ends: when the file `hold` is deleted. */
const COMMAND =
  'echo $$ $PPID > pids; echo begun >> effects.log; while [ -e hold ]; do sleep 0.1; done; echo ended >> effects.log';
const RECALL = 'Which codewords have you seen?';

export interface KilledAgent {
  readonly name: string;
  /** How it is set, with this model and in this folder. */
  readonly settings: (model: Model, root: string) => object;
  /** The line that makes it run a command. */
  readonly run: (command: string) => string;
  /** Skips the test where the agent is not installed. */
  readonly needs: (context: TestContext) => void;
}

export function killedInTheMiddle({ name, settings, run, needs }: KilledAgent): void {
  const title = `${name}: killed with a tool running, the turn is interrupted, and nothing happens twice`;
  const prompt = run(COMMAND);
  test(title, async (context) => {
    needs(context);
    const model = await startModel();
    const home = new CliHome({ scripted: { adapter: 'scripted' } });
    writeFileSync(home.config, JSON.stringify({ agents: { agent: settings(model, home.path) } }));
    const work = join(home.path, 'work');
    mkdirSync(work);
    const effects = () => readFileSync(join(work, 'effects.log'), 'utf8').trim().split('\n');
    try {
      await home.ok('send', 'chat', 'The codeword is amber.', '--cwd', work);
      writeFileSync(join(work, 'hold'), '');
      const running = home.start(['send', 'chat', prompt, '--request-id', 'once']);
      await until(() => existsSync(join(work, 'effects.log')));
      const pids = readFileSync(join(work, 'pids'), 'utf8').trim().split(' ').map(Number);
      running.kill('SIGKILL');
      await running.ended;

      // Whoever looks first brings the turn to its end.
      expect((await home.show('chat')).turns[1]).toMatchObject({ state: 'interrupted', stranded: null });
      // The same request again is the same turn, and it is not run again.
      const again = await home.run('send', 'chat', prompt, '--request-id', 'once');
      expect(again.code, again.stderr).toBe(7);
      const { turns } = await home.show('chat');
      expect(turns).toHaveLength(2);
      expect(turns[1]).toMatchObject({ state: 'interrupted', requestId: 'once' });
      expect(pids.map(isAlive), 'the tool, and the agent that ran it').toEqual([false, false]);
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
      const instructions = model.systemTexts().join('\n').replaceAll(home.path, '\n');
      expect(instructions).not.toMatch(/codeword|amber/i);
      expect(runsIn(instructions, saidIn(model.requests))).toEqual([]);
    } finally {
      rmSync(join(work, 'hold'), { force: true });
      await home.remove();
      await model.close();
    }
  });
}
