import { scriptedAgent } from '../../../src/agents/scripted/adapter.ts';
import type { Agent, AgentSession } from '../../../src/ports/agent.ts';

/** The scripted agent. `change` is called with each session as soon as it is open. */
export function scriptedWith(change: (session: AgentSession) => void): Agent {
  const agent = scriptedAgent({ name: 'scripted' });
  return {
    ...agent,
    async open(request) {
      const opened = await agent.open(request);
      if (opened.ok) change(opened.session);
      return opened;
    },
  };
}
