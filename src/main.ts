import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { ThroughlineError } from './core/errors.ts';
import type { Parts } from './faces/cli/cli.ts';
import { run } from './faces/cli/run.ts';

const { stdout, stderr, env } = process;

/*
 * The executable: gives the command line its parts, and its exit code to the process. The process then ends by itself, so
 * that whatever was written is also read; the parts are loaded by the first command that needs them.
 */
const parts: Parts = {
  async open({ home, config, as: owner }) {
    const { compose } = await import('./compose.ts');
    // A process that ends with its command keeps no session open between turns.
    const engine = { maxWarm: 0 };
    return (await compose({ ...given({ home, config, owner }), engine })).engine;
  },
  async install({ agent, version, home, signal }) {
    if (agent !== 'claude') {
      const hint = 'Known is "claude".';
      throw new ThroughlineError('not_found', `There is no agent ${JSON.stringify(agent)} to install.`, { hint });
    }
    const [{ dataHome, installedClaude }, { installClaude }] = await Promise.all([
      import('./compose.ts'),
      import('./agents/claude/install.ts'),
    ]);
    return installClaude({ folder: installedClaude(resolve(home ?? dataHome())), version, env, signal });
  },
  async demo(home) {
    const { compose } = await import('./compose.ts');
    const sessionFiles = join(home, 'agent-sessions');
    const settings = { agents: { scripted: { adapter: 'scripted', options: { dir: sessionFiles } } } };
    const { engine, parts } = await compose({ home, settings });
    const agent = parts.agents.get('scripted')?.agent;
    if (agent === undefined) throw new Error('The scripted agent is missing.');
    return { engine, agent, room: await parts.sandboxes.open('control', { cwd: null }), sessionFiles };
  },
};

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
process.exitCode = await run(process.argv.slice(2), { parts, version, stdout, stderr, env });

/** Leaves out what is not set. */
function given<T extends object>(value: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(value).filter(([, v]) => v !== undefined)) as never;
}
