import { randomUUIDv7 } from 'node:crypto';
import { issuesIds, noAgentGiven, noSuchAgent, ThroughlineError } from '../core/errors.ts';
import { given } from '../core/input/arguments.ts';
import { type AgentTraits, canReopen } from '../core/restore/traits.ts';
import { judgeOf, type SessionMode, type TaskSpec } from '../core/tasks/task.ts';
import type { OpenSandbox } from '../ports/sandbox.ts';
import type { NewTask } from '../ports/store/tasks.ts';
import type { TaskParts } from './parts.ts';

/**
 * Checks a plan against what exists: agents, their traits, directories. Refuses what can never work, before anything is stored. The error
 * names the place in the plan.
 */
export async function admitTasks(
  parts: Pick<TaskParts, 'agents' | 'sandboxes' | 'settings'>,
  specs: readonly TaskSpec[],
  { base, at }: { base: string | undefined; at: (index: number, field: keyof TaskSpec) => string },
): Promise<NewTask[]> {
  const ids = specs.map(() => randomUUIDv7());
  const byName = new Map(specs.flatMap(({ name }, i) => (name === null ? [] : [[name, ids[i] as string]])));
  const probed = new Map<string, Promise<AgentTraits>>();
  await using sandbox = await parts.sandboxes.probe();
  const traitsOf = (name: string) => {
    const known = probed.get(name) ?? probe(parts.agents, name, sandbox);
    probed.set(name, known);
    return known;
  };
  const tasks: NewTask[] = [];
  for (const [i, spec] of specs.entries()) {
    const place = (field: keyof TaskSpec) => at(i, field);
    const agent = spec.agent ?? parts.settings.defaultAgent;
    if (agent === null) throw withPlace(place('agent'), noAgentGiven([...parts.agents.keys()]));
    const traits = await located(place('agent'), traitsOf(agent));
    const judge = judgeOf(spec.gate);
    if (judge !== null) await located(place('gate'), traitsOf(judge));
    const sessions = sessionsOf(spec, agent, traits, place);
    // The directory may be on another machine, so only the sandboxes can tell which one a path means.
    const directory =
      spec.cwd === null ? null : await located(place('cwd'), parts.sandboxes.checkDirectory(spec.cwd, base));
    // Links are kept: the same plan must be the same request (R3). The conversation resolves them.
    const cwd = directory?.path ?? null;
    tasks.push({
      ...spec,
      id: ids[i] as string,
      agent,
      sessions,
      cwd,
      after: spec.after.map((name) => byName.get(name) as string),
    });
  }
  return tasks;
}

async function probe(agents: TaskParts['agents'], name: string, sandbox: OpenSandbox): Promise<AgentTraits> {
  const configured = agents.get(name);
  if (configured !== undefined) return configured.agent.traits(sandbox);
  throw noSuchAgent(name, agents.keys());
}

/** An agent that cannot reopen a session would lose it in a crash, so it cannot keep one. */
function sessionsOf(
  { session, newSession, sessions }: TaskSpec,
  agent: string,
  traits: AgentTraits,
  place: (field: keyof TaskSpec) => string,
): SessionMode {
  const keeps = canReopen(traits);
  if (newSession !== null && traits.id !== 'assigned') throw withPlace(place('newSession'), issuesIds(agent));
  const field = newSession === null ? 'session' : 'newSession';
  if ((session ?? newSession) !== null && !keeps) {
    throw refused(`${place(field)}${agent} cannot reopen a session.`, 'Leave the session out.');
  }
  if (sessions === 'kept' && !keeps) {
    const message = `${place('sessions')}${agent} cannot keep a session, because it cannot reopen one.`;
    throw refused(message, 'Set it to "fresh".');
  }
  return sessions ?? (keeps ? 'kept' : 'fresh');
}

async function located<T>(place: string, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw error instanceof ThroughlineError ? withPlace(place, error) : error;
  }
}

function withPlace(place: string, error: ThroughlineError): ThroughlineError {
  const { code, message, hint } = error;
  return new ThroughlineError(code, `${place}${message}`, { ...given({ hint }), cause: error });
}

function refused(message: string, hint: string): ThroughlineError {
  return new ThroughlineError('refused', message, { hint });
}
