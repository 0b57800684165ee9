import { ThroughlineError } from '../errors.ts';
import { about, type Output, object, text, whole } from '../input/schema.ts';

/** The settings of sandboxes that are machines of a vendor. */

export const VENDOR_KINDS = ['vercel', 'e2b'] as const;
export type VendorKind = (typeof VENDOR_KINDS)[number];

const DEFAULTS = { awakeMinutes: 10, port: 43_117 };

export const MACHINE = object({
  image: about('vercel: the image, e2b: the template that machines are made from. It needs Node 22 or newer.', text),
  awakeMinutes: about('How long a machine stays awake after it was used. Default 10.', whole({ least: 2 })),
  port: about(
    'The port that Throughline uses inside of the machine. Default 43117.',
    whole({ least: 1_024, most: 65_535 }),
  ),
  key: about(
    'The token or API key of the vendor. Left out: the one that its package finds in the environment (see docs/sandboxes.md).',
    text,
  ),
  team: about('For vercel, with "key": the id of the team.', text),
  project: about('For vercel, with "key": the id of the project.', text),
});

export interface VendorSettings {
  readonly kind: VendorKind;
  readonly image: string | null;
  readonly awakeMs: number;
  readonly port: number;
  readonly account: { readonly key: string; readonly team: string; readonly project: string } | null;
}

export const isVendor = (kind: string): kind is VendorKind => VENDOR_KINDS.some((one) => one === kind);

/** `ours`: our environment. Throws `invalid` when only a part of the account is given. */
export function vendorSettings(
  kind: VendorKind,
  machine: Output<typeof MACHINE>,
  ours: Readonly<Record<string, string | undefined>>,
): VendorSettings {
  const { image = null, awakeMinutes, port } = { ...DEFAULTS, ...machine };
  return { kind, image, awakeMs: awakeMinutes * 60_000, port, account: accountOf(kind, machine, ours) };
}

/** Null: the vendor's package looks for it by itself. */
function accountOf(
  kind: VendorKind,
  machine: Output<typeof MACHINE>,
  ours: Readonly<Record<string, string | undefined>>,
): VendorSettings['account'] {
  if (kind === 'e2b') return machine.key === undefined ? null : { key: machine.key, team: '', project: '' };
  const key = machine.key ?? ours.VERCEL_TOKEN;
  if (key === undefined) return null;
  const [team, project] = [machine.team ?? ours.VERCEL_TEAM_ID, machine.project ?? ours.VERCEL_PROJECT_ID];
  if (team !== undefined && project !== undefined) return { key, team, project };
  throw new ThroughlineError('invalid', 'A Vercel token needs the ids of a team and of a project.', {
    hint: 'Set VERCEL_TEAM_ID and VERCEL_PROJECT_ID, or "team" and "project" of "sandbox.machine".',
  });
}
