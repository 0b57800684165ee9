import { randomUUID } from 'node:crypto';
import type { Update } from '../../src/core/turn/update.ts';
import type { Agent, AgentEvent, AgentSession } from '../../src/ports/agent.ts';

/**
 * A test double of an agent that runs in this process, so that a measure contains nothing of an agent's own time.
 * It stores nothing, and its sessions cannot be resumed.
 */
export function inProcessAgent(answer: () => AsyncIterable<Update> | Iterable<Update>): Agent {
  return {
    name: 'double',
    traits: async () => ({
      version: '1',
      id: 'issued',
      resume: false,
      load: false,
      list: false,
      rehydrate: false,
      noTools: false,
      position: false,
      rewind: false,
      images: false,
      window: 100_000,
      windowFrom: 'setting',
    }),
    open: async () => ({ ok: true, session: session(answer), proof: 'counted' }),
    position: async () => null,
    tail: async () => null,
  };
}

function session(answer: () => AsyncIterable<Update> | Iterable<Update>): AgentSession {
  return {
    id: randomUUID(),
    process: null,
    alive: true,
    position: async () => null,
    async *prompt(): AsyncGenerator<AgentEvent> {
      for await (const update of answer()) yield { type: 'update', update };
      yield { type: 'ended', outcome: { kind: 'completed' } };
    },
    allowTools: async () => true,
    answer() {},
    close: async () => {},
    kill: async () => {},
  };
}

export function said(text: string): Update {
  return { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text } };
}
