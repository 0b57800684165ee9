import type { Agent, AgentSession, OpenRequest } from '../../../src/ports/agent.ts';

/** The same agent. If `applies` is true of the request, the session that it opens is replaced by what `change` returns. */
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

/** The same session with another `prompt`. */
export function changedPrompt(session: AgentSession, prompt: AgentSession['prompt']): AgentSession {
  return new Proxy(session, {
    get(target, name) {
      const value = name === 'prompt' ? prompt : Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}
