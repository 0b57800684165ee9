import { isObject } from '../../core/content.ts';

/** Who an agent says that it is. */
export interface AgentIdentity {
  readonly name: string;
  readonly version: string;
}

/** What an agent says that it can do, as far as we use it. */
export interface Capabilities extends AgentIdentity {
  readonly load: boolean;
  readonly resume: boolean;
  readonly list: boolean;
  readonly close: boolean;
  readonly delete: boolean;
  readonly directories: boolean;
  readonly embeddedContext: boolean;
  /** The ways to log in that it offers, by id. */
  readonly auth: readonly string[];
}

/** Reads the answer to `initialize`. What is not plainly said is not there. */
export function capabilitiesOf(response: unknown): Capabilities {
  const answer = asObject(response);
  const agent = asObject(answer.agentCapabilities);
  const session = asObject(agent.sessionCapabilities);
  const info = asObject(answer.agentInfo);
  const methods = Array.isArray(answer.authMethods) ? answer.authMethods : [];
  const has = (name: string) => isObject(session[name]);
  return {
    name: textOr(info.name, 'unknown'),
    version: textOr(info.version, 'unknown'),
    load: agent.loadSession === true,
    resume: has('resume'),
    list: has('list'),
    close: has('close'),
    delete: has('delete'),
    directories: has('additionalDirectories'),
    embeddedContext: asObject(agent.promptCapabilities).embeddedContext === true,
    auth: methods.flatMap((method) => (isObject(method) && typeof method.id === 'string' ? [method.id] : [])),
  };
}

export function asObject(value: unknown): Record<string, unknown> {
  return isObject(value) ? value : {};
}

function textOr(value: unknown, otherwise: string): string {
  return typeof value === 'string' && value !== '' ? value : otherwise;
}
