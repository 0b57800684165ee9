import type { Agent, AgentSession, OpenRequest } from '../../../src/ports/agent.ts';

/** The same agent, whose sessions are changed on their way to us. */
export function changedOpen(
  agent: Agent,
  change: (session: AgentSession) => AgentSession,
  applies: (request: OpenRequest) => boolean,
): Agent {
  return {
    ...agent,
    async open(request) {
      const opened = await agent.open(request);
      return opened.ok && applies(request) ? { ...opened, session: change(opened.session) } : opened;
    },
  };
}

/** The same session, whose events are changed on their way to us. */
export function changedPrompt(session: AgentSession, prompt: AgentSession['prompt']): AgentSession {
  return new Proxy(session, {
    get(target, name) {
      const value = name === 'prompt' ? prompt : Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
