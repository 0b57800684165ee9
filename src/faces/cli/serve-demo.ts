import { ThroughlineError } from '../../core/errors.ts';
import type { Engine } from '../../ports/engine.ts';
import type { DemoConversation } from '../../ports/server.ts';

/**
 * Its request ids are fixed: however often the server starts, it is said once. False: the settings have no such agent, and a
 * server is of use without the demo.
 */
export async function startDemoConversation(engine: Engine, demo: DemoConversation): Promise<boolean> {
  try {
    await say(engine, demo);
    return true;
  } catch (error) {
    if (error instanceof ThroughlineError && error.code === 'agent_unavailable') return false;
    throw error;
  }
}

async function say(engine: Engine, { key, agent, title }: DemoConversation): Promise<void> {
  await engine.ensure({ key, agent, title });
  const prompts = ['The codeword is amber-heron', 'Which codewords have you seen?'];
  for (const [index, prompt] of prompts.entries()) {
    await engine.submit(key, prompt, { requestId: `${key}-${index + 1}`, agent, permissions: 'deny' });
  }
}
