import {
  failedHarmlessly,
  gapless,
  inOrder,
  knewAll,
  nothingLost,
  oneEnd,
  ranOnce,
} from '../../faults/storm/checks.ts';
import type { ConversationFacts } from '../../faults/storm/facts.ts';

/*
 * What must hold of every conversation at the end, seen from outside. The rules that the storm of test/faults checks on the database
 * are checked here on what the server shows; the others are below. All look at plain facts, so that checks.test.ts can show that
 * each of them is able to fail.
 */

/** One acknowledged request: the turn that was named in the answer. */
export interface Acknowledged {
  readonly name: string;
  readonly turn: string;
  readonly n: number;
}

/** What one reader was told, connection after connection, in that order. */
export interface Told {
  readonly reader: string;
  readonly events: readonly { readonly seq: number; readonly text: string }[];
}

export interface Facts extends ConversationFacts {
  readonly owner: string;
  /** Every event as the server shows it at the end, from the first one on. */
  readonly texts: readonly string[];
  readonly acknowledged: readonly Acknowledged[];
  readonly told: readonly Told[];
  readonly sent: readonly { readonly n: number; readonly attempt: number }[];
  readonly receipts: readonly Receipted[];
}

export interface Receipted {
  readonly turn: number | null;
  readonly attempt: number;
  readonly rung: string;
  readonly carried: number;
  readonly condensed: number;
  readonly dropped: number;
}

/** All violations of one conversation. `agentsFail`: agents fail by themselves, and their turns with them. */
export function violationsOf(facts: Facts, { agentsFail }: { readonly agentsFail?: boolean } = {}): string[] {
  return [
    ...nothingLost(facts, facts.acknowledged),
    ...oneEnd(facts),
    ...inOrder(facts),
    ...gapless(facts),
    ...ranOnce(facts),
    ...knewAll(facts),
    ...(agentsFail ? [] : failedHarmlessly(facts)),
    ...receipted(facts),
    ...facts.told.flatMap((told) => toldAll(facts, told)),
  ].map((violation) => `${facts.owner}: ${violation}`);
}

/** R5: a reader that was cut and came back was told every event once, in order, and word for word as it is in the log. */
export function toldAll({ key, texts }: Facts, { reader, events }: Told): string[] {
  const wrong = events.findIndex(({ seq }, i) => seq !== i + 1);
  if (wrong !== -1) return [`${reader} was told ${key}/${events[wrong]?.seq} where ${wrong + 1} was due`];
  // Something may still happen after the log was read; what was told before is compared.
  if (events.length < texts.length) return [`${reader} was told ${events.length} of ${texts.length} events of ${key}`];
  const other = texts.findIndex((text, i) => text !== events[i]?.text);
  return other === -1 ? [] : [`${reader} was told another event ${key}/${other + 1} than the log has`];
}

/** Never silently fresh: every attempt that was sent has a receipt, and what it accounts for is the whole history before it. */
export function receipted({ key, sent, receipts, turns }: Facts): string[] {
  return sent.flatMap(({ n, attempt }) => {
    const receipt = receipts.find((one) => one.turn === n && one.attempt === attempt);
    if (receipt === undefined)
      return [`${key}: turn ${n} was sent, and there is no receipt for its attempt ${attempt}`];
    const history = turns.filter((turn) => turn.n < n && turn.record !== null).length;
    const { carried, condensed, dropped } = receipt;
    if (carried + condensed + dropped === history) return [];
    return [`${key}: the receipt of turn ${n} accounts for ${carried}+${condensed}+${dropped} of ${history} turns`];
  });
}

/** Nothing crosses: what an owner can list is what this owner made, and no word of another owner is in it. */
export function ownersApart(
  owner: string,
  listed: readonly { readonly id: string; readonly key: string | null }[],
  own: readonly string[],
  shown: string,
  foreign: readonly string[],
): string[] {
  const strange = listed.filter(({ key }) => key === null || !own.includes(key));
  const missing = own.filter((key) => !listed.some((one) => one.key === key));
  return [
    ...strange.map(({ id, key }) => `${owner} can list ${key ?? id}, which is another's`),
    ...missing.map((key) => `${owner} cannot list ${key}`),
    ...foreign.filter((word) => shown.includes(word)).map((word) => `${owner} is shown "${word}", which is another's`),
  ];
}

/** Faults of the program that it has noticed itself: of a server in its log, of a command or a server that dies of one on stderr. */
export function bugsIn(log: string): string[] {
  const bugs = log.split('\n').filter((line) => /internal error/i.test(line));
  return bugs.map((line) => `the log: ${line.slice(0, 500)}`);
}
