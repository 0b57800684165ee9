import type { Sandboxes } from '../../ports/sandbox.ts';
import type { RemoteMachine } from '../shared/remote/machine.ts';
import { RemoteSandboxes, type RemoteSettings } from '../shared/remote/remote-sandboxes.ts';
import { connect, machineName, type SshSettings } from './connect.ts';
import { Connection } from './connection.ts';

export interface SshSandboxSettings extends SshSettings, Pick<RemoteSettings, 'root' | 'place' | 'processes'> {
  /** How long programs there live without our heartbeats. Left out: 20 seconds. */
  readonly silenceSeconds?: number;
}

/** Heartbeats within that time: a lost or late one ends nothing. */
const BEATS = 4;

/** Sandboxes on another machine that is reached by ssh. Connects when the first one is used. */
export function sshSandboxes(all: SshSandboxSettings): Sandboxes {
  const { root, place, processes, silenceSeconds = 20, ...settings } = all;
  const machine = sshMachine(settings, silenceSeconds);
  return new RemoteSandboxes({ machine, kind: 'ssh', place, home: place, root, processes });
}

/** A machine with as many connections as its programs need. A lost connection is replaced at the next use. */
function sshMachine(settings: SshSettings, silenceSeconds: number): RemoteMachine {
  const name = machineName(settings);
  const beatMs = (silenceSeconds * 1_000) / BEATS;
  let open: Connection[] = [];
  let opening: Promise<Connection> | null = null;
  const openAnother = async () => {
    try {
      const connection = await Connection.over(await connect(settings), { machine: name, beatMs });
      open.push(connection);
      return connection;
    } finally {
      opening = null;
    }
  };
  const connection = async (fits: (one: Connection) => boolean): Promise<Connection> => {
    open = open.filter((one) => one.isOpen);
    const found = open.find(fits);
    if (found !== undefined) return found;
    // Concurrent callers wait for the same connection.
    opening ??= openAnother();
    const next = await opening;
    return fits(next) ? next : connection(fits);
  };
  return {
    name,
    silenceSeconds,
    run: async (script, { input = new Uint8Array() } = {}) => (await connection(() => true)).run(script, input),
    start: async (script) => (await connection(({ hasRoom }) => hasRoom)).start(script),
  };
}
