import { randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Prompt } from '../../src/core/turn/content.ts';
import { chunkText } from '../../src/core/turn/update.ts';
import { processesAt } from '../../src/host/processes.ts';
import type { Agent, AgentEvent, AgentOutcome, AgentSession, OpenHow } from '../../src/ports/agent.ts';
import type { OpenSandbox } from '../../src/ports/sandbox.ts';
import { directorySandboxes } from '../../src/sandboxes/directory/directory-sandboxes.ts';
import { localSandbox } from '../../src/sandboxes/shared/local-sandbox.ts';
import { until as poll } from '../faults/harness/until.ts';

/** A sandbox that is a directory of the test. */
export function sandboxAt(work: string): OpenSandbox {
  return localSandbox({ id: 'test', work, state: work, processes: processesAt('test') });
}

/** Sandboxes for agents of tests. `dispose` ends everything that they started. */
export class TestSandboxes {
  readonly root = mkdtempSync(join(tmpdir(), 'throughline-agent-'));
  readonly all = directorySandboxes({ root: this.root, place: 'test', processes: processesAt('test') });
  readonly #sessions: AgentSession[] = [];
  #counter = 0;

  sandbox(cwd: string | null = null): Promise<OpenSandbox> {
    this.#counter += 1;
    return this.all.open(`sandbox-${this.#counter}`, { cwd });
  }

  async open(
    agent: Agent,
    sandbox: OpenSandbox,
    how: OpenHow = { kind: 'new', id: null },
    noTools = false,
  ): Promise<AgentSession> {
    const opened = await agent.open({ how, sandbox, noTools, signal: new AbortController().signal });
    if (!opened.ok) throw new Error(`not opened: ${opened.reason}: ${opened.message}`);
    this.#sessions.push(opened.session);
    return opened.session;
  }

  async dispose(): Promise<void> {
    await Promise.all(this.#sessions.map((session) => session.kill()));
    // Programs that an agent started end a moment after it, and may write until then.
    rmSync(this.root, { recursive: true, force: true, maxRetries: 20 });
  }
}

export const text = (...texts: string[]): Prompt => texts.map((one) => ({ type: 'text', text: one }));

/** Sends a prompt and yields every event as it comes. */
export function send(
  session: AgentSession,
  content: Prompt | string,
  options: { expected?: string | null; signal?: AbortSignal; id?: string } = {},
): AsyncIterable<AgentEvent> {
  return session.prompt({
    id: options.id ?? randomUUID(),
    content: typeof content === 'string' ? text(content) : content,
    expected: options.expected ?? null,
    signal: options.signal ?? new AbortController().signal,
  });
}

export interface Told {
  readonly events: readonly AgentEvent[];
  readonly reply: string;
  readonly outcome: AgentOutcome;
  readonly proof: string | null;
}

/** Reads the events of a prompt to its end. */
export async function told(stream: AsyncIterable<AgentEvent>): Promise<Told> {
  const events: AgentEvent[] = [];
  for await (const event of stream) events.push(event);
  const last = events.at(-1);
  if (last?.type !== 'ended') throw new Error('the last event is not the end');
  const proof = events.find((event) => event.type === 'proof');
  return { events, reply: replyOf(events), outcome: last.outcome, proof: proof?.proof ?? null };
}

export const ask = (...args: Parameters<typeof send>): Promise<Told> => told(send(...args));

function replyOf(events: readonly AgentEvent[]): string {
  const texts = events.map((event) =>
    event.type === 'update' && event.update.sessionUpdate === 'agent_message_chunk' ? chunkText(event.update) : '',
  );
  return texts.join('');
}

/** How often a tool that appends a line to the file has run. */
export function effects(file: string): number {
  try {
    return readFileSync(file, 'utf8').trim().split('\n').length;
  } catch {
    return 0;
  }
}

/** Polls until it holds. Throws after the time limit. */
export async function until(what: string, holds: () => boolean | Promise<boolean>, ms = 120_000): Promise<void> {
  await poll(what, holds, { ms });
}
