import { PROTOCOL_VERSION } from '@agentclientprotocol/sdk';
import { asSentence, ThroughlineError } from '../../../core/errors.ts';
import { asObject } from '../../shared/json.ts';
import type { AgentProgram } from '../known/description.ts';
import type { AcpOptions } from '../options.ts';
import { Unsuitable, wordsOf } from './answers.ts';
import { type Capabilities, capabilitiesOf } from './capabilities.ts';
import type { AcpConnection } from './connection.ts';

/**
 * What we offer to every agent; it is implemented in tools/client.ts. Without `notices`, agents send their warnings as answers. Without
 * `compaction`, they report a summary of their own as a tool call, as an answer, or not at all. The names in `_meta` are a convention
 * of agents that run commands themselves: to a client that has them, they send what a command prints (`printedText`).
 */
const CLIENT_CAPABILITIES = {
  fs: { readTextFile: true, writeTextFile: true },
  terminal: true,
  session: { notices: {}, compaction: {}, configOptions: { boolean: {} } },
  _meta: { terminal_output: true, terminal_output_delta: true },
} as const;

/** The first request to any agent. Throws what it answers, or `Unsuitable` when it speaks another version. */
export async function initialize(connection: AcpConnection): Promise<Capabilities> {
  const response = await connection.request('initialize', {
    protocolVersion: PROTOCOL_VERSION,
    clientCapabilities: CLIENT_CAPABILITIES,
    clientInfo: { name: 'throughline', version: '1' },
  });
  const { protocolVersion } = asObject(response);
  if (protocolVersion !== PROTOCOL_VERSION) {
    throw new Unsuitable(`it speaks version ${protocolVersion} of the protocol, not ${PROTOCOL_VERSION}`);
  }
  return capabilitiesOf(response);
}

/** Runs `work`. Ends the agent when that takes longer than `openMs`, or when the signal is aborted. */
export async function withinTime<T>(
  { openMs }: AcpOptions,
  signal: AbortSignal | undefined,
  connection: AcpConnection,
  work: () => Promise<T>,
): Promise<T> {
  const stop = () => void connection.kill();
  const tooLate = () => connection.stop(`it did not answer within ${openMs} ms ("openMs" in its options)`);
  const late = setTimeout(tooLate, openMs);
  signal?.addEventListener('abort', stop, { once: true });
  if (signal?.aborted) stop();
  try {
    return await work();
  } finally {
    clearTimeout(late);
    signal?.removeEventListener('abort', stop);
  }
}

export function notLoggedIn(program: AgentProgram, error: unknown): ThroughlineError {
  return new ThroughlineError('signed_out', `${program.name} needs a login: ${wordsOf(error)}.`, {
    hint: loginHint(program),
  });
}

/** What a person does to log in. */
export function loginHint({ login }: Pick<AgentProgram, 'login'>): string {
  return asSentence(`${login.charAt(0).toUpperCase()}${login.slice(1)}`);
}

/** `what`: what the agent did not do. */
export function notStarted(
  { name, command }: AgentProgram,
  { noise }: AcpConnection,
  error: unknown,
  what: string,
): ThroughlineError {
  const printed = noise === null ? '' : ' Its output is not the Agent Client Protocol.';
  return new ThroughlineError('agent_unavailable', `${name} ${what}: ${wordsOf(error)}.${printed}`, {
    hint: `Run "${command.join(' ')}" by hand to see what it says.`,
  });
}
