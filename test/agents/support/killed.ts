// Throughline is killed while a tool of a real agent runs. The test uses only the command line.
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, type TestContext, test } from 'vitest';
import { type Model, startModel } from '../../../src/testing/index.ts';
import { isAlive } from '../../contracts/liveness.ts';
import { CliHome, until } from '../../e2e/cli/process.ts';
import { WHICH_CODEWORDS } from '../../e2e/support/conversations.ts';
import { passagesRepeatedIn, promptsAndAnswers } from './repeated-text.ts';

/** Writes its own pid and that of the agent, and a line when it begins. It ends with another line when the file `hold` is deleted. */
const COMMAND =
  'echo $$ $PPID > pids; echo begun >> effects.log; while [ -e hold ]; do sleep 0.1; done; echo ended >> effects.log';

export interface AgentToTest {
  readonly name: string;
  /** Its settings for this model, with its files in this folder. */
  readonly settings: (model: Model, root: string) => object;
  /** A line of a prompt that makes it run a command. */
  readonly run: (command: string) => string;
  /** Skips the test if the agent is not installed. */
  readonly skipIfMissing: (context: TestContext) => void;
}

/** Defines the test for one agent. */
export function testKillDuringTool({ name, settings, run, skipIfMissing }: AgentToTest): void {
  const title = `${name}: after a kill during a tool the turn is interrupted, and the tool runs again only on request`;
  const prompt = run(COMMAND);
  test(title, async (context) => {
    skipIfMissing(context);
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

      // The next command that looks at the turn ends it.
      expect((await home.show('chat')).turns[1]).toMatchObject({ state: 'interrupted', stranded: null });
      // The same request id is the same turn. It does not run again.
      const again = await home.run('send', 'chat', prompt, '--request-id', 'once');
      expect(again.code, again.stderr).toBe(7);
      const { turns } = await home.show('chat');
      expect(turns).toHaveLength(2);
      expect(turns[1]).toMatchObject({ state: 'interrupted', requestId: 'once' });
      expect(pids.map(isAlive), 'the tool, and the agent that ran it').toEqual([false, false]);
      rmSync(join(work, 'hold'));
      expect(effects()).toEqual(['begun']);

      expect(await home.ok('send', 'chat', WHICH_CODEWORDS)).toContain('amber');
      const lastMessages = JSON.stringify(model.lastRequest()?.messages);
      expect(lastMessages).toContain('effects.log');
      expect(lastMessages).toContain('interrupted');
      expect(effects()).toEqual(['begun']);

      // `retry` makes a new turn, and only now the tool runs again.
      await home.ok('retry', turns[1].id);
      const after = (await home.show('chat')).turns;
      expect(after.at(-1)).toMatchObject({ n: 4, state: 'completed', retryOf: turns[1].id });
      expect(effects()).toEqual(['begun', 'begun', 'ended']);
      const instructions = model.systemTexts().join('\n').replaceAll(home.path, '\n');
      expect(instructions).not.toMatch(/codeword|amber/i);
      expect(passagesRepeatedIn(instructions, promptsAndAnswers(model.requests))).toEqual([]);
    } finally {
      rmSync(join(work, 'hold'), { force: true });
      await home.remove();
      await model.close();
    }
  });
}
