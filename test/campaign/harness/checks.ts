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
 * What must hold for every conversation at the end, seen from outside. The checks of the storm (test/faults) are used here on what the
 * server shows, not on the database; the others are below. All are functions of plain facts, so that checks.test.ts can show that each of
 * them can fail.
 */

/** One acknowledged request: the turn that was named in the answer. */
export interface Acknowledged {
  readonly name: string;
  readonly turn: string;
  readonly n: number;
}

/** The events that one reader got over all of its connections, in order. */
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

/** All violations in one conversation. `agentsFail`: agents fail by themselves, so turns may fail. */
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

/** R5: a reader that was cut off and came back got every event once, in order, and word for word as in the log. */
function toldAll({ key, texts }: Facts, { reader, events }: Told): string[] {
  const wrong = events.findIndex(({ seq }, i) => seq !== i + 1);
  if (wrong !== -1) return [`${reader} was told ${key}/${events[wrong]?.seq} where ${wrong + 1} was due`];
  // A reader may have more events than `texts`, because something may happen after the log was read.
  if (events.length < texts.length) return [`${reader} was told ${events.length} of ${texts.length} events of ${key}`];
  const other = texts.findIndex((text, i) => text !== events[i]?.text);
  return other === -1 ? [] : [`${reader} was told another event ${key}/${other + 1} than the log has`];
}

/** Every attempt that was sent has a receipt, and the receipt accounts for the whole history before it. */
function receipted({ key, sent, receipts, turns }: Facts): string[] {
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

/** Owners are separated: an owner can list all of the own conversations and no others, and sees no word of another owner. */
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
    ...strange.map(({ id, key }) => `${owner} can list ${key ?? id}, which belongs to another owner`),
    ...missing.map((key) => `${owner} cannot list ${key}`),
    ...foreign.filter((word) => shown.includes(word)).map((word) => `${owner} sees "${word}" of another owner`),
  ];
}

/** Internal errors that the program reported: a server writes them to its log, a command to stderr. */
export function bugsIn(log: string): string[] {
  const bugs = log.split('\n').filter((line) => /internal error/i.test(line));
  return bugs.map((line) => `the log: ${line.slice(0, 500)}`);
}
