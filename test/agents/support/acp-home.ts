// A data home whose agents speak the Agent Client Protocol.
import { type Model, startModel } from '../../../src/testing/index.ts';
import type { AcpAgentSettings } from './acp-agents.ts';
import { AgentHome } from './agent-home.ts';

export type MakeSettings = (model: Model, root: string) => object;

export class AcpHome extends AgentHome {
  /** The first agent is the default. `agents`: a function for each that returns its settings. */
  static async make(
    agents: Readonly<Record<string, MakeSettings>>,
    model: Parameters<typeof startModel>[0] = {},
  ): Promise<AcpHome> {
    return new AcpHome(await startModel(model), agents);
  }

  private constructor(model: Model, agents: Readonly<Record<string, MakeSettings>>) {
    super(model);
    const entries = Object.entries(agents).map(([name, makeSettings]) => [name, makeSettings(model, this.path)]);
    this.settings = { defaultAgent: Object.keys(agents)[0], agents: Object.fromEntries(entries) };
  }

  /** The HOME of an agent. */
  homeOf(name: string): string {
    const { agents } = this.settings as { agents: Record<string, AcpAgentSettings> };
    return agents[name]?.env.HOME ?? '';
  }
}
