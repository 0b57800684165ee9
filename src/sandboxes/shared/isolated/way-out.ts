import { type Destination, parseAllowed } from '../../../core/sandbox/allowlist.ts';
import type { IsolationSettings } from '../../../core/sandbox/sandbox-settings.ts';
import { AllowlistProxy, type KeptKey } from '../proxy.ts';

/*
 * The network "model": the variables by which a program in the sandbox finds the proxy, and how the proxy outside gets a socket in the
 * network of the sandbox.
 */

/** Where the proxy is reached in the sandbox. Its loopback is its own, so no other program can have this port. */
const PROXY_PORT = 3128;

/** A Node program that listens in the network of the sandbox, and sends us the socket by its channel. We accept on it from outside. */
export const LISTEN = `
const server = require('node:net').createServer().listen(${PROXY_PORT}, '0.0.0.0', () => process.send('', server));
process.once('message', () => process.exit());
process.once('disconnect', () => process.exit(1));`;

const PROXY = `http://127.0.0.1:${PROXY_PORT}`;
/** The same port on another loopback address, which programs never reach through the proxy. */
const MODEL_HOST = '127.0.0.2';
/** The agent has this in place of its key: some agents start only with a key. */
const PLACEHOLDER = 'kept-outside-of-the-sandbox';

type Environment = Readonly<Record<string, string>>;

/**
 * The environment of a program with its way to the network, and the proxy that this needs; null: none. `chosenByAgent`: the program is a
 * command of an agent, which chooses its variables. It must not choose the address of the model: the proxy would connect to it.
 */
export function wayOut(settings: IsolationSettings, env: Environment, chosenByAgent: boolean) {
  if (settings.network !== 'model') return { env, proxy: null };
  const kept = chosenByAgent ? null : keptKey(settings, env);
  const allow = settings.allow.flatMap((entry) => parseAllowed(entry) ?? []);
  return {
    env: { ...env, ...proxyVariables(allow, kept?.variables ?? {}) },
    proxy: new AllowlistProxy({ allow, model: kept?.key ?? null }),
  };
}

/** Takes the key out of the environment of an agent. Null: it has none, or none is kept. */
function keptKey(
  { key }: IsolationSettings,
  env: Environment,
): { readonly key: KeptKey; readonly variables: Environment } | null {
  const value = key === null ? undefined : env[key.variable];
  if (key === null || value === undefined || value === '') return null;
  const { header, variable, urlVariable } = key;
  const url = new URL(env[urlVariable] ?? key.url);
  return {
    key: { url, header, value: header === 'authorization' ? `Bearer ${value}` : value },
    variables: { [variable]: PLACEHOLDER, [urlVariable]: `http://${MODEL_HOST}:${PROXY_PORT}` },
  };
}

/** Programs reach their own loopback directly, unless the allowlist names the loopback of this machine. */
function proxyVariables(allow: readonly Destination[], variables: Environment) {
  const own = ['localhost', '127.0.0.1', '::1'].filter((host) => !allow.some((entry) => entry.host === host));
  const direct = [...own, MODEL_HOST].join(',');
  return {
    ...{ HTTP_PROXY: PROXY, HTTPS_PROXY: PROXY, http_proxy: PROXY, https_proxy: PROXY },
    ...{ NO_PROXY: direct, no_proxy: direct, NODE_USE_ENV_PROXY: '1' },
    ...variables,
  };
}
