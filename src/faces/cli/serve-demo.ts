import { ThroughlineError } from '../../core/errors.ts';
import type { Engine } from '../../ports/engine.ts';

/** A conversation to look at, and what answers in it. */
export interface ServeDemo {
  readonly key: string;
  readonly agent: string;
  readonly title: string;
  /** What is real in it and what is not, for people. */
  readonly about: string;
}

export const SCRIPTED_DEMO: ServeDemo = {
  key: 'demo',
  agent: 'scripted',
  title: 'Demo: a scripted agent, no model',
  about: 'Its agent is scripted: it answers by rule, and no model is called.',
};

/** Another conversation than that without Claude: what was said there was said by another agent. */
export const CLAUDE_DEMO: ServeDemo = {
  key: 'demo-claude',
  agent: 'demo-claude',
  title: 'Demo: the real Claude, a scripted model',
  about:
    'Its agent is the real Claude; its model is scripted: a stand-in on this machine, which answers by rule. No key, no cost.',
};

/**
 * Its request ids are fixed: however often the server starts, it is said once. False: the settings have no such agent, and a
 * server is of use without the demo.
 */
export async function startDemoConversation(engine: Engine, demo: ServeDemo): Promise<boolean> {
  try {
    await say(engine, demo);
    return true;
  } catch (error) {
    if (error instanceof ThroughlineError && error.code === 'agent_unavailable') return false;
    throw error;
  }
}

async function say(engine: Engine, { key, agent, title }: ServeDemo): Promise<void> {
  await engine.ensure({ key, agent, title });
  const prompts = ['The codeword is amber-heron', 'Which codewords have you seen?'];
  for (const [index, prompt] of prompts.entries()) {
    await engine.submit(key, prompt, { requestId: `${key}-${index + 1}`, agent, permissions: 'deny' });
  }
}
