import { useEffect } from 'react';
import type { AgentInfo, ThroughlineClient } from 'throughline/client';
import { create } from 'zustand';
import { useClient } from './session.ts';

interface AgentsState {
  readonly phase: 'loading' | 'ready' | 'failed';
  readonly error: unknown;
  readonly agents: readonly AgentInfo[];
}

const useAgentsStore = create<AgentsState>(() => ({ phase: 'loading', error: null, agents: [] }));
let isAsked = false;

/** The agents of this server, read when first needed. */
export function useAgents(): AgentsState {
  const tl = useClient();
  useEffect(() => {
    if (!isAsked) void readAgents(tl);
  }, [tl]);
  return useAgentsStore();
}

/** Reads the agents again: one may have been installed meanwhile. */
export async function readAgents(tl: ThroughlineClient): Promise<void> {
  isAsked = true;
  try {
    useAgentsStore.setState({ phase: 'ready', error: null, agents: await tl.agents() });
  } catch (error) {
    isAsked = false; // the next view tries again
    useAgentsStore.setState({ phase: 'failed', error });
  }
}
