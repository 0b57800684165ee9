import { createHash } from 'node:crypto';
import { ThroughlineError } from '../../core/errors.ts';
import type { OpenSandbox, Sandboxes } from '../../ports/sandbox.ts';
import { noWorkYet } from '../shared/compare.ts';
import { remembered } from '../shared/remembered.ts';
import { bridgedSandbox, machineProcessOf } from './bridged-sandbox.ts';
import { AtRest, MachineBridge, type MachineSettings } from './machine-bridge.ts';
import type { Vendor } from './vendor.ts';

export interface VendorSettings extends Omit<MachineSettings, 'vendor'> {
  /** Loads the vendor's package when a machine is needed for the first time. `prefix`: how the names of its machines begin. */
  readonly vendor: (prefix: string) => Promise<Vendor>;
  readonly kind: Vendor['kind'];
  /** The data home, for people. */
  readonly home: string;
  /** What the machines are made from. Machines of the same image have the same programs. */
  readonly image: string;
}

/** The id of the only sandbox in a machine. */
const INSIDE = 'main';

/** The machines of a place, by name. */
interface Machines {
  readonly prefix: string;
  readonly vendor: () => Promise<Vendor>;
  nameOf(id: string): string;
  get(name: string): Promise<MachineBridge>;
  forget(name: string): void;
}

/** Sandboxes that are machines of a vendor: one machine for each sandbox, and one for probes of agents. */
export function vendorSandboxes({ kind, home, image, vendor, ...settings }: VendorSettings): Sandboxes {
  const machines = machinesOf(vendor, settings);
  const opened = (bridge: MachineBridge, id: string, place: Pick<OpenSandbox, 'work' | 'state' | 'home' | 'env'>) =>
    bridgedSandbox({ id, host: `${kind}:${image}`, ...place, kind, bridge });
  return {
    place: settings.place,
    home,
    async open(id, { cwd }) {
      if (cwd !== null) throw noDirectory(cwd);
      const bridge = await machines.get(machines.nameOf(id));
      const { head } = await bridge.call('open', { id: INSIDE, cwd });
      await bridge.stayAwake();
      return opened(bridge, id, head);
    },
    async probe({ cwd } = { cwd: null }) {
      const bridge = await machines.get(`${machines.prefix}-probe`);
      await bridge.call('open', { id: INSIDE, cwd: null });
      const { head } = await bridge.call('probe', { cwd });
      const dispose = async () => void (await bridge.call('endProbe', head));
      return { ...opened(bridge, 'probe', head), [Symbol.asyncDispose]: dispose };
    },
    ...processesOf(kind, machines),
    ...machinesAsSandboxes(kind, machines),
    async checkDirectory(path) {
      throw noDirectory(path);
    },
  };
}

function machinesOf(load: VendorSettings['vendor'], settings: Omit<MachineSettings, 'vendor'>): Machines {
  const prefix = `throughline-${settings.place.slice(0, 8)}`;
  const known = new Map<string, MachineBridge>();
  const vendor = remembered(() => load(prefix));
  return {
    prefix,
    vendor,
    nameOf: (id) => `${prefix}-s-${readableOrHashed(id)}`,
    async get(name) {
      const all = { ...settings, vendor: await vendor() };
      const found = known.get(name) ?? new MachineBridge(name, all);
      known.set(name, found);
      return found;
    },
    forget: (name) => void known.delete(name),
  };
}

function machinesAsSandboxes(
  kind: string,
  { prefix, vendor, nameOf, get, forget }: Machines,
): Pick<Sandboxes, 'list' | 'find' | 'changes' | 'files' | 'rest' | 'remove'> {
  return {
    async list() {
      const names = (await (await vendor()).names()).filter((name) => name.startsWith(`${prefix}-s-`));
      const ids = names.map((name) => name.slice(`${prefix}-s-`.length));
      return { root: `${kind} (untried against the real service): ${prefix}-s-*`, ids };
    },
    async find(id) {
      const name = nameOf(id);
      // This runs before every turn, so the vendor is asked only if the machine itself does not answer.
      const isThere = (await (await get(name)).answers()) || (await (await vendor()).find(name)) !== null;
      return isThere ? `${kind}: ${name}` : null;
    },
    async changes(id, { cwd }) {
      if (cwd !== null) throw noDirectory(cwd);
      if ((await (await vendor()).find(nameOf(id))) === null) throw noWorkYet();
      return (await (await get(nameOf(id))).call('changes', { id: INSIDE })).head;
    },
    async files(id, { match }) {
      try {
        const bridge = await get(nameOf(id));
        return (await bridge.call('files', { id: INSIDE, match }, { wake: false })).head;
      } catch (error) {
        // Completing the name of a file is not worth waking a machine that costs money.
        if (error instanceof AtRest) return { paths: [], more: true };
        throw error;
      }
    },
    rest: async (id) => (await get(nameOf(id))).rest(),
    async remove(id) {
      await (await (await vendor()).find(nameOf(id)))?.remove();
      forget(nameOf(id));
    },
  };
}

function processesOf(kind: string, machines: Machines): Pick<Sandboxes, 'status' | 'end' | 'orphans'> {
  /** `atRest`: the answer for a process in a machine that rests or is gone. */
  async function asked<T extends string>(
    stored: Parameters<Sandboxes['status']>[0],
    name: 'status' | 'end',
    atRest: T,
  ): Promise<T | 'unknown'> {
    const found = machineProcessOf(kind, stored);
    if (found === null) return 'unknown';
    try {
      const bridge = await machines.get(found.machine);
      return (await bridge.call(name, { process: found.process }, { wake: false })).head as T;
    } catch (error) {
      return error instanceof AtRest ? atRest : 'unknown';
    }
  }
  return {
    status: (stored) => asked<'alive' | 'dead'>(stored, 'status', 'dead'),
    end: (stored) => asked(stored, 'end', 'ended'),
    // The bridge ends programs that nobody asks about, and a new bridge ends those that an earlier one has left.
    orphans: async () => [],
  };
}

/** Vendors allow few characters in names. */
function readableOrHashed(id: string): string {
  if (/^[a-z0-9-]{1,40}$/.test(id)) return id;
  return createHash('sha256').update(id).digest('hex').slice(0, 32);
}

function noDirectory(cwd: string): ThroughlineError {
  return new ThroughlineError('refused', `The working directory ${cwd} is not in a rented machine.`, {
    hint: 'Leave it out: each conversation works in a directory of its own machine. Use "sandbox.kind": "directory" to work here.',
  });
}
