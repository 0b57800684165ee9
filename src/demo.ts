import { mkdirSync, realpathSync, rmSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { basename, join } from 'node:path';
import { compose } from './compose.ts';
import { agentsInSettings, installedClaude } from './compose-agents.ts';
import { SCRIPTED, ThroughlineError } from './core/errors.ts';
import { given } from './core/input/arguments.ts';
import { identityOfLocal } from './core/process.ts';
import { dataHome, makeFolderBeside } from './host/data-home.ts';
import type { DemoConversation, DemoParts, DemoRequest } from './ports/server.ts';

/* The agents of `throughline demo` and `throughline serve --demo`. They use a model that costs money only if the person asks for it. */

/** Not in the temporary folder: Claude reads settings in the folders above its own, and another user could have put some there. */
export async function demo(request: DemoRequest): Promise<DemoParts> {
  const home = realpathSync(makeFolderBeside(dataHome(request.home), 'throughline-demo-'));
  const removeHome = () => rm(home, { recursive: true, force: true, maxRetries: 3 });
  try {
    const parts = request.agent === 'claude' ? await demoWithClaude(home, request) : await demoWithoutModel(home);
    return { ...parts, close: () => parts.close().finally(removeHome) };
  } catch (error) {
    await removeHome();
    throw error;
  }
}

async function demoWithoutModel(home: string): Promise<DemoParts> {
  const sessionFiles = join(home, 'agent-sessions');
  const about =
    'The agent is scripted: a real process with real session files that answers by rules. No model is called.';
  const settings = { adapter: 'scripted', options: { dir: sessionFiles } };
  return { ...(await demoParts(home, settings, null)), about, sessionFiles, close: async () => {} };
}

/** The real Claude. Its model is a stand-in, unless the person asks for their own. */
async function demoWithClaude(home: string, { live, config, home: installedIn }: DemoRequest): Promise<DemoParts> {
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
  const sessionFiles = projectDir({ HOME: homedir(), ...process.env, ...agent.env }, realpathSync(cwd));
  const { version } = await parts.agent.traits(parts.sandbox).catch(async (error: unknown) => {
    await parts.engine.close(); // otherwise this process would not end
    await standIn?.close();
    throw error;
  });
  return {
    ...parts,
    about:
      `The agent is the real Claude (${version}), with its own session files. ` +
      (live
        ? 'The model is real, too: your own model gets three prompts.'
        : 'Its model is a stand-in on this machine that knows only what Claude tells it: no key, no network, no cost.'),
    sessionFiles,
    async close() {
      await standIn?.close();
      // These may be among the person's own files: remove only what belongs to the demo's directory.
      if (basename(sessionFiles) === slugOf(cwd)) rmSync(sessionFiles, { recursive: true, force: true });
    },
  };
}

async function demoParts(home: string, agent: object, cwd: string | null) {
  const { engine, parts } = await compose({ home, settings: { agents: { demo: agent } } });
  const made = parts.agents.get('demo')?.agent;
  if (made === undefined) throw new Error('The agent of the demo is missing.');
  const killProcess = async (sessionId: string) => {
    const process = (await parts.store.findSessions(engine.owner, sessionId))[0]?.process ?? null;
    if (process === null || (await parts.sandboxes.end(process)) !== 'ended') return null;
    return identityOfLocal(process)?.pid ?? null;
  };
  return { engine, agent: made, cwd, killProcess, sandbox: await parts.sandboxes.open('control', { cwd }) };
}

const SCRIPTED_DEMO: DemoConversation = {
  key: 'demo',
  agent: SCRIPTED,
  title: 'Demo: a scripted agent, no model',
  about: 'Its agent is scripted: it answers by rules, and no model is called.',
};

/** It has a key of its own, because another agent answered the turns of the scripted demo. */
const CLAUDE_DEMO: DemoConversation = {
  key: 'demo-claude',
  agent: 'demo-claude',
  title: 'Demo: the real Claude, a scripted model',
  about:
    'Its agent is the real Claude. Its model is scripted: a stand-in on this machine that answers by rules. No key, no cost.',
};

/**
 * The real Claude with a stand-in model if Claude is found, else the scripted agent. Starts only the model. The caller adds `agents` to
 * those of the settings.
 */
export async function demoOfServer(where: { home: string; config: string | undefined }) {
  const claude = await claudeOf(where);
  // If the person's settings have an agent of this name, it uses their model.
  if (claude === null || CLAUDE_DEMO.agent in agentsInSettings(given(where))) {
    return { conversation: SCRIPTED_DEMO, agents: {}, close: async () => {} };
  }
  const standIn = await startStandIn(join(where.home, 'demo'));
  const agent = { options: {}, ...claude.program, env: standIn.env };
  return { conversation: CLAUDE_DEMO, agents: { [CLAUDE_DEMO.agent]: agent }, close: standIn.close };
}

/** The Claude of the settings, else the one that is found; null: there is none. */
async function claudeOf(where: { home: string | undefined; config: string | undefined }) {
  const agents = agentsInSettings(given(where));
  const set = [agents.claude, ...Object.values(agents)].find((agent) => agent?.adapter.startsWith('claude-'));
  if (set?.wrong !== undefined) throw set.wrong;
  if (set !== undefined) {
    const { adapter, package: folder, command, env, model, credentials } = set;
    return {
      program: { adapter, ...given({ package: folder, command }) },
      own: { env, ...given({ model, credentials }) },
    };
  }
  const { availableClaude, packageIn } = await import('./agents/claude/find/package.ts');
  const installed = installedClaude(dataHome(where.home));
  const adapter = availableClaude(installed, process.env.PATH ?? '');
  if (adapter === null) return null;
  return { program: { adapter, ...(packageIn(installed) && { package: installed }) }, own: { env: {} } };
}

/** How many requests the stand-in model keeps. It answers from the current one alone. */
const KEPT = 16;

/** Starts a model on this machine. `env`: an environment in which Claude cannot reach another model. */
async function startStandIn(folder: string) {
  const [{ startModel }, { claudeVariables }] = await Promise.all([
    import('./testing/index.ts'),
    import('./agents/claude/environment.ts'),
  ]);
  const model = await startModel({ keep: KEPT });
  const [user, temporary] = [join(folder, 'user'), join(folder, 'tmp')];
  for (const path of [user, temporary]) mkdirSync(path, { recursive: true, mode: 0o700 });
  const env = {
    // Empty, so that Claude does not inherit our logins, cloud settings and proxies.
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
