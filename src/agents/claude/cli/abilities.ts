import { said } from '../find-program.ts';
import { isSince } from '../version.ts';

/** What a version of the program can do. Probed; older ones know less. */
export interface Abilities {
  readonly version: string;
  /** Takes prompt after prompt in one process, with the control protocol. */
  readonly warm: boolean;
  /** Takes the id of a new session from us. */
  readonly assignsIds: boolean;
  readonly partialMessages: boolean;
  /** Takes settings on its command line. */
  readonly settings: boolean;
  /** Can leave out the servers that setting files name. */
  readonly strictMcp: boolean;
  /** Can be started without any tool, setting file or server. */
  readonly noTools: boolean;
}

/** From here on everything is there: 2.1.0 lists it all, 2.1.325 was seen to do it. */
const ALL_SINCE = [2, 1, 0] as const;

const everything = (version: string): Abilities => ({
  version,
  warm: true,
  assignsIds: true,
  partialMessages: true,
  settings: true,
  strictMcp: true,
  noTools: true,
});

/**
 * Asking for `--help` costs a start of the program (0.25 s), so versions that are known to have everything are not asked.
 * Null: it cannot hold a conversation at all (0.2.50, for example, has neither `--resume` nor stream-json).
 */
export async function abilitiesOf(
  command: readonly string[],
  version: string,
  path: string,
): Promise<Abilities | null> {
  if (isSince(version, ALL_SINCE)) return everything(version);
  return abilitiesIn((await said([...command, '--help'], path)) ?? '', version);
}

export function abilitiesIn(help: string, version: string): Abilities | null {
  const has = (option: string) => new RegExp(`(?:^|[\\s,])${option}(?![\\w-])`, 'm').test(help);
  if (!has('--resume') || !has('--output-format')) return null;
  const partialMessages = has('--include-partial-messages');
  return {
    version,
    // `--input-format` alone is not enough: 1.0.30 has it and no control protocol, so a turn could be neither stopped nor asked
    // about. Every version seen to stream partial messages has both.
    warm: has('--input-format') && partialMessages,
    assignsIds: has('--session-id'),
    partialMessages,
    settings: has('--settings'),
    strictMcp: has('--strict-mcp-config'),
    noTools: has('--tools') && has('--setting-sources') && has('--strict-mcp-config'),
  };
}
