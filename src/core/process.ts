/** One process, distinguishable from a later one with the same pid. */
export interface ProcessIdentity {
  readonly pid: number;
  /** When it started, as the operating system counts it; opaque. */
  readonly started: string;
  /** The id of the boot of its machine. It is unique among all machines, so it identifies the machine as well. */
  readonly boot: string;
  /** The pid namespace. Pids of another namespace are not valid here. */
  readonly namespace: string;
  /** The value of `MARK` in its environment and in that of everything it starts; left out: it has none. */
  readonly mark?: string;
  /** The name of its machine, for people: two machines may have the same. Left out: it was not recorded. */
  readonly host?: string;
}

/**
 * A process in a sandbox, as it is stored. Only the sandboxes of its kind can read the id, find the process and end it. For all other
 * code it is opaque.
 */
export interface SandboxProcess {
  readonly kind: string;
  readonly id: string;
  /** For people. */
  readonly label: string;
}

/** A process of the machine that we run on. */
const LOCAL = 'local';

export function localProcess(identity: ProcessIdentity): SandboxProcess {
  return { kind: LOCAL, id: JSON.stringify(identity), label: `process ${identity.pid}` };
}

/** Null: it is of another kind, or its id cannot be read. */
export function identityOfLocal({ kind, id }: SandboxProcess): ProcessIdentity | null {
  if (kind !== LOCAL) return null;
  try {
    const identity: unknown = JSON.parse(id);
    return isIdentity(identity) ? identity : null;
  } catch {
    return null;
  }
}

/** Reads what is stored. Earlier versions stored the identity of a process of their own machine. */
export function storedProcess(stored: SandboxProcess | ProcessIdentity | null): SandboxProcess | null {
  return isIdentity(stored) ? localProcess(stored) : stored;
}

function isIdentity(value: unknown): value is ProcessIdentity {
  return typeof value === 'object' && value !== null && 'pid' in value && 'started' in value && 'boot' in value;
}

/** The boot and the namespace in which we run ourselves. */
export interface Viewpoint extends Pick<ProcessIdentity, 'boot' | 'namespace'> {
  /** Whether this was an earlier boot of this machine. False when in doubt. */
  isOver(boot: string): boolean;
}

/**
 * Where a process is. `here`: its state can be read. `before`: it is dead, because its machine has started again. `elsewhere`: in another
 * pid namespace, or perhaps on another machine. Its state is unknown, and its leases have to expire.
 */
export function whereIs({ boot, namespace }: ProcessIdentity, from: Viewpoint): 'here' | 'before' | 'elsewhere' {
  if (boot !== from.boot) return from.isOver(boot) ? 'before' : 'elsewhere';
  return namespace === from.namespace ? 'here' : 'elsewhere';
}

/** A program that holds leases through a server. Its boot is unknown, so its leases have to expire. */
export function clientProcess(holder: string): ProcessIdentity {
  return { pid: 0, started: '', boot: '', namespace: `client ${holder}` };
}

/** How a lease that this process holds is shown to callers of this process. */
export const THIS_PROCESS = 'this process';

/**
 * The holder of a lease for people, seen from a process (`self`). Without its pid: callers on other machines cannot use it. A program that
 * holds leases through a server is shown by the name that it gave itself.
 */
export function holderLabel(holder: ProcessIdentity, self: ProcessIdentity): string {
  if (holder.pid === 0) return holder.namespace;
  const isSelf =
    holder.pid === self.pid &&
    holder.started === self.started &&
    holder.boot === self.boot &&
    holder.namespace === self.namespace;
  return isSelf ? THIS_PROCESS : 'another process';
}

/** The same for callers of a server: for them, "this process" would be their own. */
export function holderAtServer(label: string): string {
  return label === THIS_PROCESS ? 'this server' : label;
}

/**
 * An environment variable of every program that we start; its value is unique, and names the process that started it. Agents may start
 * tools in process groups of their own (Claude does), which outlive the agent and its group. The mark finds them. It also finds a
 * program whose starter was killed before it could store anything.
 */
export const MARK = 'THROUGHLINE_MARK';

/** Who started a program: a process, for a data home (`place`). */
export interface Starter {
  readonly place: string;
  readonly process: ProcessIdentity;
}

/** `id`: unique. */
export function formatMark(id: string, { place, process: { pid, started, boot, namespace } }: Starter): string {
  return [id, place, pid, started, boot, namespace].map(encodeURIComponent).join(':');
}

/** Null: the mark was not made by `formatMark`. */
export function starterOf(mark: string): Starter | null {
  const parts = mark.split(':').map(decoded);
  const [id, place, pid, started, boot, namespace] = parts;
  if (parts.length !== 6 || !id || !place || !/^\d+$/.test(pid ?? '') || !started || !boot || !namespace) return null;
  return { place, process: { pid: Number(pid), started, boot, namespace } };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return '';
  }
}
