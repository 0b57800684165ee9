import { PROTOCOL_VERSION } from '@agentclientprotocol/sdk';
import { asSentence, ThroughlineError } from '../../../core/errors.ts';
import { Unsuitable, wordsOf } from './answers.ts';
import { asObject, type Capabilities, capabilitiesOf } from './capabilities.ts';
import type { AcpConnection } from './connection.ts';

/** What we offer to every agent: tools/client.ts does it. */
const CLIENT_CAPABILITIES = { fs: { readTextFile: true, writeTextFile: true }, terminal: true } as const;

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

/** Ends an agent that does not answer in time. Its messages then give that reason. */
export function stopLate(connection: AcpConnection, ms: number): NodeJS.Timeout {
  return setTimeout(() => connection.stop(`it did not answer within ${ms} ms ("openMs" in its options)`), ms);
}

interface Started {
  readonly name: string;
  readonly command: readonly string[];
  /** How a person logs in. */
  readonly login: string;
}

export function notLoggedIn({ name, login }: Started, error: unknown): ThroughlineError {
  return new ThroughlineError('agent_unavailable', `${name} needs a login: ${wordsOf(error)}.`, {
    hint: asSentence(`${login.charAt(0).toUpperCase()}${login.slice(1)}`),
  });
}

export function notStarted(
  { name, command }: Started,
  { noise }: AcpConnection,
  error: unknown,
  what: string,
): ThroughlineError {
  const printed = noise === null ? '' : ' Its output is not the Agent Client Protocol.';
  return new ThroughlineError('agent_unavailable', `${name} ${what}: ${wordsOf(error)}.${printed}`, {
    hint: `Run "${command.join(' ')}" by hand to see what it says.`,
  });
}
