import type { Statement, Value } from './connect.ts';

/*
 * One statement for many callers: those that ask the same at the same moment, each with its own values, share a message to the server, a plan
 * and its run. The values of a parameter become an array; each row says whose it is.
 *
 *   SELECT x FROM t WHERE a = $1      ▶  SELECT q.i, r.* FROM unnest($1::text[]) WITH ORDINALITY AS q (p1, i), LATERAL (SELECT x FROM t WHERE a = q.p1) r
 */

/** A statement of one caller, with its answer. */
export interface Asked extends Statement {
  readonly resolve: (rows: Record<string, unknown>[]) => void;
  readonly reject: (fault: unknown) => void;
}

/** Those that are sent as one statement. */
export interface Group extends Statement {
  readonly asked: readonly Asked[];
  /** The rows of each, in the order of `asked`. */
  share(rows: readonly Record<string, unknown>[]): Record<string, unknown>[][];
}

/** The types of a statement's parameters, as the server names them. Arrays cannot be joined to one array: they must be the same for all callers. */
export type Types = readonly string[];

const isArray = (type: string) => type.endsWith('[]');
const OF = '__i';
/** The most that share a statement. */
const MOST = 64;

/** `typesOf`: of a statement that several ask; undefined: not known, so each is sent by itself. */
export function groupsOf(all: readonly Asked[], typesOf: (text: string) => Types | undefined): Group[] {
  return [...Map.groupBy(all, ({ text }) => text)].flatMap(([text, asked]) => {
    const types = typesOf(text);
    if (asked.length === 1 || types === undefined) return asked.map(alone);
    return withSameArrays(asked, types)
      .flatMap(inParts)
      .flatMap((part) => {
        const [{ values }] = part as [Asked];
        if (part.length === 1) return part.map(alone);
        return types.every(isArray) ? [same(part, text, values)] : [together(part, text, types)];
      });
  });
}

/** Groups with the same arrays, which cannot be joined. Usually there is no array among the values. */
function withSameArrays(asked: readonly Asked[], types: Types): (readonly Asked[])[] {
  if (!types.some(isArray)) return [asked];
  const arrays = ({ values }: Asked) => JSON.stringify(types.map((type, i) => (isArray(type) ? values[i] : null)));
  return [...Map.groupBy(asked, arrays).values()];
}

/** Limits how many rows one statement returns. */
function inParts(asked: readonly Asked[]): Asked[][] {
  return Array.from({ length: Math.ceil(asked.length / MOST) }, (_, i) => asked.slice(i * MOST, (i + 1) * MOST));
}

export function alone(one: Asked): Group {
  return { text: one.text, values: one.values, asked: [one], share: (rows) => [[...rows]] };
}

/** All ask for the same. Each gets rows of its own: callers may change them. */
function same(asked: readonly Asked[], text: string, values: readonly Value[]): Group {
  return { text, values, asked, share: (rows) => asked.map(() => rows.map((row) => ({ ...row }))) };
}

function together(asked: readonly Asked[], text: string, types: Types): Group {
  const parameters = types.map((type, i) =>
    isArray(type) ? asked[0]?.values[i] : asked.map(({ values }) => values[i] as string | number | null),
  );
  return {
    ...{ text: lateral(text, types), values: parameters as Value[], asked },
    share(rows) {
      const each: Record<string, unknown>[][] = asked.map(() => []);
      for (const { [OF]: place, ...row } of rows) each[Number(place) - 1]?.push(row);
      return each;
    },
  };
}

/** Remembers what `make` made of the text of a statement: the same statements come again and again. */
function once<T>(make: (text: string, types: Types) => T): (text: string, types: Types) => T {
  const made = new Map<string, T>();
  return (text, types) => {
    const known = made.get(text);
    if (known !== undefined) return known;
    const value = make(text, types);
    made.set(text, value);
    return value;
  };
}

const PARAMETER = /\$(\d+)/g;

/** The part after LATERAL runs for one caller after the other, so that the rows of each come in the order of the statement. */
const lateral = once((text, types) => {
  const { from, own } = rowsOf(types);
  return `SELECT q.${OF}, r.* FROM ${from}, LATERAL (${text.replace(PARAMETER, own)}) r`;
});

/** The rows of values as a table `q`, and what takes the place of a parameter in the statement of one. */
function rowsOf(types: Types) {
  const places = types.flatMap((type, i) => (isArray(type) ? [] : [i + 1]));
  const arrays = places.map((n) => `$${n}::${types[n - 1]}[]`).join(', ');
  const names = places.map((n) => `p${n}`).join(', ');
  return {
    from: `unnest(${arrays}) WITH ORDINALITY AS q (${names}, ${OF})`,
    own: (whole: string, n: string) => (isArray(types[Number(n) - 1] ?? '') ? whole : `q.p${n}`),
  };
}

// ── what is written ──

const UPDATE = /^\s*UPDATE \w+ SET .*?(?= WHERE )/s;
const INSERT = /^(\s*INSERT INTO .*?)\bVALUES \((.*?)\)\s*(ON CONFLICT .*)?$/s;

/** One statement that writes what the statements of all rows would; null: there is none. No two rows may be for the same row of a table. */
export const forRows = once((text, types): string | null => {
  if (types.length === 0 || types.some(isArray)) return null;
  const { from, own } = rowsOf(types);
  const updated = UPDATE.exec(text)?.[0];
  if (updated !== undefined) {
    return `${updated.replace(PARAMETER, own)} FROM ${from}${text.slice(updated.length).replace(PARAMETER, own)}`;
  }
  const [, into, values, rest = ''] = INSERT.exec(text) ?? [];
  return values === undefined ? null : `${into} SELECT ${values.replace(PARAMETER, own)} FROM ${from} ${rest}`;
});

/** Whether it only adds a row. */
const isAddition = once((text) => INSERT.exec(text)?.[3] === undefined && INSERT.test(text));

/**
 * Groups the statements of several lists into as few groups as possible. Each list keeps its order. A group has statements with the same text, which
 * can be run together. It has several of one list only if they add rows: others may be for the same row.
 */
export function inOrder(lists: readonly (readonly Statement[])[]): Statement[][] {
  const left = lists.map((list) => [...list]).filter((list) => list.length > 0);
  const later = new Map<string, number>();
  for (const list of left) for (const { text } of list) later.set(text, (later.get(text) ?? 0) + 1);
  const ordered: Statement[][] = [];
  for (let lists = left; lists.length > 0; lists = lists.filter((list) => list.length > 0)) {
    const heads = Map.groupBy(lists, ([head]) => (head as Statement).text);
    // The text of which the fewest statements still wait behind others, so that as many as possible are run together.
    const waiting = (text: string) => (later.get(text) ?? 0) - (heads.get(text)?.length ?? 0);
    const [text] = [...heads.keys()].sort((a, b) => waiting(a) - waiting(b)) as [string];
    const isAdded = isAddition(text, []);
    const taken = (heads.get(text) ?? []).flatMap((list) => {
      const others = isAdded ? list.findIndex((one) => one.text !== text) : 1;
      return list.splice(0, others === -1 ? list.length : others);
    });
    later.set(text, (later.get(text) ?? 0) - taken.length);
    ordered.push(taken);
  }
  return ordered;
}

/** One statement for those with the same text: each value is an array, with one element for each row. */
export function joined(statements: readonly Statement[]): Statement[] {
  const same = Map.groupBy(statements, ({ text }) => text);
  return [...same].map(([text, all]) => {
    const column = (i: number) => all.flatMap(({ values }) => values[i] as readonly string[]);
    return { text, values: (all[0]?.values ?? []).map((_, i) => column(i)) };
  });
}

/** Statements with the same text as one statement, where that is possible. */
export function merged(statements: readonly Statement[], typesOf: (text: string) => Types | undefined): Statement[] {
  const [{ text }] = statements as [Statement];
  const types = typesOf(text);
  const whole = statements.length === 1 || types === undefined ? null : forRows(text, types);
  if (whole === null || types === undefined) return [...statements];
  const column = (i: number) => statements.map(({ values }) => values[i] as string | number | null);
  return [{ text: whole, values: types.map((_, i) => column(i)) }];
}
