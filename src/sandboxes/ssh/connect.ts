import { readFile, stat } from 'node:fs/promises';
import { connect as connectSocket, type Socket } from 'node:net';
import type { Client, ConnectConfig } from 'ssh2';
import { ThroughlineError } from '../../core/errors.ts';
import { installed } from '../shared/installed.ts';
import { algorithmsOf, fingerprint, type KnownKeys, keysIn, parseHostKey, typeOf } from './host-keys.ts';

export interface SshSettings {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  /** The machine's key; null: `knownHosts` has it. */
  readonly hostKey: string | null;
  readonly knownHosts: string;
  /** Null: the ssh agent has the key. */
  readonly identityFile: string | null;
}

type Ssh = Pick<typeof import('ssh2'), 'Client' | 'utils'>;

const CONNECT_MS = 15_000;

const unavailable = (message: string, hint: string, cause?: unknown) =>
  new ThroughlineError('agent_unavailable', message, { hint, cause });

async function loadSsh(): Promise<Ssh> {
  const { default: ssh } = await installed('ssh2', () => import('ssh2'));
  return ssh;
}

export function machineName({ user, host, port }: Pick<SshSettings, 'user' | 'host' | 'port'>): string {
  return port === 22 ? `${user}@${host}` : `${user}@${host}:${port}`;
}

/** Connects, checks the key of the machine, and logs in. Throws `agent_unavailable` with what to do. */
export async function connect(settings: SshSettings): Promise<{ client: Client; socket: Socket }> {
  const { Client, utils } = await loadSsh();
  const [keys, login] = await Promise.all([knownKeys(settings), loginOf(settings, utils)]);
  const socket = await socketTo(settings);
  const client = new Client();
  let refused: ThroughlineError | null = null;
  const known = keys.known.flatMap(({ type }) => algorithmsOf(type));
  const config: ConnectConfig = {
    sock: socket,
    username: settings.user,
    readyTimeout: CONNECT_MS,
    // Ask only for kinds of keys that we can compare. If no key is known, ask for any, so that the refusal can show it.
    ...(known.length > 0 && { algorithms: { serverHostKey: [...new Set(known)] as never } }),
    hostVerifier: (key: Buffer) => {
      refused = whyRefused(key, keys, settings);
      return refused === null;
    },
    ...login,
  };
  try {
    await new Promise<void>((resolve, reject) => {
      client
        .once('ready', resolve)
        .once('error', reject)
        .once('close', () => reject(new Error('the connection was closed')));
      client.connect(config);
    });
  } catch (error) {
    client.on('error', () => {}).destroy();
    throw refused ?? notConnected(settings, error as Error & { level?: string });
  }
  client.removeAllListeners('close').setNoDelay(true);
  return { client, socket };
}

async function socketTo(settings: SshSettings): Promise<Socket> {
  const { host, port } = settings;
  const socket = connectSocket({ host, port, noDelay: true });
  const timer = setTimeout(() => socket.destroy(new Error('no answer')), CONNECT_MS);
  try {
    await new Promise<void>((resolve, reject) => void socket.once('connect', resolve).once('error', reject));
    return socket;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const hint = {
      ENOTFOUND: 'Check "sandbox.host" of the settings.',
      ECONNREFUSED: 'Check "sandbox.port" of the settings, and that sshd runs there.',
    }[code ?? ''];
    const why =
      { ENOTFOUND: 'there is no such host', ECONNREFUSED: 'it refuses connections' }[code ?? ''] ?? code ?? message;
    throw unavailable(
      `Cannot reach ${machineName(settings)}: ${why}.`,
      hint ?? 'Check the network, and that the machine runs.',
      error,
    );
  } finally {
    clearTimeout(timer);
  }
}

async function knownKeys({ hostKey, knownHosts, host, port }: SshSettings): Promise<KnownKeys> {
  if (hostKey !== null) {
    const key = parseHostKey(hostKey);
    if (key !== null) return { known: [key], revoked: [] };
    throw unavailable('"sandbox.hostKey" of the settings is not a public key.', 'Write it as "ssh-ed25519 AAAA…".');
  }
  const text = await readFile(knownHosts, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '';
    throw unavailable(`Cannot read ${knownHosts} (${error.code}).`, 'Check its permissions.', error);
  });
  return keysIn(text, host, port);
}

/** Null: it is the key of the machine. */
function whyRefused(key: Buffer, { known, revoked }: KnownKeys, settings: SshSettings): ThroughlineError | null {
  const [text, name] = [key.toString('base64'), machineName(settings)];
  const shown = `${typeOf(key)} ${fingerprint(key)}`;
  const where = settings.hostKey === null ? settings.knownHosts : '"sandbox.hostKey" of the settings';
  if (revoked.some((one) => one.key === text)) {
    return unavailable(`The key of ${name} (${shown}) is revoked.`, `Do not use this machine. See ${where}.`);
  }
  if (known.some((one) => one.key === text)) return null;
  if (known.length === 0) {
    const hint = `If this is its key, add a line to ${where} (connect once with "ssh"), or set "sandbox.hostKey" to "${typeOf(key)} ${text}".`;
    return unavailable(`The key of ${name} is not known: ${shown}.`, hint);
  }
  const hint = `This may be an attack: another machine may answer in its place. If you have changed its key, correct ${where}.`;
  return unavailable(`The key of ${name} has changed: it is ${shown} now.`, hint);
}

async function loginOf(
  { identityFile }: SshSettings,
  utils: Ssh['utils'],
): Promise<Pick<ConnectConfig, 'privateKey' | 'agent'>> {
  if (identityFile === null) {
    const agent = process.env.SSH_AUTH_SOCK;
    if (agent) return { agent };
    throw unavailable(
      'There is no key to log in with: no ssh agent runs (SSH_AUTH_SOCK).',
      'Start one and add the key ("ssh-add"), or name the file of the key in "sandbox.identityFile".',
    );
  }
  const [found, privateKey] = await Promise.all([stat(identityFile), readFile(identityFile)]).catch(
    (error: NodeJS.ErrnoException) => {
      throw unavailable(`Cannot read the key ${identityFile} (${error.code}).`, 'Check "sandbox.identityFile".', error);
    },
  );
  if ((found.mode & 0o077) !== 0) {
    throw unavailable(`Others can read the key ${identityFile}.`, `Run: chmod 600 ${identityFile}`);
  }
  const parsed = utils.parseKey(privateKey);
  if (!(parsed instanceof Error)) return { privateKey };
  const hint = /encrypted/i.test(parsed.message)
    ? 'Add it to an ssh agent ("ssh-add") and leave out "sandbox.identityFile": keys with a passphrase are used that way.'
    : 'It has to be a private key of OpenSSH.';
  throw unavailable(`Cannot use the key ${identityFile}: ${parsed.message}.`, hint, parsed);
}

function notConnected(settings: SshSettings, error: Error & { level?: string }): ThroughlineError {
  const { identityFile, user } = settings;
  const name = machineName(settings);
  if (error.level === 'client-authentication') {
    const rejects =
      identityFile === null ? 'accepts no key of the ssh agent' : `does not accept the key ${identityFile}`;
    const hint = `Add its public part to ~/.ssh/authorized_keys of ${user} there, and check "sandbox.user".`;
    return unavailable(`${name} ${rejects}.`, hint, error);
  }
  if (/no matching host key/i.test(error.message)) {
    const hint = 'Its key may have changed. Compare it, then correct the known key.';
    return unavailable(`${name} has no key of the known kind.`, hint, error);
  }
  return unavailable(`Cannot connect to ${name}: ${error.message}.`, 'Check that sshd runs there.', error);
}
