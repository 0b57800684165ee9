import { ThroughlineError } from '../../core/errors.ts';
import type { Engine } from '../../ports/engine.ts';

export const DEMO_KEY = 'demo';
export const DEMO_ABOUT = 'Its agent is scripted: it answers by rule, and no model is called.';
const AGENT = 'scripted';

/**
 * A conversation to look at. Its request ids are fixed: however often the server starts, it is said once. False: the settings
 * have no such agent, and a server is of use without the demo.
 */
export async function startDemoConversation(engine: Engine): Promise<boolean> {
  try {
    await say(engine);
    return true;
  } catch (error) {
    if (error instanceof ThroughlineError && error.code === 'agent_unavailable') return false;
    throw error;
  }
}

async function say(engine: Engine): Promise<void> {
  await engine.ensure({ key: DEMO_KEY, agent: AGENT, title: 'Demo: a scripted agent, no model' });
  const prompts = ['The codeword is amber-heron', 'Which codewords have you seen?'];
  for (const [index, prompt] of prompts.entries()) {
    await engine.submit(DEMO_KEY, prompt, { requestId: `demo-${index + 1}`, agent: AGENT, permissions: 'deny' });
  }
}
