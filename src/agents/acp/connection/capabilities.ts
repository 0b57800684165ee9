import { isObject } from '../../../core/turn/content.ts';
import { asObject } from '../../shared/json.ts';

/** The capabilities that an agent reports, as far as we use them. */
export interface Capabilities {
  /** The name and version that it gives itself. */
  readonly name: string;
  readonly version: string;
  readonly load: boolean;
  readonly resume: boolean;
  readonly list: boolean;
  readonly close: boolean;
  readonly delete: boolean;
  readonly directories: boolean;
  /** Kinds of content that a prompt may have, beside text and links. */
  readonly image: boolean;
  readonly audio: boolean;
  readonly embeddedContext: boolean;
  /** Kinds of MCP servers that it supports, beside programs: `http`, `sse`. */
  readonly servers: readonly string[];
  /** The ids of the ways to log in that it offers. */
  readonly auth: readonly string[];
}

/** Reads the answer to `initialize`. What the agent does not state, it cannot do. */
export function capabilitiesOf(response: unknown): Capabilities {
  const answer = asObject(response);
  const agent = asObject(answer.agentCapabilities);
  const session = asObject(agent.sessionCapabilities);
  const info = asObject(answer.agentInfo);
  const methods = Array.isArray(answer.authMethods) ? answer.authMethods : [];
  const has = (name: string) => isObject(session[name]);
  const prompt = asObject(agent.promptCapabilities);
  const mcp = asObject(agent.mcpCapabilities);
  return {
    name: textOr(info.name, 'unknown'),
    version: textOr(info.version, 'unknown'),
    load: agent.loadSession === true,
    resume: has('resume'),
    list: has('list'),
    close: has('close'),
    delete: has('delete'),
    directories: has('additionalDirectories'),
    image: prompt.image === true,
    audio: prompt.audio === true,
    embeddedContext: prompt.embeddedContext === true,
    servers: Object.keys(mcp).filter((type) => mcp[type] === true),
    auth: methods.flatMap((method) => (isObject(method) && typeof method.id === 'string' ? [method.id] : [])),
  };
}

/** Before the agent was asked. */
export const NO_CAPABILITIES: Capabilities = capabilitiesOf({});

function textOr(value: unknown, otherwise: string): string {
  return typeof value === 'string' && value !== '' ? value : otherwise;
}
