import { mkdirSync, rmSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { agentsInSettings, compose, dataHome, installedClaude } from './compose.ts';
import { ThroughlineError } from './core/errors.ts';
import { given } from './core/given.ts';
import type { AgentSettings } from './core/settings.ts';
import type { DemoParts, DemoRequest } from './faces/cli/demo/parts.ts';
import { CLAUDE_DEMO, SCRIPTED_DEMO, type ServeDemo } from './faces/cli/serve-demo.ts';

/** What is shown to somebody who has set up nothing yet: no model is ever asked that could cost anything, unless they say so. */

export function demo(request: DemoRequest): Promise<DemoParts> {
  return request.agent === 'claude' ? demoWithClaude(request) : demoWithoutModel(request);
}

async function demoWithoutModel({ home }: DemoRequest): Promise<DemoParts> {
  const sessionFiles = join(home, 'agent-sessions');
  const about =
    'The agent here is scripted: a real process with real session files, which answers by rule. No model is called.';
  const settings = { adapter: 'scripted', options: { dir: sessionFiles } };
  return { ...(await demoParts(home, settings, null)), about, sessionFiles, close: async () => {} };
}

/** The real Claude. Its model is ours, unless the person wants theirs: a demo must not cost anything unasked. */
async function demoWithClaude({ home, live, installedIn, config }: DemoRequest): Promise<DemoParts> {
  const { projectDir, slugOf } = await import('./agents/claude/transcript/locate.ts');
  const claude = await claudeOf({ home: installedIn, config });
  if (claude === null) {
    throw new ThroughlineError('agent_unavailable', 'Claude is not installed.', {
      hint: 'Run "throughline agents install claude", or put the program "claude" on PATH.',
    });
  }
  const cwd = join(home, 'work');
  mkdirSync(cwd);
  const standIn = live ? null : await startStandIn(home);
  const agent = standIn === null ? { ...claude.program, ...claude.own } : { ...claude.program, env: standIn.env };
  const parts = await demoParts(home, agent, cwd);
  const sessionFiles = projectDir({ ...process.env, ...agent.env }, cwd);
  const { version } = await parts.agent.traits().catch(async (error: unknown) => {
    await parts.engine.close(); // or this process would stay for ever
    await standIn?.close();
    throw error;
  });
  return {
    ...parts,
    about:
      `The agent is the real Claude (${version}), with its own session files. ` +
      (live
        ? 'So is the model: your own, which is asked three things.'
        : 'Only its model is a stand-in on this machine, which knows nothing but what Claude tells it: no key, no network, no cost.'),
    sessionFiles,
    async close() {
      await standIn?.close();
      // In the person's own files, nothing is removed that could belong to another directory than the one of the demo.
      if (basename(sessionFiles) === slugOf(cwd)) rmSync(sessionFiles, { recursive: true, force: true });
    },
  };
}

async function demoParts(home: string, agent: object, cwd: string | null) {
  const { engine, parts } = await compose({ home, settings: { agents: { demo: agent } } });
  const made = parts.agents.get('demo')?.agent;
  if (made === undefined) throw new Error('The agent is missing.');
  return { engine, agent: made, cwd, sandbox: await parts.sandboxes.open('control', { cwd }) };
}

/** What the conversation to look at of a server needs. */
export interface DemoOfServer {
  readonly demo: ServeDemo;
  /** Beside those of the settings. */
  readonly agents: Readonly<Record<string, AgentSettings>>;
  close(): Promise<void>;
}

const WITHOUT_CLAUDE: DemoOfServer = { demo: SCRIPTED_DEMO, agents: {}, close: async () => {} };

/** The real Claude on a model of ours, where Claude is found; else the scripted agent. Nothing is started but the model. */
export async function demoOfServer(where: { home: string; config: string | undefined }): Promise<DemoOfServer> {
  const claude = await claudeOf(where);
  // An agent of that name which a person has set has their model.
  if (claude === null || CLAUDE_DEMO.agent in agentsInSettings(given(where))) return WITHOUT_CLAUDE;
  const standIn = await startStandIn(join(where.home, 'demo'));
  const agent = { options: {}, ...claude.program, env: standIn.env };
  return { demo: CLAUDE_DEMO, agents: { [CLAUDE_DEMO.agent]: agent }, close: standIn.close };
}

/** The Claude that the person has set, else the one that is found; null: there is none. */
async function claudeOf(where: { home: string | undefined; config: string | undefined }) {
  const agents = agentsInSettings(given(where));
  const set = [agents.claude, ...Object.values(agents)].find((agent) => agent?.adapter.startsWith('claude-'));
  if (set !== undefined) {
    const { adapter, package: folder, command, env, model } = set;
    return { program: { adapter, ...given({ package: folder, command }) }, own: { env, ...given({ model }) } };
  }
  const [{ availableClaude }, { packageIn }] = await Promise.all([
    import('./agents/claude/available.ts'),
    import('./agents/claude/find-package.ts'),
  ]);
  const installed = installedClaude(resolve(where.home ?? dataHome()));
  const adapter = availableClaude(installed, process.env.PATH ?? '');
  if (adapter === null) return null;
  return { program: { adapter, ...(packageIn(installed) && { package: installed }) }, own: { env: {} } };
}

/** How many requests the model of a demo remembers: it answers from each alone. */
const KEPT = 16;

/** A model on this machine, and the only environment in which Claude is sure to talk to no other. */
async function startStandIn(folder: string) {
  const [{ startModel }, { claudeVariables }] = await Promise.all([
    import('./testing/index.ts'),
    import('./agents/claude/environment.ts'),
  ]);
  const model = await startModel({ keep: KEPT });
  const [user, temporary] = [join(folder, 'user'), join(folder, 'tmp')];
  for (const path of [user, temporary]) mkdirSync(path, { recursive: true, mode: 0o700 });
  const env = {
    // Claude is handed our logins, clouds and proxies: here, each is none.
    ...Object.fromEntries(Object.keys(claudeVariables(process.env)).map((name) => [name, ''])),
    HOME: user,
    CLAUDE_CONFIG_DIR: join(user, '.claude'),
    TMPDIR: temporary, // where Claude leaves sockets and folders behind
    ANTHROPIC_BASE_URL: model.url,
    ANTHROPIC_API_KEY: 'sk-stand-in',
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    DISABLE_AUTOUPDATER: '1',
  };
  return { env, close: () => model.close() };
}
